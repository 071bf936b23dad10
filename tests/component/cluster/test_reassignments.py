"""Partitions move to other brokers while they are led and followed, whoever asks for it and whatever fails."""

import json
from collections.abc import Sequence
from typing import NoReturn

import pytest

from kavka.cluster.controller.controller import Controller
from kavka.cluster.controller.partition_states import PartitionStateMachine
from kavka.cluster.controller.requests import ElectionType, NewPartitions, NewTopic
from kavka.cluster.registry import base
from kavka.cluster.registry.base import RegistryError
from kavka.cluster.znodes.admin import PartitionReassignments
from kavka.cluster.znodes.topic import PartitionAssignment, PartitionState
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.leader_and_isr import LeaderAndIsrPartitionState, LeaderAndIsrRequest
from kavka.protocol.messages.stop_replica import StopReplicaRequest
from tests.support.controller_stage import Stage, wait
from tests.support.fake_brokers import FakeBroker

T0 = ("t", 0)


@pytest.fixture
def controller(stage: Stage) -> Controller:
    """Of five brokers, of which 1, 2 and 3 hold t-0."""
    stage.brokers(1, 2, 3, 4, 5)
    controller = stage.controller(3)
    assert wait(controller.create_topics([NewTopic("t", assignments={0: [1, 2, 3], 1: [1, 2, 3]})]))[0].error is None
    return controller


def move(controller: Controller, target: Sequence[int] | None, **others: bool) -> ErrorCode | None:
    error = wait(controller.alter_reassignments({T0: target}, **others))[T0]
    return error.code if error is not None else None


def last_told(broker: FakeBroker) -> LeaderAndIsrPartitionState:
    """What the broker heard last of t-0."""
    for request in reversed(broker.requests):
        if isinstance(request, LeaderAndIsrRequest):
            for topic in request.topic_states:
                for each in topic.partition_states:
                    if (topic.topic_name, each.partition_index) == T0:
                        return each
    raise AssertionError(f"broker {broker.broker_id} heard nothing of t-0")


def test_the_new_replicas_begin_to_follow_and_the_tree_says_where_it_goes(stage: Stage, controller: Controller) -> None:
    before = stage.state()
    assert move(controller, [4, 5, 1]) is None
    data = json.loads(stage.registry.get("/brokers/topics/t")[0])
    assert data["partitions"] == {"0": [4, 5, 1, 2, 3], "1": [1, 2, 3]}
    assert data["adding_replicas"] == {"0": [4, 5]}
    assert data["removing_replicas"] == {"0": [2, 3]}
    now = stage.state()
    assert (now.leader, now.leader_epoch, now.isr) == (1, before.leader_epoch + 1, (1, 2, 3))
    for broker in stage.cluster.brokers.values():
        told = last_told(broker)
        assert (told.leader_epoch, told.replicas) == (now.leader_epoch, [4, 5, 1, 2, 3])
        assert (told.adding_replicas, told.removing_replicas) == ([4, 5], [2, 3])
        assert told.is_new is (broker.broker_id in (4, 5))
    assert wait(controller.list_reassignments(None)) == {T0: PartitionAssignment((4, 5, 1, 2, 3), (4, 5), (2, 3))}
    assert wait(controller.list_reassignments([("t", 1), ("absent", 0)])) == {}


def test_it_is_complete_when_all_targets_are_in_sync_and_not_before(stage: Stage, controller: Controller) -> None:
    move(controller, [4, 5])
    assert stage.alter_isr(controller, 1, 2, 3, 4) is ErrorCode.NONE
    assert stage.assignment().removing == {0: (1, 2, 3)}
    assert stage.alter_isr(controller, 1, 2, 3, 4, 5) is ErrorCode.NONE
    assert stage.assignment().of(0) == PartitionAssignment((4, 5))
    assert json.loads(stage.registry.get("/brokers/topics/t")[0])["adding_replicas"] == {}
    now = stage.state()
    assert (now.leader, now.isr) == (4, (4, 5))
    for broker in (1, 2, 3):
        assert stage.cluster.brokers[broker].deleted == [T0]
        assert T0 not in stage.cluster.brokers[broker].hosted
    for broker in (4, 5):
        told = last_told(stage.cluster.brokers[broker])
        assert (told.leader, told.replicas, told.isr, told.adding_replicas) == (4, [4, 5], [4, 5], [])
    assert stage.cluster.brokers[1].metadata[T0] == 4
    assert wait(controller.list_reassignments(None)) == {}


def test_who_alone_was_in_sync_is_not_called_new_when_it_comes_back(stage: Stage, controller: Controller) -> None:
    """A broker makes a log for what is new, though a disk is away that has it, and would lead with that."""
    move(controller, [4, 5])
    assert stage.alter_isr(controller, 1, 4) is ErrorCode.NONE
    for broker in (1, 4):
        stage.cluster.kill(broker)
        stage.settle(controller)
    stage.cluster.add(4)
    stage.settle(controller)

    told = last_told(stage.cluster.brokers[4])
    assert (told.leader, told.isr, told.is_new) == (4, [4], False)


