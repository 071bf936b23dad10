"""Replicas that a broker could not host for a while, deletions that it could not do: its notice says to ask again."""

import threading
from collections.abc import Iterable, Sequence
from typing import NoReturn

import pytest

from kavka.cluster.controller.context import Replica
from kavka.cluster.controller.controller import Controller
from kavka.cluster.controller.requests import NewPartitions, NewTopic
from kavka.cluster.ports import ControlRequest, OnResponse, call
from kavka.cluster.registry.base import (
    Check,
    Delete,
    NotPermittedError,
    Operation,
    RegistryError,
    RegistryUnavailableError,
    Result,
)
from kavka.cluster.znodes.broker import BrokerInfo
from kavka.cluster.znodes.notifications import LogDirEvent
from kavka.cluster.znodes.topic import PartitionState
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from kavka.protocol.messages.stop_replica import StopReplicaRequest
from tests.support.controller_stage import Stage, wait
from tests.support.fake_brokers import Known
from tests.support.processes import wait_until


def state(stage: Stage) -> PartitionState:
    data, stat = stage.registry.get(PartitionState.path("t", 0))
    return PartitionState.decode("t", 0, data, stat.version)


def notice(stage: Stage, controller: Controller, broker: int) -> None:
    stage.registry.create(LogDirEvent.PREFIX, LogDirEvent.encode(broker), sequential=True)
    stage.settle(controller)


def test_a_partition_that_was_refused_is_led_when_its_broker_can_host_it(stage: Stage) -> None:
    broker = stage.brokers(1).brokers[1]
    controller = stage.controller()
    broker.failing.add(("t", 0))
    wait(controller.create_topics([NewTopic("t", 1)]))
    assert (state(stage).leader, broker.metadata[("t", 0)]) == (-1, -1)

    broker.failing.clear()
    notice(stage, controller, 1)

    assert (state(stage).leader, broker.metadata[("t", 0)]) == (1, 1)
    assert broker.hosted[("t", 0)] == Known(1, state(stage).leader_epoch, (1,), state(stage).version)
    assert controller.stats().offline_partitions == 0


def test_a_replica_among_others_that_was_refused_follows_when_its_broker_can_host_it(stage: Stage) -> None:
    cluster = stage.brokers(1, 2)
    controller = stage.controller(2)
    cluster.brokers[1].failing.add(("t", 0))
    wait(controller.create_topics([NewTopic("t", assignments={0: [1, 2]})]))
    assert state(stage).leader == 2
    assert ("t", 0) not in cluster.brokers[1].hosted

    cluster.brokers[1].failing.clear()
    notice(stage, controller, 1)

    assert cluster.brokers[1].hosted[("t", 0)].leader == 2
    assert state(stage).leader == 2


def test_a_replica_that_is_still_refused_stays_offline(stage: Stage) -> None:
    broker = stage.brokers(1).brokers[1]
    controller = stage.controller()
    broker.failing.add(("t", 0))
    wait(controller.create_topics([NewTopic("t", 1)]))
    for _ in range(2):
        notice(stage, controller, 1)
        assert state(stage).leader == -1
        assert broker.metadata[("t", 0)] == -1

    broker.failing.clear()
    notice(stage, controller, 1)
    assert state(stage).leader == 1


def test_a_deletion_that_was_refused_is_finished_when_its_broker_can_do_it(stage: Stage) -> None:
    broker = stage.brokers(1).brokers[1]
    controller = stage.controller()
    wait(controller.create_topics([NewTopic("t", 1)]))
    broker.refusing_deletion = True
    wait(controller.delete_topics(["t"]))
    notice(stage, controller, 1)
    assert stage.registry.children("/admin/delete_topics") == ["t"]

    broker.refusing_deletion = False
    notice(stage, controller, 1)

    assert broker.deleted == [("t", 0)]
    assert stage.registry.children("/admin/delete_topics") == []
    assert wait(controller.create_topics([NewTopic("t", 1)]))[0].error is None


