"""A broker finds its cluster, takes a number, and appears while its session lives."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import SimpleNamespace
from typing import Any
from unittest.mock import ANY

import pytest

from kavka.cluster import broker_registration as broker_registration_module
from kavka.cluster.broker_registration import (
    BrokerIdInUseError,
    BrokerRegistration,
    cluster_id,
    generate_broker_id,
    prepare_tree,
)
from kavka.cluster.registry.base import Create, NodeExistsError, NoNodeError, Registry, Stat
from kavka.cluster.znodes import PERSISTENT_PATHS
from kavka.cluster.znodes.broker import BrokerInfo
from kavka.cluster.znodes.json_data import ZnodeError
from kavka.protocol.schema import text_to_uuid
from tests.support.controller_stage import Stage
from tests.support.fake_brokers import broker_info
from tests.support.interleaving import Interleaving, TurnLock


def test_the_trunk_is_made_once(stage: Stage) -> None:
    before = stage.registry.get("/brokers")[1]
    prepare_tree(stage.registry)
    assert stage.registry.get("/brokers")[1] == before
    assert None not in stage.registry.get_many(PERSISTENT_PATHS)


def test_the_cluster_keeps_the_id_that_its_first_broker_gave_it(stage: Stage) -> None:
    first = cluster_id(stage.registry, "Qiv73oR_Q2yY6Sd4GtGjwQ")
    assert (first, cluster_id(stage.registry, "another")) == ("Qiv73oR_Q2yY6Sd4GtGjwQ",) * 2
    stage.registry.set("/cluster/id", b"{}")
    with pytest.raises(ZnodeError):
        cluster_id(stage.registry)


def test_a_new_cluster_gets_a_random_id(stage: Stage) -> None:
    assert len(text_to_uuid(cluster_id(stage.registry))) == 16


def test_generated_ids_lie_above_those_set_by_hand_and_never_repeat(stage: Stage) -> None:
    assert [generate_broker_id(stage.registry, 1000) for _ in range(3)] == [1001, 1002, 1003]


def test_a_registered_broker_is_there_for_its_session_with_the_czxid_as_epoch(stage: Stage) -> None:
    registration = BrokerRegistration(stage.registry, broker_info(1), stage.clock)
    epoch = registration.register()
    data, stat = stage.registry.get("/brokers/ids/1")
    assert stat.czxid == epoch == registration.broker.epoch
    assert BrokerInfo.decode(1, data, epoch) == registration.broker
    assert registration.broker.timestamp_ms == stage.clock.time_ms
    moved = registration.broker._replace(rack="r2")
    registration.update(moved)
    assert BrokerInfo.decode(1, stage.registry.get("/brokers/ids/1")[0], epoch).rack == "r2"
    assert registration.register() == epoch
    registration.unregister()
    registration.unregister()
    assert stage.registry.children("/brokers/ids") == []
    assert registration.register() > epoch


def test_a_restarted_broker_has_a_later_epoch(stage: Stage) -> None:
    first = BrokerRegistration(stage.registry, broker_info(1), stage.clock).register()
    stage.restart()
    assert stage.registry.children("/brokers/ids") == []
    assert BrokerRegistration(stage.registry, broker_info(1), stage.clock).register() > first


class OtherSession:
    """The registry as a broker of another session sees it. `after_refusal` runs once, when a node is there already."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.session_id = registry.session_id + 1
        self.past_session_ids: set[int] = set()
        self.after_refusal: Callable[[], object] | None = None

    def is_own_session(self, session_id: int) -> bool:
        return session_id == self.session_id or session_id in self.past_session_ids

    def create(self, path: str, *arguments: Any, **options: Any) -> object:
        try:
            return self._registry.create(path, *arguments, **options)
        except NodeExistsError:
            after, self.after_refusal = self.after_refusal, None
            if after is not None:
                after()
            raise

    def __getattr__(self, name: str) -> object:
        return getattr(self._registry, name)


def test_an_id_that_a_live_broker_has_is_refused(stage: Stage) -> None:
    assert isinstance(stage.registry.set("/brokers/seqid", b""), Stat)
    stage.registry.multi([Create("/brokers/ids/1", broker_info(1).encode(), ephemeral=True)])
    other: Registry = OtherSession(stage.registry)  # type: ignore[assignment]  # delegates all else
    with pytest.raises(BrokerIdInUseError, match=r"has the id 1, at PLAINTEXT://127.0.0.1:9001; give"):
        BrokerRegistration(other, broker_info(1), stage.clock).register()
    stage.registry.set("/brokers/ids/1", b"unreadable")
    with pytest.raises(BrokerIdInUseError, match="has the id 1, at unreadable"):
        BrokerRegistration(other, broker_info(1), stage.clock).register(0.01)


def test_the_registration_of_a_broker_that_was_killed_is_waited_for(stage: Stage) -> None:
    stage.registry.create("/brokers/ids/1", broker_info(1).encode(), ephemeral=True)
    other = OtherSession(stage.registry)
    waits = threading.Event()
    other.after_refusal = waits.set
    registration = BrokerRegistration(other, broker_info(1), stage.clock)  # type: ignore[arg-type]  # delegates all else
    with ThreadPoolExecutor() as threads:
        registered = threads.submit(registration.register, 60)
        assert waits.wait(60)
        stage.registry.delete("/brokers/ids/1")
        assert registered.result(60) == stage.registry.get("/brokers/ids/1")[1].czxid


