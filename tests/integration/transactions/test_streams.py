"""Kafka Streams with exactly_once_v2: repartition and changelog topics, transactions, an assignor of its own."""

from collections import Counter, defaultdict
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from tests.support.java_programs import java_command
from tests.support.processes import Process, wait_until
from tests.support.server import RunningServer
from tests.support.topics import create_topic
from tests.support.transactions import READ_COMMITTED, end_offset

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(900)]
BROKER_SETTINGS = {"group.min.session.timeout.ms": "1000", "group.initial.rebalance.delay.ms": "100"}
LINES = 300
WORDS = 7
TIMEOUT_S = 180.0


def test_words_are_counted_exactly_once_over_kills(broker: RunningServer, tmp_path: Path, topic: str) -> None:
    """Each count is written once and follows the one before, although the application and the broker are killed."""
    source, target = f"{topic}.lines", f"{topic}.counts"
    create_topic(broker, source, partitions=2)
    create_topic(broker, target)
    arguments = (broker.bootstrap, source, target, topic, tmp_path / "state")
    command = java_command("WordCount", *arguments, bundle="streams-4.3", heap="256m")
    lines = [" ".join(f"w{(number * step) % WORDS}" for step in (1, 2, 3)) for number in range(LINES)]
    log = tmp_path / "streams.log"
    with Process(command, log) as application:
        _produce(broker, source, lines[:100])
        _wait_for_some(broker, target, 1, application)
        application.kill()
    with Process(command, log) as application:
        _produce(broker, source, lines[100:200])
        _wait_for_some(broker, target, 301, application)
        broker.kill()
        broker.start()
        _produce(broker, source, lines[200:])
        counts = _read_counts(broker, target, LINES * 3, application)
        application.kill()

    expected = Counter(word for line in lines for word in line.split())
    assert counts == {word: list(range(1, count + 1)) for word, count in expected.items()}


def _produce(broker: RunningServer, topic: str, lines: list[str]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "log_level": 2})
    for number, line in enumerate(lines):
        producer.produce(topic, line, partition=number % 2)
    assert producer.flush(TIMEOUT_S) == 0


def _wait_for_some(broker: RunningServer, topic: str, offset: int, application: Process) -> None:
    def is_there() -> bool:
        application.check_alive()
        return end_offset(broker, topic, READ_COMMITTED) >= offset

    wait_until(is_there, TIMEOUT_S, lambda: f"nothing is counted:\n{application.log_text()[-3000:]}")


def _read_counts(broker: RunningServer, topic: str, count: int, application: Process) -> dict[str, list[int]]:
    """The committed counts of each word in their order, once so many are there."""
    config = {"bootstrap.servers": broker.bootstrap, "group.id": "counts", "auto.offset.reset": "earliest"}
    consumer = Consumer({**config, "isolation.level": "read_committed", "enable.auto.commit": False, "log_level": 2})
    counts: dict[str, list[int]] = defaultdict(list)

    def has_all() -> bool:
        application.check_alive()
        for message in consumer.consume(1000, 0.5):
            assert message.error() is None, message.error()
            counts[(message.key() or b"").decode()].append(int(message.value() or b""))
        return sum(map(len, counts.values())) >= count

    try:
        consumer.subscribe([topic])
        wait_until(has_all, TIMEOUT_S, lambda: f"{dict(counts)}\n{application.log_text()[-3000:]}")
    finally:
        consumer.close()
    return dict(counts)
