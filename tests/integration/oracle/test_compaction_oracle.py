"""Kafka 3.9 and Kavka are given the same batches, and compaction leaves the same records in both."""

import random
import time
from pathlib import Path
from typing import Any

import pytest

from kavka.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka.protocol.records.batch import Record, build_batch, iter_batch_headers, iter_records
from kavka.protocol.records.compression import Codec
from tests.support.kafka_process import ZooKeeperKafka
from tests.support.kavka_process import KavkaProcess
from tests.support.processes import wait_until
from tests.support.server import RunningServer
from tests.support.wire import LATEST, RawClient

pytestmark = pytest.mark.java

QUICK = {"log.cleaner.backoff.ms": "100", "log.cleaner.min.cleanable.ratio": "0"}
Remaining = list[tuple[int, bytes | None, bytes | None]]


def batches() -> list[bytes]:
    chance = random.Random(5)
    now_ms = int(time.time() * 1000)
    found = []
    for number in range(120):
        pairs = [
            (b"key-%d" % chance.randrange(60), None if chance.random() < 0.1 else chance.randbytes(50))
            for _ in range(chance.randrange(1, 30))
        ]
        fields: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0} if number == 40 else {}
        records = [Record(0, now_ms + number, *pair) for pair in pairs]
        found.append(build_batch(records, codec=list(Codec)[number % 5], **fields))
    return found


def remaining(server: RunningServer, several: list[bytes], folder: Path) -> Remaining:
    with RawClient(server.host, server.port, timeout_s=60) as client:
        client.create_topic("kv", cleanup_policy="compact", segment_bytes="8000", min_cleanable_dirty_ratio="0")
        for records in several:
            data = TopicProduceData(name="kv", partition_data=[PartitionProduceData(index=0, records=records)])

            def accepted(data: TopicProduceData = data) -> bool:
                (answer,) = client.ask(ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=[data]), 9).responses
                return bool(answer.partition_responses[0].error_code == 0)

            wait_until(accepted, 60, "a batch is refused")
        active = max(int(path.stem) for path in folder.glob("kv-0/*.log"))
        checkpoint = folder / "cleaner-offset-checkpoint"
        wait_until(
            lambda: checkpoint.exists() and f"kv 0 {active}" in checkpoint.read_text().splitlines(),
            400,
            "not compacted up to the active segment",
        )
        return read(client)


def read(client: RawClient) -> Remaining:
    found: Remaining = []
    offset, end = 0, client.offset("kv", LATEST)
    while offset < end:
        data = client.fetch("kv", offset)
        for position, header in iter_batch_headers(data, allow_truncated_tail=True):
            found += [(record.offset, record.key, record.value) for record in iter_records(data, position)]
            offset = header.next_offset
    return found


def test_the_same_records_remain(tmp_path: Path) -> None:
    several = batches()
    with KavkaProcess(tmp_path / "kavka", QUICK) as kavka:
        ours = remaining(kavka, several, kavka.log_dir)
    with ZooKeeperKafka(tmp_path / "kafka", QUICK) as kafka:
        theirs = remaining(kafka, several, kafka.log_dir)
    assert ours == theirs
    assert len(ours) < sum(int.from_bytes(each[57:61], "big") for each in several) / 2