def test_a_leader_that_stays_goes_on_to_lead(stage: Stage, controller: Controller) -> None:
    move(controller, [4, 2, 1])
    stage.alter_isr(controller, 1, 2, 3, 4)
    now = stage.state()
    assert (now.leader, now.isr) == (1, (1, 2, 4))
    assert stage.assignment().of(0) == PartitionAssignment((4, 2, 1))


def test_new_replicas_that_are_in_sync_already_are_only_put_in_order(stage: Stage, controller: Controller) -> None:
    assert move(controller, [3, 2, 1]) is None
    assert stage.assignment().of(0) == PartitionAssignment((3, 2, 1))
    assert (stage.state().leader, stage.state().isr) == (1, (1, 2, 3))
    assert move(controller, [3]) is None
    assert stage.assignment().of(0) == PartitionAssignment((3,))
    assert (stage.state().leader, stage.state().isr) == (3, (3,))
    assert stage.cluster.brokers[1].deleted == stage.cluster.brokers[2].deleted == [T0]


def test_a_cancellation_goes_back_to_the_replicas_before(stage: Stage, controller: Controller) -> None:
    assert move(controller, None) is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    move(controller, [4, 5, 1])
    stage.alter_isr(controller, 1, 2, 3, 4)
    assert move(controller, None) is None
    # What stays comes first: the order before is lost where the two overlap, as in Kafka.
    assert stage.assignment().of(0) == PartitionAssignment((1, 2, 3))
    assert (stage.state().leader, stage.state().isr) == (1, (1, 2, 3))
    assert stage.cluster.brokers[4].deleted == stage.cluster.brokers[5].deleted == [T0]
    assert last_told(stage.cluster.brokers[2]).replicas == [1, 2, 3]
    assert move(controller, None) is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def test_another_target_replaces_the_first_one(stage: Stage, controller: Controller) -> None:
    move(controller, [4, 1])
    assert move(controller, [5, 1]) is None
    assert stage.assignment().of(0) == PartitionAssignment((5, 1, 2, 3), (5,), (2, 3))
    assert stage.cluster.brokers[4].deleted == [T0]
    assert stage.alter_isr(controller, 1, 2, 3, 4) is ErrorCode.INVALID_REQUEST
    stage.alter_isr(controller, 1, 2, 3, 5)
    assert stage.assignment().of(0) == PartitionAssignment((5, 1))


def test_a_replica_that_leads_and_is_no_longer_wanted_hands_over(stage: Stage, controller: Controller) -> None:
    move(controller, [4, 5])
    stage.alter_isr(controller, 1, 2, 3, 4)
    assert wait(controller.elect_leaders(ElectionType.PREFERRED, [T0])) == {T0: None}
    assert stage.state().leader == 4
    assert move(controller, None) is None
    now = stage.state()
    assert (now.leader, now.isr) == (1, (1, 2, 3))
    assert stage.cluster.brokers[4].deleted == [T0]
    assert last_told(stage.cluster.brokers[1]).leader == 1


