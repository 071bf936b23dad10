"""Real processes for the tests below: a Kavka per module, an Apache Kafka per session when one is asked for."""

import os
import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.support import maven
from tests.support.kafka_process import KRaftKafka, ZooKeeperKafka
from tests.support.kavka_process import KavkaProcess
from tests.support.server import RunningServer

TESTED = {"kavka": KavkaProcess, "kafka-4.3": KRaftKafka, "kafka-3.9": ZooKeeperKafka}
PROMPT = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "10000",
}
"""Kafka else looks every ten seconds for transactions that have timed out, lets members hear news every five, and
takes them for dead after 45."""
_SHARED = {"share.coordinator.state.topic.replication.factor": "1", "share.coordinator.state.topic.min.isr": "1"}
"""One broker's share groups."""
_numbers = count(1)


def broker_class() -> type[KavkaProcess | KRaftKafka | ZooKeeperKafka]:
    """What stands behind `broker`, for tests that start, stop and kill their own."""
    return TESTED[os.environ.get("TESTED_BROKER", "kavka")]


@pytest.fixture(scope="module")
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A fresh `kavka broker`; the module's tests share it, each with topics of its own.

    TESTED_BROKER=kafka-4.3 (or kafka-3.9) runs them against Apache Kafka: a test that fails there asks for too much.
    A module that needs settings says `BROKER_SETTINGS = {"message.max.bytes": "..."}` at its top.
    """
    settings: dict[str, str] = getattr(request.module, "BROKER_SETTINGS", {})
    with broker_class()(tmp_path_factory.mktemp("broker"), settings) as process:
        yield process


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic name that no other test uses; creating it is the test's."""
    return f"{request.node.originalname.removeprefix('test_')[:80].replace('_', '-')}.{next(_numbers)}"


@pytest.fixture(scope="session")
def kafka39(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperKafka]:
    """Apache Kafka 3.9 with ZooKeeper: the oracle for what a broker answers."""
    maven.classpath("kafka-3.9")
    with ZooKeeperKafka(tmp_path_factory.mktemp("kafka39"), PROMPT) as process:
        yield process


@pytest.fixture(scope="session")
def kafka43(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KRaftKafka]:
    """Apache Kafka 4.3 in KRaft mode: the oracle for what newer clients see."""
    maven.classpath("kafka-4.3")
    with KRaftKafka(tmp_path_factory.mktemp("kafka43"), {**PROMPT, **_SHARED}) as process:
        yield process


@pytest.fixture(scope="session")
def kcat() -> Path:
    """The kcat program. Skips where it is missing."""
    for name in ("kcat", "kafkacat"):
        found = shutil.which(name)
        if found:
            return Path(found)
    pytest.skip("kcat is not installed (Debian: apt-get install kcat)")
