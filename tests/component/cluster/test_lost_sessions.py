"""A broker whose session with ZooKeeper is lost: its term and its epoch end, and it comes back under new ones."""

import socket
from collections.abc import Iterable, Iterator

import pytest

from kavka.cluster.broker_registration import BrokerRegistration, prepare_tree
from kavka.cluster.controller.controller import Controller
from kavka.cluster.registry.base import SessionEvent
from kavka.cluster.registry.zookeeper import ZooKeeperRegistry
from kavka.cluster.znodes.broker import BrokerInfo
from kavka.protocol.errors import BrokerError, ErrorCode
from tests.support.controller_stage import Clock, Settings, wait
from tests.support.fake_brokers import FakeBroker, FakeCluster, broker_info
from tests.support.processes import wait_until
from tests.support.registries import client_of, expire_session, new_root, open_zookeeper
from tests.support.zookeeper_process import ZooKeeperProcess

pytestmark = [pytest.mark.integration, pytest.mark.java]

PATIENCE_S = 60.0


class Candidate:
    """A broker that registers and stands for election, on a session of its own."""

    def __init__(self, zookeeper: ZooKeeperProcess, root: str, broker_id: int) -> None:
        self.bootstrap = zookeeper.bootstrap
        self.registry: ZooKeeperRegistry = open_zookeeper(zookeeper.bootstrap, root)
        prepare_tree(self.registry)
        self.cluster = Brokers(self.registry)
        self.cluster.brokers[broker_id] = FakeBroker(broker_id)
        clock = Clock()
        self.registration = BrokerRegistration(self.registry, broker_info(broker_id), clock)
        self.epochs = [self.registration.register()]
        self.controller = Controller(
            self.registry, broker_id, self.cluster, Settings(), clock, registration=self.registration
        )
        self.epochs_at_loss: list[int] = []
        wait(self.controller.start())
        # After the controller's own listener: what it does at once has been done.
        self.registry.on_session_event(self._on_session_event)

    def _on_session_event(self, event: SessionEvent) -> None:
        if event is SessionEvent.EXPIRED:
            self.epochs_at_loss.append(self.registration.broker.epoch)

    def expire(self) -> None:
        expire_session(self.registry, self.bootstrap)

    def close(self) -> None:
        self.registry.stop_waiting()
        self.controller.stop()
        self.registry.close()


def controller_epoch(candidate: Candidate) -> int:
    return int(candidate.registry.get("/controller_epoch")[0])


class Brokers(FakeCluster):
    """Remembers which brokers a controller knew."""

    def __init__(self, registry: ZooKeeperRegistry) -> None:
        super().__init__(registry)
        self.lives: list[set[int]] = []

    def update_brokers(self, brokers: Iterable[BrokerInfo]) -> None:
        super().update_brokers(brokers)
        self.lives.append(set(self.known))


@pytest.fixture
def root() -> str:
    return new_root()


@pytest.fixture
def first(zookeeper: ZooKeeperProcess, root: str) -> Iterator[Candidate]:
    candidate = Candidate(zookeeper, root, 1)
    yield candidate
    candidate.close()


def test_a_lost_session_ends_term_and_epoch_and_the_broker_comes_back_under_new_ones(first: Candidate) -> None:
    before = first.registration.broker.epoch
    assert first.registry.get("/controller_epoch")[0] == b"1"

    first.expire()

    wait_until(lambda: first.registration.broker.epoch > before, PATIENCE_S, "not registered again")
    assert first.epochs_at_loss == [-1]
    wait_until(lambda: controller_epoch(first) >= 2, PATIENCE_S, "not elected again")
    wait_until(lambda: first.controller.stats().is_active, PATIENCE_S, "no term")
    # Nobody stands for election without being registered: each term begins with this broker alive.
    assert [lives for lives in first.cluster.lives if 1 not in lives] == []
    owners = {first.registry.get(path)[1].ephemeral_owner for path in ("/brokers/ids/1", "/controller")}
    assert owners == {first.registry.session_id}
    assert first.registry.get("/brokers/ids/1")[1].czxid == first.registration.broker.epoch
    assert wait(first.controller.create_topics([], validate_only=True)) == []


def test_another_broker_takes_over_and_the_deposed_one_follows(
    first: Candidate, zookeeper: ZooKeeperProcess, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = Candidate(zookeeper, root, 2)
    try:
        assert second.controller.controller_id == 1
        # So that the second one is faster.
        monkeypatch.setattr(first.registration, "end", lambda: wait_until(lambda: second.controller.is_active, 60, ""))
        first.expire()
        wait_until(lambda: first.controller.controller_id == 2, PATIENCE_S, "the old controller does not follow")
        assert not first.controller.is_active
        with pytest.raises(BrokerError) as refusal:
            wait(first.controller.create_topics([]))
        assert refusal.value.code == ErrorCode.NOT_CONTROLLER
        wait_until(lambda: second.registry.children("/brokers/ids") == ["1", "2"], PATIENCE_S, "not registered")
    finally:
        second.close()


def test_nodes_that_a_lost_session_has_left_are_replaced(first: Candidate) -> None:
    """KAFKA-7165: the client knows of its session's end before ZooKeeper does."""
    before = first.registration.broker.epoch
    old_session = first.registry.session_id
    client_of(first.registry)._connection._read_socket = None
    wait_until(lambda: first.registration.broker.epoch > before, PATIENCE_S, "not registered again")
    wait_until(lambda: controller_epoch(first) >= 2, PATIENCE_S, "not elected again")
    assert first.registry.session_id != old_session
    owners = {first.registry.get(path)[1].ephemeral_owner for path in ("/brokers/ids/1", "/controller")}
    assert owners == {first.registry.session_id}


def test_a_lost_connection_ends_nothing(first: Candidate) -> None:
    epoch, session_id = first.registration.broker.epoch, first.registry.session_id
    client_of(first.registry)._connection._socket.shutdown(socket.SHUT_RDWR)
    wait_until(lambda: first.registry.session_counts.connects == 2, PATIENCE_S, "no other connection")
    assert wait(first.controller.create_topics([], validate_only=True)) == []
    assert (first.registration.broker.epoch, first.registry.session_id) == (epoch, session_id)
    assert first.registry.get("/controller_epoch")[0] == b"1"
    assert first.epochs_at_loss == []
