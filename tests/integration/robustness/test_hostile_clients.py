"""Hostile clients beside a good one: it notices nothing, memory is bounded, rejections are counted and logged once.

The good client's latency is held against its own without the hostile ones, before and after: what else the
machine has to do slows all three.
"""

import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kavka.broker.metrics.bounded_warnings import MOST
from kavka.broker.server import Broker
from kavka.config.sources import load_config
from kavka.protocol.messages.api_versions import ApiVersionsRequest
from kavka.protocol.records.compression import _DECOMPRESSORS, Codec
from kavka.protocol.records.header import BytesLike
from tests.support.gate import Gate
from tests.support.hostile import HOSTILITIES, LARGE_TOPIC, Target, bombs, header_bomb
from tests.support.kavka_process import KavkaProcess
from tests.support.metrics_page import metric
from tests.support.processes import let_pass
from tests.support.wire import (
    PRODUCE_VERSION,
    Wire,
    batch_of,
    create_topic,
    frame,
    produce,
    produce_request,
    read_values,
)

SEED = 4
CALM_S = 4.0
FUZZ_S = 20.0
STORMS = 3
PAUSE_S = 0.02
"""Between two hostilities: still three bombs, and three times a thousand requests, a second."""
RATE = 500
"""So little that no requests pile up where other programs leave the test a third of the processors."""
ALLOWED_MS = {"p50": 5.0, "p99": 50.0}
TIMES_CALM = 10.0
"""What it may cost, and so many times the slower calm run's: a busy machine's pauses meet more threads in a storm."""
MIB = 1024 * 1024
REPOSITORY = Path(__file__).resolve().parents[3]
REJECTED = "kavka_network_rejected_requests_total"
SETTINGS = {"metrics.port": "0", "kavka.validate.records": "all"}
LARGE_BATCHES = 64
MEMORY_LIMIT_BYTES = 400 * MIB
"""Idle, and with two I/O threads each unpacking a batch up to the limit, and 40 clients that keep 4 MiB each."""