def test_a_cancellation_that_would_lose_messages_is_refused(stage: Stage, controller: Controller) -> None:
    move(controller, [4, 5])
    stage.alter_isr(controller, 1, 4)
    stage.cluster.kill(1)
    stage.settle(controller)
    assert (stage.state().leader, stage.state().isr) == (4, (4,))
    assert move(controller, None) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert stage.assignment().adding == {0: (4, 5)}
    assert stage.cluster.brokers[4].deleted == []
    stage.alter_isr(controller, 4, 5)
    assert stage.assignment().of(0) == PartitionAssignment((4, 5))


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ([], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([-1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 9], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_an_impossible_target_is_refused_without_a_trace(
    stage: Stage, controller: Controller, target: list[int], error: ErrorCode
) -> None:
    before = stage.registry.get("/brokers/topics/t")
    assert move(controller, target) is error
    assert stage.registry.get("/brokers/topics/t") == before


def test_each_partition_has_its_own_outcome(stage: Stage, controller: Controller) -> None:
    outcomes = wait(controller.alter_reassignments({T0: [4], ("t", 1): [9], ("absent", 0): [1], ("t", 7): None}))
    codes = {partition: error.code if error else None for partition, error in outcomes.items()}
    assert codes == {
        T0: None,
        ("t", 1): ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ("absent", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("t", 7): ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
    }
    assert stage.assignment().adding == {0: (4,)}


def test_a_change_of_the_replication_factor_can_be_forbidden(stage: Stage, controller: Controller) -> None:
    assert move(controller, [4, 5], allow_factor_change=False) is ErrorCode.INVALID_REPLICATION_FACTOR
    assert move(controller, [4, 5, 1], allow_factor_change=False) is None
    assert move(controller, [4, 5], allow_factor_change=False) is ErrorCode.INVALID_REPLICATION_FACTOR


def test_replicas_that_die_may_stay_in_the_target_but_not_come_into_it(stage: Stage, controller: Controller) -> None:
    stage.cluster.kill(2)
    stage.cluster.kill(5)
    stage.settle(controller)
    assert move(controller, [5, 1]) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert move(controller, [4, 2]) is None
    stage.alter_isr(controller, 1, 3, 4)
    assert stage.assignment().adding == {0: (4,)}, "it waits for 2"
    stage.cluster.add(2)
    stage.settle(controller)
    stage.alter_isr(controller, 1, 3, 4, 2)
    assert stage.assignment().of(0) == PartitionAssignment((4, 2))


def test_a_new_replica_whose_broker_restarts_is_told_again(stage: Stage, controller: Controller) -> None:
    move(controller, [4, 1])
    stage.cluster.kill(4)
    stage.settle(controller)
    broker = stage.cluster.add(4)
    stage.settle(controller)
    told = last_told(broker)
    assert (told.leader, told.leader_epoch, told.adding_replicas) == (1, stage.state().leader_epoch, [4])


def test_a_later_controller_goes_on_with_it(stage: Stage, controller: Controller) -> None:
    move(controller, [4, 5])
    controller.stop()
    second = stage.controller(1)
    moving = wait(second.list_reassignments(None))
    assert list(moving) == [T0]
    stage.alter_isr(second, 1, 2, 3, 4, 5)
    assert stage.assignment().of(0) == PartitionAssignment((4, 5))


def test_a_controller_that_died_before_the_last_step_is_followed_by_one_that_takes_it(
    stage: Stage, controller: Controller
) -> None:
    move(controller, [4, 5])
    controller.stop()
    now = stage.state()
    stage.registry.set(PartitionState.path("t", 0), now._replace(isr=(1, 2, 3, 4, 5)).encode())
    stage.controller(1)
    assert stage.assignment().of(0) == PartitionAssignment((4, 5))
    assert (stage.state().leader, stage.state().isr) == (4, (4, 5))
    assert stage.cluster.brokers[1].deleted == [T0]


@pytest.mark.parametrize("leader", [1, 4])
def test_who_is_in_sync_and_not_assigned_any_more_is_let_go_by_the_next_term(
    stage: Stage, controller: Controller, monkeypatch: pytest.MonkeyPatch, leader: int
) -> None:
    """A controller may end between the assignment of a cancellation and the state: nothing is on the move then."""
    move(controller, [1, 2, 3, 4, 5])
    stage.alter_isr(controller, 1, 2, 4)
    now = stage.state()
    stage.registry.set(PartitionState.path("t", 0), now._replace(leader=leader).encode())

    def end(*_: object) -> NoReturn:
        raise RegistryError("the controller ends here")

    with monkeypatch.context() as ended:
        ended.setattr(PartitionStateMachine, "rewrite", end)
        with pytest.raises(BrokerError):
            wait(controller.alter_reassignments({T0: None}))
    assert stage.assignment().of(0) == PartitionAssignment((1, 2, 3))
    assert stage.state().isr == (1, 2, 4)

    stage.settle(controller)

    state = stage.state()
    assert (state.leader, state.isr) == (1, (1, 2))
    assert state.leader_epoch > now.leader_epoch
    assert stage.cluster.brokers[4].deleted == [T0]
    assert T0 not in stage.cluster.brokers[4].hosted
    assert last_told(stage.cluster.brokers[2]).leader_epoch == state.leader_epoch
    assert stage.alter_isr(controller, 1, 2, 3) is ErrorCode.NONE


def test_replicas_that_alone_are_in_sync_keep_what_they_have_though_they_are_not_assigned(
    stage: Stage, controller: Controller
) -> None:
    controller.stop()
    stage.registry.set(PartitionState.path("t", 0), stage.state()._replace(leader=4, isr=(4, 5)).encode())
    stage.controller(1)
    assert stage.state().isr == (4, 5)
    assert [stage.cluster.brokers[each].deleted for each in (4, 5)] == [[], []]


def test_a_reassignment_beyond_what_a_node_may_hold_is_refused_to_its_asker(
    stage: Stage, controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "MAX_DATA_SIZE_BYTES", len(stage.assignment().encode()))
    assert move(controller, [1, 2, 3, 4]) is ErrorCode.INVALID_REQUEST
    assert stage.assignment().of(0) == PartitionAssignment((1, 2, 3))
    assert stage.registry.get("/controller_epoch")[0] == b"1"
    assert move(controller, [3, 2, 1]) is None


def test_partitions_that_others_added_meanwhile_are_kept(stage: Stage, controller: Controller) -> None:
    stored = stage.assignment()
    grown = stored._replace(replicas={**stored.replicas, 2: (2, 3)})
    stage.registry.set("/brokers/topics/t", grown.encode())
    move(controller, [4, 1])
    stage.settle(controller)
    assert stage.assignment().replicas == {0: (4, 1, 2, 3), 1: (1, 2, 3), 2: (2, 3)}
    assert stage.state("t", 2).leader == 2


def test_a_topic_on_the_move_does_not_grow(stage: Stage, controller: Controller) -> None:
    move(controller, [4, 1])
    error = wait(controller.create_partitions([NewPartitions("t", 5)]))["t"]
    assert isinstance(error, BrokerError)
    assert error.code is ErrorCode.REASSIGNMENT_IN_PROGRESS


def test_a_topic_on_the_move_is_deleted_with_all_its_replicas(stage: Stage, controller: Controller) -> None:
    write_wish(stage, {T0: [4, 5]})
    stage.settle(controller)
    assert wait(controller.delete_topics(["t"])) == {"t": None}
    assert [T0 in broker.deleted for broker in stage.cluster.brokers.values()] == [True] * 5
    assert stage.registry.children("/brokers/topics") == []
    assert stage.registry.exists(PartitionReassignments.PATH) is None
    assert wait(controller.list_reassignments(None)) == {}


def test_the_replicas_that_go_are_stopped_after_the_others_took_over(stage: Stage, controller: Controller) -> None:
    move(controller, [4, 5])
    order: list[tuple[int, str]] = []
    stage.cluster.on_send = lambda broker, request: order.append((broker, type(request).__name__))
    stage.alter_isr(controller, 1, 2, 3, 4, 5)
    stops = [index for index, (_, name) in enumerate(order) if name == StopReplicaRequest.__name__]
    leads = [index for index, (_, name) in enumerate(order) if name == LeaderAndIsrRequest.__name__]
    assert len(stops) == 3
    assert max(leads) < min(stops)


# The node that old tools write


def write_wish(stage: Stage, targets: dict[tuple[str, int], list[int]]) -> None:
    stage.registry.create(PartitionReassignments.PATH, PartitionReassignments.encode(targets))


def test_what_an_old_tool_asks_for_is_done_and_the_node_goes_last(stage: Stage, controller: Controller) -> None:
    write_wish(stage, {T0: [4, 5], ("t", 1): [2, 1, 3], ("absent", 3): [1]})
    stage.settle(controller)
    left = PartitionReassignments.decode(stage.registry.get(PartitionReassignments.PATH)[0])
    assert left == {T0: (4, 5)}
    assert stage.assignment().of(1) == PartitionAssignment((2, 1, 3))
    stage.alter_isr(controller, 1, 2, 3, 4, 5)
    assert stage.registry.exists(PartitionReassignments.PATH) is None
    assert stage.assignment().of(0) == PartitionAssignment((4, 5))
    write_wish(stage, {T0: [1]})
    stage.settle(controller)
    assert stage.assignment().adding == {0: (1,)}


def test_an_old_tool_may_name_a_dead_broker_and_the_move_waits_for_it(stage: Stage, controller: Controller) -> None:
    stage.cluster.kill(5)
    stage.settle(controller)
    write_wish(stage, {T0: [5]})
    stage.settle(controller)
    assert stage.assignment().adding == {0: (5,)}
    broker = stage.cluster.add(5)
    stage.settle(controller)
    assert last_told(broker).is_new
    stage.alter_isr(controller, 1, 2, 3, 5)
    assert stage.assignment().of(0) == PartitionAssignment((5,))


def test_a_wish_written_while_nobody_was_the_controller_is_taken_up(stage: Stage, controller: Controller) -> None:
    controller.stop()
    write_wish(stage, {T0: [4, 1]})
    stage.controller(1)
    assert stage.assignment().adding == {0: (4,)}


def test_the_api_takes_a_partition_over_from_the_node(stage: Stage, controller: Controller) -> None:
    write_wish(stage, {T0: [4, 5], ("t", 1): [5]})
    stage.settle(controller)
    assert move(controller, None) is None
    left = PartitionReassignments.decode(stage.registry.get(PartitionReassignments.PATH)[0])
    assert left == {("t", 1): (5,)}
    assert stage.assignment().of(0) == PartitionAssignment((1, 2, 3))


@pytest.mark.parametrize("data", [b"", b"{", b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[]}]}'])
def test_a_node_that_cannot_be_read_moves_nothing(stage: Stage, controller: Controller, data: bytes) -> None:
    before = stage.assignment()
    stage.registry.create(PartitionReassignments.PATH, data)
    stage.settle(controller)
    assert stage.assignment() == before
    assert move(controller, [4, 1]) is None
