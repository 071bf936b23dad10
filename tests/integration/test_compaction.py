"""Compaction by real processes: killed in the middle, throttled, read by Kafka's own tool afterwards."""

import contextlib
import os
import random
import re
import signal
import time
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kavka.protocol.records.batch import Record, build_batch, iter_batch_headers, iter_records
from kavka.protocol.records.compression import Codec
from tests.support.java import run_java
from tests.support.kavka_process import KavkaProcess
from tests.support.processes import let_pass, wait_until
from tests.support.wire import LATEST, RawClient

QUICK = {"log.cleaner.backoff.ms": "50", "log.segment.delete.delay.ms": "1000", "log.initial.task.delay.ms": "0"}
TOPIC: dict[str, Any] = {"cleanup_policy": "compact", "segment_bytes": "100000", "min_cleanable_dirty_ratio": "0.01"}
KEYS = 40
SOME_TIME_S = 400.0
"""A worker runs at a low priority: where others keep the processors busy, it takes long to import numpy even."""
pytestmark = pytest.mark.timeout(900)
COMPLAINTS = ("mismatch", "corrupt", "not found", "out of order", "should be", "error", "invalid", "non-consecutive")


class Writer:
    """Writes keys to a topic and remembers the last value of each that was acknowledged."""

    def __init__(self, topic: str, seed: int = 1) -> None:
        self.topic = topic
        self.chance = random.Random(seed)
        self.latest: dict[bytes, bytes | None] = {}

    def write(self, client: RawClient, batches: int, *, codec: int = Codec.NONE) -> None:
        from kavka.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

        for _ in range(batches):
            pairs = [(b"key-%d" % self.chance.randrange(KEYS), self._value()) for _ in range(50)]
            records = build_batch([Record(0, int(time.time() * 1000), *pair) for pair in pairs], codec=codec)
            data = TopicProduceData(name=self.topic, partition_data=[PartitionProduceData(index=0, records=records)])
            request = ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=[data])
            (answer,) = client.ask(request, 9).responses
            assert answer.partition_responses[0].error_code == 0
            self.latest.update(pairs)

    def _value(self) -> bytes | None:
        return None if self.chance.random() < 0.05 else self.chance.randbytes(80)

    def check(self, client: RawClient) -> int:
        """Read the topic from its start; how many records it has."""
        found: dict[bytes | None, bytes | None] = {}
        last_offset = -1
        count = offset = 0
        end = client.offset(self.topic, LATEST)
        while offset < end:
            data = client.fetch(self.topic, offset)
            assert data
            for position, header in iter_batch_headers(data, allow_truncated_tail=True):
                for record in iter_records(data, position):
                    assert record.offset > last_offset
                    last_offset = record.offset
                    found[record.key] = record.value
                    count += 1
                offset = header.next_offset
        live = {key: value for key, value in self.latest.items() if value is not None}
        assert {key: value for key, value in found.items() if value is not None} == live
        return count


def children_of(broker: KavkaProcess) -> list[int]:
    tasks = Path(f"/proc/{broker.process.pid}/task").glob("*/children")
    return [int(pid) for path in tasks for pid in path.read_text().split()]


def worker_of(broker: KavkaProcess, *, besides: Collection[int] = ()) -> int:
    """Another one than `besides`, of which the last may be there a little longer than it lives."""
    return wait_until(
        lambda: next((pid for pid in children_of(broker) if pid not in besides), None),
        SOME_TIME_S,
        "no worker is started",
    )


def is_gone(pid: int) -> bool:
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return True


def rounds(broker: KavkaProcess) -> int:
    return len(re.findall('msg="log compacted"', broker.process.log_text()))


def test_the_worker_is_polite_and_the_broker_has_no_numpy(tmp_path: Path) -> None:
    with KavkaProcess(tmp_path, QUICK) as broker, RawClient(broker.host, broker.port) as client:
        assert children_of(broker) == []
        client.create_topic("kv", **TOPIC)
        writer = Writer("kv")
        writer.write(client, 80)
        worker = worker_of(broker)
        wait_until(lambda: rounds(broker) > 0, SOME_TIME_S, "not compacted")
        assert os.getpriority(os.PRIO_PROCESS, worker) == 10
        assert "numpy" not in Path(f"/proc/{broker.process.pid}/maps").read_text()
        assert "numpy" in Path(f"/proc/{worker}/maps").read_text()
        assert writer.check(client) < 80 * 50
        broker.stop()
        wait_until(lambda: is_gone(worker), SOME_TIME_S, "the worker outlives its broker")


