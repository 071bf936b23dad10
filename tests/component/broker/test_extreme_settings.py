"""Whatever number a setting takes: the parts that use it live on, and the broker serves and stops."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from kavka.broker.settings.dynamic_config import THREAD_COUNTS
from kavka.config.broker_config import BrokerConfig
from kavka.config.errors import ConfigError
from kavka.config.setting import Setting
from kavka.config.values import DOUBLE, DOUBLE_MAX, INT, INT_MAX, LONG, LONG_MAX, Type
from kavka.protocol.errors import ErrorCode
from kavka.storage.cleaner.log_cleaner import LogCleaner
from tests.support.processes import wait_until
from tests.support.running_broker import BROKER_ID, HOST, RunningBroker
from tests.support.wire import BROKER, RawClient

HIGHEST = {INT: INT_MAX, LONG: LONG_MAX, Type.SHORT: 2**15 - 1, DOUBLE: DOUBLE_MAX}
TIMEOUT_S = 60.0
ELSEWHERE = {
    "broker.id": "says who the broker is",
    "node.id": "the same",
    "reserved.broker.max.id": "the same",
    "metrics.port": "is a port",
    "num.network.threads": "more threads than there can be are refused",
    "num.io.threads": "the same",
}
CLOSES = "max.connections"
"""Lowered, it has the broker close connections that it has, as in Kafka: the one that asks, too."""
IN_THE_WAY = {
    CLOSES: "lets in nobody",
    "max.connection.creation.rate": "the same",
    "socket.request.max.bytes": "no request is so small",
    "message.max.bytes": "no batch is so small",
    "log.message.timestamp.before.max.ms": "no batch is so new",
    "log.message.timestamp.after.max.ms": "the same",
    "log.message.timestamp.difference.max.ms": "the same",
    "offsets.topic.num.partitions": "so many cannot be made",
    "transaction.state.log.num.partitions": "the same",
}
"""These keep clients from what the test looks at, where all are set at once."""


def numbers() -> Iterator[Setting]:
    """The rows of numbers that code reads."""
    for row in BrokerConfig.rows():
        if row.type in HIGHEST and row.ignored is None and row.name not in ELSEWHERE:
            yield row


def extremes(row: Setting) -> list[str]:
    """Of what the row takes: the highest, and those where rules begin and end."""
    highest = HIGHEST[row.type]
    return [text for text in map(str, (highest, 1, 0, -1, -highest)) if is_taken({row.name: text})]


def looks_again(cleaner: LogCleaner, since_ms: int) -> None:
    """Wait until the cleaner, which a change has woken, has looked for work since."""
    wait_until(lambda: cleaner.looked_at_ms >= since_ms, TIMEOUT_S, "the cleaner doesn't look for work")


def is_taken(settings: Mapping[str, str]) -> bool:
    try:
        BrokerConfig(settings)
    except ConfigError:
        return False
    return True


def test_a_running_broker_lives_on_with_every_extreme_of_what_can_change(tmp_path: Path) -> None:
    rows = [row for row in numbers() if row.is_dynamic and row.name not in (*THREAD_COUNTS, CLOSES)]
    changes = [(row.name, text) for row in rows for text in extremes(row)]
    assert len(changes) > 80
    with RunningBroker(tmp_path, {"log.cleaner.backoff.ms": "1"}) as running, RawClient(HOST, running.port) as client:
        client.create_topic("visits", cleanup_policy="compact")
        for name, text in changes:
            before_ms = time.time_ns() // 1_000_000
            assert client.alter(BROKER, BROKER_ID, [(name, text)]).error_code == ErrorCode.NONE, (name, text)
            if "cleaner" in name:
                looks_again(running.broker.services.cleaner, before_ms)
            assert client.alter(BROKER, BROKER_ID, [(name, None)]).error_code == ErrorCode.NONE, name
            assert running.broker.fatal_reason is None, (name, text)
        assert client.produce("visits", b"still here").error_code == ErrorCode.NONE


@pytest.mark.parametrize("highest", [True, False])
def test_a_broker_starts_serves_and_stops_with_all_numbers_at_an_extreme(tmp_path: Path, highest: bool) -> None:
    settings: dict[str, str] = {}
    for row in numbers():
        for text in sorted(extremes(row), key=float, reverse=highest):
            if row.name not in IN_THE_WAY and is_taken({**settings, row.name: text}):
                settings[row.name] = text
                break
    assert len(settings) > 60
    with RunningBroker(tmp_path, settings) as running:
        with RawClient(HOST, running.port) as client:
            client.create_topic("visits")
            assert client.produce("visits", b"here").error_code == ErrorCode.NONE
        assert running.broker.fatal_reason is None
    assert running.broker.fatal_reason is None
