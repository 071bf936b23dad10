"""AlterPartition against what others write meanwhile: nothing is overwritten, and the leader learns what is there."""

import pytest

from kavka.cluster.controller.controller import Controller
from kavka.cluster.controller.requests import NewTopic
from kavka.cluster.topic_ids import ZERO_ID
from kavka.cluster.znodes.topic import PartitionState, TopicAssignment
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    BrokerState,
)
from tests.support.controller_stage import Stage, wait

ERROR = ErrorCode.INVALID_UPDATE_VERSION
PATH = PartitionState.path("t", 0)


@pytest.fixture
def controller(stage: Stage) -> Controller:
    """Of three brokers that replicate t-0, led by the first."""
    stage.brokers(1, 2, 3)
    controller = stage.controller()
    assert wait(controller.create_topics([NewTopic("t", assignments={0: [1, 2, 3], 1: [1, 2, 3]})]))
    return controller


def stored(stage: Stage, partition: int = 0) -> PartitionState:
    data, stat = stage.registry.get(PartitionState.path("t", partition))
    return PartitionState.decode("t", partition, data, stat.version)


def wanted(
    *isr: int, version: int, partition: int = 0, epochs: dict[int, int] | None = None, recovery: int = 0
) -> AlterPartitionRequestPartitionData:
    asked = AlterPartitionRequestPartitionData(
        partition_index=partition,
        leader_epoch=0,
        new_isr=list(isr),
        partition_epoch=version,
        leader_recovery_state=recovery,
    )
    if epochs is not None:
        asked.new_isr_with_epochs = [BrokerState(broker_id=each, broker_epoch=epoch) for each, epoch in epochs.items()]
    return asked


def ask(
    stage: Stage, *partitions: AlterPartitionRequestPartitionData, name: str = "t", topic_id: bytes = ZERO_ID
) -> AlterPartitionResponse:
    request = AlterPartitionRequest(
        broker_id=1,
        broker_epoch=stage.cluster.epoch(1),
        topics=[AlterPartitionRequestTopicData(topic_name=name, topic_id=topic_id, partitions=list(partitions))],
    )
    return wait(stage.controllers[0].alter_partition(request))


def alter(stage: Stage, *partitions: AlterPartitionRequestPartitionData) -> list[AlterPartitionResponsePartitionData]:
    return ask(stage, *partitions).topics[0].partitions


@pytest.mark.usefixtures("controller")
def test_of_two_changes_to_one_state_the_later_is_refused_and_may_try_again(stage: Stage) -> None:
    [first] = alter(stage, wanted(1, 2, version=0))
    [late] = alter(stage, wanted(1, 3, version=0))
    assert (first.error_code, late.error_code) == (ErrorCode.NONE, ERROR)
    assert stored(stage).isr == (1, 2)

    [again] = alter(stage, wanted(1, 3, 2, version=first.partition_epoch))

    assert (again.error_code, again.isr, again.partition_epoch) == (ErrorCode.NONE, [1, 3, 2], 2)
    now = stored(stage)
    assert now._replace(latest_broker_epoch=-1) == PartitionState(
        1, 0, (1, 3, 2), 1, version=2, leader_broker_epoch=stage.cluster.epoch(1)
    )
    assert now.latest_broker_epoch == max(map(stage.cluster.epoch, (1, 2, 3)))


@pytest.mark.usefixtures("controller")
def test_what_was_written_past_the_controller_is_not_overwritten(stage: Stage) -> None:
    stage.registry.set(PATH, PartitionState(1, 0, (1,), 1).encode())

    [refused] = alter(stage, wanted(1, 2, version=0))
    assert refused.error_code == ERROR
    assert stored(stage) == PartitionState(1, 0, (1,), 1, version=1)

    [again] = alter(stage, wanted(1, 2, version=1))
    assert (again.error_code, again.isr, again.partition_epoch) == (ErrorCode.NONE, [1, 2], 2)


