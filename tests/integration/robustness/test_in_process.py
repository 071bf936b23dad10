"""Brokers as objects: two in one process, nothing left behind when they stop or cannot start."""

import gc
import os
import resource
import signal
import socket
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kavka.broker.clock import SYSTEM_CLOCK
from kavka.broker.server import Broker, StartError
from kavka.config.broker_config import BrokerConfig
from kavka.config.sources import load_config
from tests.support.logged_errors import LoggedErrors
from tests.support.processes import wait_until
from tests.support.wire import Wire, batch_of, create_topic, produce, read_values

NOW_MS = 1_800_000_000_000


@pytest.fixture(autouse=True)
def errors() -> Iterator[LoggedErrors]:
    with LoggedErrors() as errors:
        yield errors


def test_two_brokers_in_one_process_serve_apart_and_leave_nothing_behind(tmp_path: Path) -> None:
    run_two(tmp_path / "warm")
    gc.collect()
    before = held()

    run_two(tmp_path / "counted")
    gc.collect()

    wait_until(lambda: held_besides(before) == [], 60, lambda: f"{held_besides(before)} came")


def test_a_broker_changes_nothing_of_its_process(tmp_path: Path) -> None:
    def process_wide() -> list[object]:
        return [
            sys.getswitchinterval(),
            gc.get_threshold(),
            gc.isenabled(),
            gc.get_freeze_count(),
            resource.getrlimit(resource.RLIMIT_NOFILE),
            [signal.getsignal(number) for number in signal.valid_signals()],
            signal.pthread_sigmask(signal.SIG_BLOCK, ()),
            os.umask(os.umask(0o22)) and None,
            Path.cwd(),
            dict(os.environ),
        ]

    before = process_wide()
    broker = started(tmp_path)
    during = process_wide()
    broker.stop()
    assert during == before
    assert process_wide() == before


def test_a_start_that_fails_takes_everything_back(tmp_path: Path) -> None:
    # Its background thread starts with the first job, which must not fall into the counting.
    later = [
        f"{name}=600000" for name in ("replica.high.watermark.checkpoint.interval.ms", "log.initial.task.delay.ms")
    ]
    first = Broker(configured(tmp_path / "first", *later, "producer.id.expiration.check.interval.ms=6000000"))
    first.start()
    try:
        taken = port_of(first)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            free = probe.getsockname()[1]
        failing = [
            configured(tmp_path / "first"),
            configured(tmp_path / "second", f"listeners=PLAINTEXT://127.0.0.1:{taken}"),
            configured(
                tmp_path / "second",
                f"listeners=A://127.0.0.1:{free},B://127.0.0.1:{taken}",
                "listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT",
                "inter.broker.listener.name=A",
            ),
            configured(tmp_path / "second", "metrics.host=127.0.0.1", f"metrics.port={taken}"),
            configured(tmp_path / "second", "zookeeper.connect=127.0.0.1:1", "zookeeper.connection.timeout.ms=300"),
        ]
        (tmp_path / "second").mkdir()
        for config in failing:
            with pytest.raises(StartError):
                Broker(config).start()
        gc.collect()
        before = held()
        for config in failing:
            with pytest.raises(StartError):
                Broker(config).start()
        gc.collect()
        wait_until(lambda: held_besides(before) == [], 60, lambda: f"{held_besides(before)} came")

        # And what failed can be had afterwards.
        with socket.create_connection(("127.0.0.1", taken)):
            pass
        second = started(tmp_path / "second")
        use(second, "topic")
        second.stop()
    finally:
        first.stop()


def test_records_keep_their_order_and_are_kept_when_the_clock_jumps_back(tmp_path: Path) -> None:
    clock = [NOW_MS]
    broker = started(tmp_path, now_ms=lambda: clock[0])
    with Wire("127.0.0.1", port_of(broker)) as client:
        create_topic(client, "stamped", configs={"message.timestamp.type": "LogAppendTime", "segment.ms": "3600000"})
        create_topic(client, "created", configs={"retention.ms": "3600000"})
        jumps = (0, 3_000_000, -86_400_000, 5_000, -40_000_000_000, 86_400_000)
        for number, jump_ms in enumerate(jumps):
            clock[0] += jump_ms
            for topic in ("stamped", "created"):
                batch = batch_of([b"%d" % number], timestamp_ms=clock[0])
                answer = produce(client, topic, batch)
                assert (answer.error_code, answer.base_offset) == (0, number)
                if topic == "stamped":
                    assert answer.log_append_time_ms == clock[0]
        broker.services.logs.retention_pass()
        expected = [b"%d" % number for number in range(len(jumps))]
        assert read_values(client, "stamped") == expected
        clock[0] -= 86_400_000
        create_topic(client, "made-in-the-past")
    broker.stop()

    clock[0] -= 86_400_000
    again = started(tmp_path, now_ms=lambda: clock[0])
    with Wire("127.0.0.1", port_of(again)) as client:
        assert read_values(client, "stamped") == expected
        assert produce(client, "stamped", batch_of([b"more"], timestamp_ms=clock[0])).base_offset == len(jumps)
        assert produce(client, "made-in-the-past", batch_of([b"x"], timestamp_ms=clock[0])).error_code == 0
    again.stop()


def run_two(directory: Path) -> None:
    brokers = [started(directory / "a"), started(directory / "b")]
    for number, broker in enumerate(brokers):
        use(broker, f"topic-{number}")
    ports = [port_of(broker) for broker in brokers]
    topics = [set(broker.services.metadata.current.topics) for broker in brokers]
    for broker in brokers:
        broker.stop()

    assert len(set(ports)) == 2
    assert topics == [{"topic-0"}, {"topic-1"}]
    for port in ports:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))


def use(broker: Broker, topic: str) -> None:
    with Wire("127.0.0.1", port_of(broker)) as client:
        create_topic(client, topic, 3)
        produce(client, topic, batch_of([b"1", b"2"], timestamp_ms=NOW_MS), partition=2, acks=-1)
        assert read_values(client, topic, partition=2) == [b"1", b"2"]


def started(directory: Path, now_ms: Callable[[], int] | None = None) -> Broker:
    config = configured(directory)
    broker = Broker(config) if now_ms is None else Broker(config, clock=SYSTEM_CLOCK._replace(now_ms=now_ms))
    broker.start()
    return broker


def configured(directory: Path, *overrides: str) -> BrokerConfig:
    settings = ["listeners=PLAINTEXT://127.0.0.1:0", f"log.dirs={directory}", *overrides]
    return load_config(None, settings, {}).config


def port_of(broker: Broker) -> int:
    return int(broker.endpoints_text().rpartition(":")[2])


def held() -> Counter[str]:
    """What the process has: threads by their names, and descriptors."""
    found = Counter(thread.name for thread in threading.enumerate())
    found["descriptors"] = len(list(Path("/proc/self/fd").iterdir()))
    return found


def held_besides(before: Counter[str]) -> list[str]:
    """What has come since. What has gone may have been left by another test."""
    return sorted((held() - before).elements())