@pytest.mark.parametrize("refuses_deletion", [False, True])
def test_a_topic_that_could_not_be_hosted_is_deleted_unless_its_broker_refuses(
    stage: Stage, refuses_deletion: bool
) -> None:
    broker = stage.brokers(1).brokers[1]
    controller = stage.controller()
    broker.failing.add(("t", 0))
    wait(controller.create_topics([NewTopic("t", 1)]))
    broker.refusing_deletion = refuses_deletion

    wait(controller.delete_topics(["t"]))

    assert stage.registry.children("/admin/delete_topics") == (["t"] if refuses_deletion else [])
    assert ("t", 0) not in broker.metadata


def test_a_term_that_the_registry_ended_is_followed_by_another_that_nobody_asked_for(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full for a log is full for the registry, too: the refusal could not be noted."""
    cluster = stage.brokers(1)
    broker = cluster.brokers[1]
    controller = stage.controller()
    broker.failing.add(("t", 0))

    def full(*_: object) -> NoReturn:
        raise RegistryUnavailableError("full")

    def fill(_broker: int, request: ControlRequest) -> None:
        if isinstance(request, LeaderAndIsrRequest):
            monkeypatch.setattr(stage.registry, "pipeline", full)

    cluster.on_send = fill
    with pytest.raises(BrokerError):
        wait(controller.create_topics([NewTopic("t", 1)]))
    assert ("t", 0) not in broker.hosted

    cluster.on_send = lambda _broker, _request: None
    monkeypatch.undo()
    broker.failing.clear()
    controller.resume()

    wait_until(lambda: ("t", 0) in broker.hosted, 60, "nobody hosts the partition")
    stage.settle(controller)
    assert (broker.hosted[("t", 0)].leader, broker.metadata[("t", 0)]) == (1, 1)


def test_what_a_brokers_former_incarnation_did_not_do_holds_up_no_deletion(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = stage.brokers(1, 2)
    controller = stage.controller(1)
    wait(controller.create_topics([NewTopic("t", assignments={0: [1, 2]})]))
    send, update_brokers = cluster.send, cluster.update_brokers
    held: list[OnResponse] = []
    former = cluster.epoch(2)

    def hold(broker_id: int, request: ControlRequest, on_response: OnResponse) -> None:
        if broker_id == 2 and request.broker_epoch == former:
            held.append(on_response)
        else:
            send(broker_id, request, on_response)

    def give_up(brokers: Iterable[BrokerInfo]) -> None:
        update_brokers(brokers)
        for on_response in held:
            on_response(BrokerError(ErrorCode.BROKER_NOT_AVAILABLE, "it has registered anew"))
        held.clear()

    monkeypatch.setattr(cluster, "send", hold)
    monkeypatch.setattr(cluster, "update_brokers", give_up)
    wait(controller.delete_topics(["t"]))
    seen = threading.Event()
    controller._candidacy.submit(seen.wait)
    cluster.kill(2)
    returned = cluster.add(2)
    seen.set()

    wait_until(lambda: returned.deleted, 60, "it is not asked to delete")
    wait_until(lambda: not stage.registry.exists("/brokers/topics/t"), 60, "the deletion sticks")


class Held:
    """StopReplica requests that brokers have not answered yet."""

    def __init__(self, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
        self._send = stage.cluster.send
        self._brokers = stage.cluster.brokers
        self.requests: list[tuple[int, StopReplicaRequest, OnResponse]] = []
        self.is_holding = False
        monkeypatch.setattr(stage.cluster, "send", self.send)

    def send(self, broker_id: int, request: ControlRequest, on_response: OnResponse) -> None:
        if self.is_holding and isinstance(request, StopReplicaRequest):
            self.requests.append((broker_id, request, on_response))
        else:
            self._send(broker_id, request, on_response)

    def answer(self, broker_id: int) -> None:
        """The first of that broker's, as it stands now."""
        held = next(each for each in self.requests if each[0] == broker_id)
        self.requests.remove(held)
        held[2](call(self._brokers[broker_id], held[1]))


def test_a_replica_that_is_not_the_topics_any_more_holds_up_no_deletion(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = stage.brokers(1, 2)
    controller = stage.controller(1)
    wait(controller.create_topics([NewTopic("t", assignments={0: [1, 2]})]))
    held = Held(stage, monkeypatch)
    held.is_holding = True
    wait(controller.alter_reassignments({("t", 0): [1]}))
    wait(controller.delete_topics(["t"]))
    cluster.brokers[2].refusing_deletion = True
    held.answer(2)
    stage.settle(controller)
    while held.requests:
        held.answer(1)
    stage.settle(controller)

    wait_until(lambda: not stage.registry.exists("/brokers/topics/t"), 60, "the deletion sticks")


def test_an_order_to_delete_that_was_given_up_may_be_done_after_all(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = stage.brokers(1, 2)
    controller = stage.controller(1)
    wait(controller.create_topics([NewTopic("t", assignments={0: [2]})]))
    held = Held(stage, monkeypatch)
    held.is_holding = True
    wait(controller.delete_topics(["t"]))
    # Its disk failed meanwhile, says an answer to an order before.
    wait(controller._candidacy.in_term(lambda term: term.lose_replicas([Replica("t", 0, 2)])))
    notice(stage, controller, 2)
    assert len(held.requests) == 2
    cluster.brokers[2].refusing_deletion = True
    held.answer(2)
    stage.settle(controller)
    cluster.brokers[2].refusing_deletion = False
    held.answer(2)

    wait_until(lambda: not stage.registry.exists("/brokers/topics/t"), 60, "the deletion sticks")


def test_a_topic_without_partitions_is_deleted(stage: Stage) -> None:
    """As somebody wrote it by hand: nobody has anything to delete, and so nobody answers."""
    stage.brokers(1)
    controller = stage.controller(1)
    stage.registry.create("/brokers/topics/none", b'{"version":1,"partitions":{}}')
    stage.settle(controller)
    outcome = wait(controller.create_partitions([NewPartitions("none", 2)]))["none"]
    assert outcome is not None
    assert outcome.code is ErrorCode.INVALID_PARTITIONS
    assert wait(controller.delete_topics(["none"])) == {"none": None}
    stage.settle(controller)
    assert not stage.registry.exists("/brokers/topics/none")
    assert stage.registry.get("/controller_epoch")[0] == b"1"


def test_what_a_brokers_former_incarnation_said_of_its_disk_is_no_news_of_the_present_one(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = stage.brokers(1, 2)
    controller = stage.controller(1)
    send = cluster.send
    held: list[tuple[ControlRequest, OnResponse]] = []
    former = cluster.epoch(2)

    def hold(broker_id: int, request: ControlRequest, on_response: OnResponse) -> None:
        if broker_id == 2 and request.broker_epoch == former and isinstance(request, LeaderAndIsrRequest):
            held.append((request, on_response))
        else:
            send(broker_id, request, on_response)

    monkeypatch.setattr(cluster, "send", hold)
    broker = cluster.brokers[2]
    broker.failing.add(("t", 0))
    wait(controller.create_topics([NewTopic("t", assignments={0: [1, 2]})]))
    [(request, answer)] = held
    cluster.kill(2)
    stage.settle(controller)
    answer(call(broker, request))
    stage.settle(controller)
    cluster.add(2)
    stage.settle(controller)
    answer(call(broker, request))
    stage.settle(controller)
    offline = wait(controller._candidacy.in_term(lambda term: set(term.context.offline_replicas)))
    assert offline == set()


def test_nodes_that_cannot_be_removed_hold_up_their_own_topic_alone(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.brokers(1)
    controller = stage.controller(1)
    wait(controller.create_topics([NewTopic("guarded", 1), NewTopic("t", 1)]))
    pipeline = stage.registry.pipeline

    def refuse(operations: Sequence[Operation], guard: Check | None = None) -> list[Result | RegistryError]:
        is_refused = [isinstance(each, Delete) and each.path == "/brokers/topics/guarded" for each in operations]
        results = iter(pipeline([each for each, no in zip(operations, is_refused, strict=True) if not no], guard))
        return [NotPermittedError("no", "/brokers/topics/guarded") if no else next(results) for no in is_refused]

    with monkeypatch.context() as patched:
        patched.setattr(stage.registry, "pipeline", refuse)
        wait(controller.delete_topics(["guarded", "t"]))
        stage.settle(controller)
        assert stage.registry.children("/brokers/topics") == ["guarded"]
        assert stage.registry.children("/admin/delete_topics") == ["guarded"]
        assert wait(controller.create_topics([NewTopic("t", 1)]))[0].error is None
    notice(stage, controller, 1)
    assert stage.registry.children("/brokers/topics") == ["t"]
    assert stage.registry.get("/controller_epoch")[0] == b"1"