def test_what_an_earlier_session_of_its_own_has_left_is_removed(stage: Stage) -> None:
    """KAFKA-7165: the broker knows that its session is lost before ZooKeeper has taken its nodes away."""
    stage.registry.create("/brokers/ids/1", broker_info(1).encode(), ephemeral=True)
    before = stage.registry.get("/brokers/ids/1")[1]
    other = OtherSession(stage.registry)
    other.past_session_ids.add(before.ephemeral_owner)
    registration = BrokerRegistration(other, broker_info(1), stage.clock)  # type: ignore[arg-type]  # delegates all else
    epoch = registration.register()
    assert epoch == stage.registry.get("/brokers/ids/1")[1].czxid > before.czxid
    assert registration.is_current
    registration.end()
    assert registration.broker.epoch == -1


def test_an_earlier_sessions_node_that_goes_just_then_is_no_obstacle(stage: Stage) -> None:
    stage.registry.create("/brokers/ids/1", broker_info(1).encode(), ephemeral=True)
    other = OtherSession(stage.registry)
    other.after_refusal = lambda: stage.registry.delete("/brokers/ids/1")
    registration = BrokerRegistration(other, broker_info(1), stage.clock)  # type: ignore[arg-type]  # delegates all else
    assert registration.register() == stage.registry.get("/brokers/ids/1")[1].czxid


def test_a_broker_that_registers_again_in_its_session_announces_its_endpoints_and_keeps_its_epoch(stage: Stage) -> None:
    registration = BrokerRegistration(stage.registry, broker_info(1), stage.clock)
    epoch = registration.register()
    stage.registry.set("/brokers/ids/1", b"{}")
    stage.clock.time_ms += 1000
    assert registration.register() == epoch
    data, stat = stage.registry.get("/brokers/ids/1")
    assert stat.czxid == epoch
    assert BrokerInfo.decode(1, data, epoch) == registration.broker
    assert registration.broker.timestamp_ms == stage.clock.time_ms


def test_a_broker_whose_registration_has_ended_leaves_its_successors_alone(stage: Stage) -> None:
    late = BrokerRegistration(stage.registry, broker_info(1), stage.clock)
    late.register()
    stage.registry.delete("/brokers/ids/1")
    successor = BrokerRegistration(stage.registry, broker_info(1)._replace(rack="new"), stage.clock)
    successor.register()

    late.unregister()
    with pytest.raises(NoNodeError):
        late.update(late.broker._replace(rack="old"))

    assert BrokerInfo.decode(1, stage.registry.get("/brokers/ids/1")[0], 0).rack == "new"
    successor.unregister()
    assert stage.registry.children("/brokers/ids") == []


def test_a_session_that_ends_while_its_broker_registers_leaves_no_epoch(stage: Stage) -> None:
    """Its end may be heard before the epoch is noted, which nobody would take back any more."""

    class Ending:
        """A registry whose session ends when the node was made and before that is known."""

        session_id = 1
        registration: BrokerRegistration

        def create(self, *arguments: Any, **others: Any) -> Any:
            made = stage.registry.create(*arguments, **others)
            self.session_id = 0
            self.registration.end()
            return made

    ending: Any = Ending()
    registration = ending.registration = BrokerRegistration(ending, broker_info(1), stage.clock)
    registration.register()
    assert registration.broker.epoch == -1
    assert not registration.is_current


class OneNode:
    """A registry that has a broker's node or none, in a session that is lost and followed by the next one."""

    def __init__(self) -> None:
        self.session_id = 1
        self.node: tuple[bytes, Stat] | None = None
        self._zxid = 0

    def create(self, path: str, data: bytes, *, ephemeral: bool) -> Stat:
        self._zxid += 1
        self.node = data, Stat(self._zxid, self._zxid, 0, 0, 0, 0, 0, self.session_id, len(data), 0)
        return self.node[1]

    def get_many(self, paths: list[str]) -> list[tuple[bytes, Stat] | None]:
        return [self.node]

    def set(self, path: str, data: bytes, version: int) -> None:
        if self.node is None or self.node[1].version != version:
            raise NoNodeError(path)
        self.node = data, self.node[1]._replace(version=version + 1)

    def end_session(self) -> None:
        self.session_id += 1
        self.node = None


@pytest.mark.parametrize("seed", range(150))
def test_endpoints_that_are_announced_while_a_session_is_followed_by_another_leave_it_its_epoch(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the former one the controller would refuse all that the broker asks of it, for good."""
    turns = Interleaving(seed, (broker_registration_module,), chance=0.1)
    registry: Any = OneNode()
    threading_of_turns = SimpleNamespace(Lock=lambda: TurnLock(turns), Event=threading.Event)
    monkeypatch.setattr(broker_registration_module, "threading", threading_of_turns)
    registration = BrokerRegistration(registry, broker_info(1), lambda: 1)
    registration.register()
    announced = broker_info(1)._replace(rack="new")

    def renew() -> None:
        registry.end_session()
        registration.end()
        registration.register()

    def announce() -> None:
        with suppress(NoNodeError):
            registration.update(announced)

    turns.run(renew, announce)
    # Who could not announce them does so later.
    announce()

    data, stat = registry.node
    assert registration.broker.epoch == registration.latest_epoch == stat.czxid == 2
    assert BrokerInfo.decode(1, data, 2) == registration.broker == announced._replace(timestamp_ms=ANY, epoch=2)
