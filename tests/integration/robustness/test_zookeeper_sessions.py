"""A broker's process and its session with ZooKeeper: killed, stopped for longer than that lasts, without a server."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kavka.cluster.registry.zookeeper import ZooKeeperRegistry
from tests.support import maven
from tests.support.kavka_process import KavkaProcess
from tests.support.processes import wait_until
from tests.support.registries import new_root, open_zookeeper
from tests.support.wire import RawClient
from tests.support.zookeeper_process import BUNDLE, ZooKeeperProcess

pytestmark = pytest.mark.java

PATIENCE_S = 120.0
SESSION_MS = 10_000
"""So long that the registration of a broker that was killed is still there when it is looked for."""
REGISTRATION = "/brokers/ids/7"


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperProcess]:
    """One that may be killed."""
    maven.classpath(BUNDLE)
    with ZooKeeperProcess(tmp_path_factory.mktemp("zookeeper")) as process:
        yield process


@pytest.fixture
def connect(zookeeper: ZooKeeperProcess) -> str:
    return zookeeper.bootstrap + new_root()


@pytest.fixture
def tree(connect: str) -> Iterator[ZooKeeperRegistry]:
    registry = open_zookeeper(connect, "")
    yield registry
    registry.close()


def on_zookeeper(directory: Path, connect: str) -> KavkaProcess:
    settings = {
        "broker.id": "7",
        "zookeeper.connect": connect,
        "zookeeper.session.timeout.ms": str(SESSION_MS),
        "zookeeper.connection.timeout.ms": "60000",
    }
    return KavkaProcess(directory, settings)


def produce_and_read(broker: KavkaProcess, value: bytes) -> None:
    with RawClient(broker.host, broker.port) as client:
        assert client.produce("visits", value).error_code == 0
        assert value in client.fetch("visits")


def test_a_killed_broker_starts_again_at_once_and_waits_for_its_own_registration(
    tmp_path: Path, connect: str, tree: ZooKeeperRegistry
) -> None:
    with on_zookeeper(tmp_path, connect) as broker:
        with RawClient(broker.host, broker.port) as client:
            client.create_topic("visits")
        produce_and_read(broker, b"before")
        epoch = tree.get(REGISTRATION)[1].czxid

        broker.kill()
        assert tree.exists(REGISTRATION) is not None
        broker.start()

        assert tree.get(REGISTRATION)[1].czxid > epoch
        produce_and_read(broker, b"after")
        with RawClient(broker.host, broker.port) as client:
            assert b"before" in client.fetch("visits")


def test_a_broker_that_stood_still_for_longer_than_its_session_comes_back_unaided(
    tmp_path: Path, connect: str, tree: ZooKeeperRegistry
) -> None:
    with on_zookeeper(tmp_path, connect) as broker:
        with RawClient(broker.host, broker.port) as client:
            client.create_topic("visits")
        epoch = tree.get(REGISTRATION)[1].czxid
        os.kill(broker.process.pid, signal.SIGSTOP)
        try:
            wait_until(lambda: tree.exists(REGISTRATION) is None, PATIENCE_S, "the session does not expire")
        finally:
            os.kill(broker.process.pid, signal.SIGCONT)
        wait_until(lambda: tree.exists(REGISTRATION), PATIENCE_S, "not registered again")
        assert tree.get(REGISTRATION)[1].czxid > epoch
        wait_until(lambda: tree.exists("/controller"), PATIENCE_S, "nobody stands for election")
        produce_and_read(broker, b"after")
        with RawClient(broker.host, broker.port) as client:
            client.create_topic("made.afterwards")


def test_a_zookeeper_that_was_gone_is_found_again(tmp_path: Path, connect: str, zookeeper: ZooKeeperProcess) -> None:
    with on_zookeeper(tmp_path, connect) as broker:
        with RawClient(broker.host, broker.port) as client:
            client.create_topic("visits")
        zookeeper.kill()
        broker.process.wait_for_log("connection to ZooKeeper is lost", PATIENCE_S)
        produce_and_read(broker, b"meanwhile")
        zookeeper.start()
        with RawClient(broker.host, broker.port) as client:
            client.create_topic("made.afterwards")
        produce_and_read(broker, b"after")