@pytest.mark.usefixtures("controller")
def test_a_conflict_on_one_partition_does_not_keep_another_from_its_change(stage: Stage) -> None:
    stage.registry.set(PATH, PartitionState(1, 0, (1,), 1).encode())

    answers = alter(
        stage, wanted(1, 2, version=0), wanted(1, version=0, partition=1), wanted(1, version=0, partition=7)
    )

    codes = [answer.error_code for answer in answers]
    assert codes == [ERROR, ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert (stored(stage).isr, stored(stage, 1).isr) == ((1,), (1,))


@pytest.mark.usefixtures("controller")
def test_a_state_that_is_gone_is_an_error_and_nothing_is_made(stage: Stage) -> None:
    stage.registry.delete(PATH)

    [refused] = alter(stage, wanted(1, 2, version=0))

    assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert stage.registry.get_many([PATH]) == [None]


@pytest.mark.usefixtures("controller")
def test_a_change_that_is_there_already_is_answered_though_its_version_is_old(stage: Stage) -> None:
    alter(stage, wanted(1, 2, version=0))
    [lost_answer] = alter(stage, wanted(1, 2, version=0))
    assert (lost_answer.error_code, lost_answer.isr, lost_answer.partition_epoch) == (ErrorCode.NONE, [1, 2], 1)
    assert stored(stage).version == 1


def test_replicas_come_in_by_the_epochs_that_their_leader_saw(stage: Stage, controller: Controller) -> None:
    alter(stage, wanted(1, version=0))
    seen = {each: stage.cluster.epoch(each) for each in (1, 2)}
    stage.cluster.kill(2)
    stage.settle(controller)
    stage.cluster.add(2)
    stage.settle(controller)
    now = stored(stage)
    assert (now.leader, now.leader_epoch, now.isr) == (1, 0, (1,))

    topic_id = TopicAssignment.decode("t", stage.registry.get("/brokers/topics/t")[0]).topic_id
    assert topic_id is not None
    response = ask(stage, wanted(version=now.version, epochs=seen), name="", topic_id=topic_id)
    assert response.topics[0].partitions[0].error_code == ErrorCode.INELIGIBLE_REPLICA
    [unknown] = alter(stage, wanted(version=now.version, epochs={1: seen[1], 9: 1}))
    assert unknown.error_code == ErrorCode.INVALID_REQUEST
    assert stored(stage) == now

    seen[2] = stage.cluster.epoch(2)
    [joined] = alter(stage, wanted(version=now.version, epochs=seen))
    assert (joined.error_code, joined.isr) == (ErrorCode.NONE, [1, 2])


@pytest.mark.usefixtures("controller")
def test_a_leader_that_says_it_recovers_and_a_topic_that_is_unknown_are_refused(stage: Stage) -> None:
    [recovering] = alter(stage, wanted(1, 2, version=0, recovery=1))
    assert recovering.error_code == ErrorCode.INVALID_REQUEST
    by_name = ask(stage, wanted(1, 2, version=0), name="absent").topics[0].partitions[0]
    by_id = ask(stage, wanted(1, 2, version=0), name="", topic_id=b"\7" * 16).topics[0].partitions[0]
    assert by_name.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert by_id.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert stored(stage).version == 0


@pytest.mark.usefixtures("controller")
def test_a_partition_that_a_request_names_twice_is_changed_once_and_the_first_answer_says_so(stage: Stage) -> None:
    first, second = alter(stage, wanted(1, 2, version=0), wanted(1, 3, version=0))

    assert (first.error_code, first.leader_id, first.isr, first.partition_epoch) == (ErrorCode.NONE, 1, [1, 2], 1)
    assert second.error_code == ErrorCode.INVALID_REQUEST
    assert stored(stage).isr == (1, 2)


@pytest.mark.usefixtures("controller")
def test_who_is_in_sync_but_not_assigned_any_more_does_not_have_the_leader_wait_for_orders(stage: Stage) -> None:
    stage.registry.set(PATH, stored(stage)._replace(isr=(1, 4)).encode())
    [overtaken] = alter(stage, wanted(1, 2, version=0))
    assert overtaken.error_code == ERROR

    [kept] = alter(stage, wanted(1, 4, 2, version=1))
    assert kept.error_code == ErrorCode.OPERATION_NOT_ATTEMPTED  # which a leader that names topics knows
    [dropped] = alter(stage, wanted(1, 2, version=1))
    assert (dropped.error_code, stored(stage).isr) == (ErrorCode.NONE, (1, 2))
    [added] = alter(stage, wanted(1, 2, 4, version=2))
    assert added.error_code == ErrorCode.INVALID_REQUEST