@pytest.mark.parametrize("victim", ["broker", "worker"])
def test_kills_in_the_middle_of_compaction_lose_nothing(tmp_path: Path, victim: str) -> None:
    # 2 MB/s, so that most of the time is spent in the middle of a round.
    slow = QUICK | {"log.cleaner.io.max.bytes.per.second": "2000000", "log.cleaner.delete.retention.ms": "0"}
    broker = KavkaProcess(tmp_path, slow)
    writer = Writer("kv", seed=2)
    chance = random.Random(3)
    workers: set[int] = set()
    try:
        broker.start()
        for number in range(4):
            with RawClient(broker.host, broker.port) as client:
                if not number:
                    client.create_topic("kv", **TOPIC)
                writer.write(client, 60, codec=number % 5)
                worker = worker_of(broker, besides=workers)
                workers.add(worker)
                let_pass(chance.random() * 0.8)
                if victim == "worker":
                    # It ends by itself when there is nothing more to do.
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(worker, signal.SIGKILL)
                else:
                    broker.kill()
                    wait_until(partial(is_gone, worker), SOME_TIME_S, "the worker outlives its broker")
                    broker.start()
            with RawClient(broker.host, broker.port) as client:
                writer.check(client)
        with RawClient(broker.host, broker.port) as client:
            before = rounds(broker)
            writer.write(client, 60)
            wait_until(lambda: rounds(broker) > before, SOME_TIME_S, "it is not compacted any more")
            assert writer.check(client) < 5 * 60 * 50
        assert len(workers) == 4
        # Another round may be at it just now.
        wait_until(lambda: not [*(broker.log_dir / "kv-0").glob("*.swap")], SOME_TIME_S, "a swap is not finished")
    finally:
        broker.stop()


def test_a_topic_that_is_deleted_while_it_is_compacted_goes(tmp_path: Path) -> None:
    from kavka.protocol.messages.delete_topics import DeleteTopicsRequest

    slow = QUICK | {"log.cleaner.io.max.bytes.per.second": "200000"}
    with KavkaProcess(tmp_path, slow) as broker, RawClient(broker.host, broker.port) as client:
        client.create_topic("kv", **TOPIC)
        Writer("kv").write(client, 60)
        worker_of(broker)
        wait_until(
            lambda: bool(list((broker.log_dir / "kv-0").glob("*.cleaned"))) or rounds(broker), SOME_TIME_S, "no start"
        )
        (answer,) = client.ask(DeleteTopicsRequest(topic_names=["kv"], timeout_ms=60_000), 1).responses
        assert answer.error_code == 0
        wait_until(lambda: not list(broker.log_dir.glob("kv-0*")), 60, "the folder stays")
        client.create_topic("kv", **TOPIC)
        writer = Writer("kv")
        writer.write(client, 10)
        writer.check(client)
        assert "Traceback" not in broker.process.log_text()


@pytest.mark.java
@pytest.mark.parametrize(
    ("bundle", "tool"),
    [("kafka-3.9", "kafka.tools.DumpLogSegments"), ("kafka-4.3", "org.apache.kafka.tools.DumpLogSegments")],
)
def test_kafkas_tool_has_no_complaint_about_a_compacted_log(tmp_path: Path, bundle: str, tool: str) -> None:
    with KavkaProcess(tmp_path, QUICK | {"log.cleaner.delete.retention.ms": "0"}) as broker:
        with RawClient(broker.host, broker.port) as client:
            client.create_topic("kv", **TOPIC)
            writer = Writer("kv")
            for codec in Codec:
                writer.write(client, 40, codec=codec)
            wait_until(lambda: rounds(broker) >= 1, SOME_TIME_S, "not compacted")
            writer.check(client)
        folder = broker.log_dir / "kv-0"
        broker.stop()
    paths = sorted(path for path in folder.iterdir() if path.name.endswith(("log", "index", "snapshot")))
    for option in ("--print-data-log", "--index-sanity-check"):
        printed = run_java(tool, [option, "--files", ",".join(map(str, paths))], bundle=bundle)
        assert [line for line in printed.splitlines() if any(word in line.lower() for word in COMPLAINTS)] == []