@pytest.mark.slow
@pytest.mark.serial
@pytest.mark.timeout(400)
def test_a_good_client_does_not_notice_hostile_ones(tmp_path: Path) -> None:
    dice = random.Random(SEED)
    with KavkaProcess(tmp_path, SETTINGS) as broker:
        target = Target(broker.host, broker.port, prepare_topics(broker), bombs())
        with steady(broker) as before:
            let_pass(CALM_S)
        done: Counter[str] = Counter()
        rejections = 0
        storms: list[dict[str, float]] = []
        calms = [before]
        # Other programs that come and go may hit the storm alone: then there is another one.
        while len(storms) < STORMS and not (storms and is_hardly_noticed(storms[-1], calms)):
            with steady(broker) as stormy:
                more, rejected = misbehave(target, dice, FUZZ_S)
            done, rejections = done + more, rejections + rejected
            storms.append(stormy)
            peak_bytes = broker.process.peak_rss_bytes()
            for wire in target.held:
                wire.close()
            target.held.clear()
            with steady(broker) as after:
                let_pass(CALM_S)
            calms.append(after)

        print(f"calm {calms}\nstormy {storms}\npeak {peak_bytes / MIB:.0f} MiB, {rejections} rejected, {dict(done)}")
        assert set(done) == {hostility.__name__ for hostility in HOSTILITIES}
        assert [run["failures"] for run in (*storms, *calms)] == [0] * len(storms + calms)
        assert is_hardly_noticed(storms[-1], calms)
        assert peak_bytes < MEMORY_LIMIT_BYTES
        assert metric(broker, REJECTED) == rejections
        log = broker.process.log_text()
        # Each is logged, but for those that would flood the log.
        assert log.count("request rejected") == min(rejections, MOST)
        assert "level=CRITICAL" not in log
        assert "trace=" not in log, log[log.index("trace=") - 300 :][:3000]
        with Wire(broker.host, broker.port) as client:
            values = read_values(client, "good")
            produced = sum(value == b"good" for value in values)
        assert produced == len(values) == sum(-(-int(run["requests"]) // 3) for run in (*storms, *calms))


def is_hardly_noticed(stormy: dict[str, float], calms: list[dict[str, float]]) -> bool:
    """By the storm's latencies, held against those of the slower calm beside it."""
    return all(
        stormy[rank] < allowed_ms + TIMES_CALM * max(calm[rank] for calm in calms[-2:])
        for rank, allowed_ms in ALLOWED_MS.items()
    )


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.ZSTD])
def test_bombs_behind_a_good_produce_are_not_unpacked_before_others_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codec: Codec
) -> None:
    gate, reached = Gate(), threading.Event()
    unpack = _DECOMPRESSORS[codec]

    def unpack_when_let(data: BytesLike, limit_bytes: int) -> bytes:
        reached.set()
        gate.pass_through()
        return unpack(data, limit_bytes)

    monkeypatch.setitem(_DECOMPRESSORS, codec, unpack_when_let)
    # Not one for tests: its faults have all requests go to the I/O threads.
    settings = ["listeners=PLAINTEXT://127.0.0.1:0", f"log.dirs={tmp_path}", "num.network.threads=1"]
    broker = Broker(load_config(None, settings, {}).config)
    broker.start()
    try:
        port = int(broker.endpoints_text().rpartition(":")[2])
        with Wire("127.0.0.1", port) as good, Wire("127.0.0.1", port) as hostile:
            create_topic(good, "compacted", configs={"cleanup.policy": "compact"})
            batch = batch_of([b"good"], timestamp_ms=time.time_ns() // 1_000_000, key=b"key")
            assert produce(hostile, "compacted", batch).error_code == 0
            bomb = frame(produce_request("compacted", header_bomb(500_000, codec)), PRODUCE_VERSION)

            with gate.held():
                hostile.socket.sendall(bomb * 10)
                assert reached.wait(60)
                for _ in range(3):
                    good.ask(ApiVersionsRequest(), 0)

            hostile.socket.settimeout(60)
            for _ in range(10):
                hostile.receive_frame()
    finally:
        broker.stop()


def test_a_record_of_millions_of_headers_costs_no_more_memory_than_their_bytes(tmp_path: Path) -> None:
    with KavkaProcess(tmp_path, {}) as broker, Wire(broker.host, broker.port, timeout_s=60) as wire:
        create_topic(wire, "gzipped", configs={"cleanup.policy": "compact", "compression.type": "gzip"})
        batch = batch_of([b"good"], timestamp_ms=time.time_ns() // 1_000_000, key=b"key")
        assert produce(wire, "gzipped", batch).error_code == 0
        before_bytes = broker.process.peak_rss_bytes()

        assert produce(wire, "gzipped", header_bomb(4_000_000)).error_code == 0

        # What it unpacks to is 8 MB.
        assert broker.process.peak_rss_bytes() < before_bytes + 64 * MIB


def prepare_topics(broker: KavkaProcess) -> list[str]:
    """Topics of all kinds that look into batches, a good client's, and one with much to fetch."""
    configs: dict[str, dict[str, str]] = {
        "plain": {},
        "compacted": {"cleanup.policy": "compact"},
        "stamped": {"message.timestamp.type": "LogAppendTime"},
        **{f"to-{codec}": {"compression.type": codec} for codec in ("uncompressed", "gzip", "snappy", "lz4", "zstd")},
    }
    with Wire(broker.host, broker.port) as wire:
        for name, config in configs.items():
            create_topic(wire, name, configs=config)
        create_topic(wire, "good")
        create_topic(wire, LARGE_TOPIC)
        batch = batch_of([random.Random(0).randbytes(900_000)], timestamp_ms=time.time_ns() // 1_000_000)
        for _ in range(LARGE_BATCHES):
            assert produce(wire, LARGE_TOPIC, batch).error_code == 0
    return list(configs)


def misbehave(target: Target, dice: random.Random, seconds: float) -> tuple[Counter[str], int]:
    """Every hostility in turn, in a new order each round: how often each was done, and the rejections earned."""
    done: Counter[str] = Counter()
    rejections = 0
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for hostility in dice.sample(HOSTILITIES, len(HOSTILITIES)):
            rejections += hostility(target, dice)
            done[hostility.__name__] += 1
            let_pass(PAUSE_S)
    return done, rejections


@contextmanager
def steady(broker: KavkaProcess) -> Iterator[dict[str, float]]:
    """A good client runs meanwhile; the dictionary is filled when it has ended."""
    command = [sys.executable, "-m", "tests.support.steady_client", broker.host, str(broker.port), "good", str(RATE)]
    client = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    result: dict[str, float] = {}
    try:
        assert client.stdout is not None
        assert client.stdout.readline() == "STARTED\n"
        yield result
        client.terminate()
        result.update(json.loads(client.communicate(timeout=120)[0]))
    finally:
        if client.poll() is None:
            client.kill()
        client.wait()
