"""Items to brokers: leaders, coordinators and given brokers, and what is done when they have moved."""

from collections.abc import Callable
from typing import Any

import pytest

from kavka.client.admin.driver import AdminCall
from kavka.client.admin.operations.configs import describe_configs
from kavka.client.admin.operations.group_offsets import delete_groups
from kavka.client.admin.operations.partitions import delete_records
from kavka.client.admin.operations.topics import create_topics
from kavka.client.admin.types.configs import ConfigResource
from kavka.client.admin.types.topics import NewTopic
from kavka.client.api_errors import (
    BrokerNotAvailableError,
    DisconnectedError,
    GroupAuthorizationError,
    InvalidTopicError,
    KafkaTimeoutError,
    LeaderNotAvailableError,
    UnknownTopicOrPartitionError,
)
from kavka.client.node import Node
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.api import ApiKey
from kavka.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from kavka.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from kavka.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kavka.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kavka.protocol.messages.find_coordinator import FindCoordinatorRequest
from kavka.protocol.messages.metadata import MetadataRequest
from tests.support.admin_stage import AdminStage, Said, in_turn, nodes_of

P0 = TopicPartition("t", 0)
P1 = TopicPartition("t", 1)


def cut(code: int = 0) -> Callable[[Node, DeleteRecordsRequest], Said]:
    """Does what it is asked for, or says why not."""

    def broker(node: Node, request: DeleteRecordsRequest) -> Said:
        topics = [
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    DeleteRecordsPartitionResult(
                        partition_index=row.partition_index, low_watermark=row.offset + node.id, error_code=code
                    )
                    for row in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return DeleteRecordsResponse(topics=topics)

    return broker


def test_partitions_are_asked_of_their_leaders() -> None:
    stage = AdminStage()
    stage.leaders = {"t": [2, 3, 2]}
    stage.network.answer(DeleteRecordsRequest, cut())

    call = stage.run(delete_records({TopicPartition("t", index): 10 for index in range(3)}))

    assert call.results == {P0: 12, P1: 13, TopicPartition("t", 2): 12}
    assert sorted(nodes_of(stage.network.requests(DeleteRecordsRequest))) == [2, 3]
    assert len(stage.network.requests(MetadataRequest)) == 1


@pytest.mark.parametrize("code", [3, 5, 6, 56, 74])
def test_a_leader_that_moved_is_looked_up_anew(code: int) -> None:
    stage = AdminStage()
    stage.leaders = {"t": [2, 1]}

    def broker(node: Node, request: DeleteRecordsRequest) -> Said:
        if node.id == 2:
            stage.leaders = {"t": [3, 1]}
        return cut(code if node.id == 2 else 0)(node, request)

    stage.network.answer(DeleteRecordsRequest, broker)

    call = stage.run(delete_records({P0: 10, P1: 10}))

    assert call.results == {P0: 13, P1: 11}


def test_a_leader_that_does_not_answer_is_looked_up_anew() -> None:
    stage = AdminStage()
    stage.leaders = {"t": [2]}

    def broker(node: Node, request: DeleteRecordsRequest) -> Said:
        stage.leaders = {"t": [3]}
        return DisconnectedError("gone") if node.id == 2 else cut()(node, request)

    stage.network.answer(DeleteRecordsRequest, broker)

    assert stage.run(delete_records({P0: 10})).results == {P0: 13}


def test_a_partition_without_a_leader_is_waited_for() -> None:
    stage = AdminStage()
    stage.leaders = {"t": [-1]}
    stage.network.answer(DeleteRecordsRequest, cut())
    stage.later(20_000, lambda: stage.leaders.update(t=[2]))

    assert stage.run(delete_records({P0: 10})).results == {P0: 12}
    assert len(stage.network.requests(MetadataRequest)) < 40

    stage.leaders = {"t": [-1]}
    error = stage.run(delete_records({P0: 10}), timeout_ms=2_000).errors[P0]
    assert isinstance(error, KafkaTimeoutError)
    assert isinstance(error.__cause__, LeaderNotAvailableError)


def test_an_unknown_topic_is_given_the_time_to_become_known() -> None:
    stage = AdminStage()
    stage.network.answer(DeleteRecordsRequest, cut())
    stage.later(3_000, lambda: stage.leaders.update(t=[2]))
    assert stage.run(delete_records({P0: 10})).results == {P0: 12}

    began_ms = stage.now_ms
    errors = stage.run(delete_records({TopicPartition("u", 0): 1, TopicPartition("t", 9): 1})).errors
    assert [type(error) for error in errors.values()] == [UnknownTopicOrPartitionError] * 2
    assert 5_000 <= stage.now_ms - began_ms < 8_000


def test_what_a_topic_is_refused_for_is_not_asked_again() -> None:
    stage = AdminStage()
    stage.leaders = {"t": [2]}
    stage.network.answer(DeleteRecordsRequest, cut())
    metadata = stage.network.brokers[ApiKey.METADATA]

    def refusing(node: Node, request: MetadataRequest) -> Said:
        answer = metadata(node, request)
        answer.topics[0].error_code = 17  # type: ignore[union-attr]  # it is an answer to Metadata
        return answer

    stage.network.answer(MetadataRequest, refusing)

    assert isinstance(stage.run(delete_records({P0: 10})).errors[P0], InvalidTopicError)
    assert len(stage.network.asked) == 1


def test_a_coordinator_that_moved_is_looked_up_anew() -> None:
    stage = AdminStage()
    stage.coordinators = {"g": 2, "h": 3}

    def broker(node: Node, request: DeleteGroupsRequest) -> Said:
        moved = stage.coordinators["g"] == 2
        if node.id == 2:
            stage.coordinators["g"] = 3
        rows = [
            DeletableGroupResult(group_id=group, error_code=16 if group == "g" and moved else 0)
            for group in request.groups_names
        ]
        return DeleteGroupsResponse(results=rows)

    stage.network.answer(DeleteGroupsRequest, broker)

    call = stage.run(delete_groups(["g", "h"]))

    assert call.results == {"g": None, "h": None}
    assert sorted(nodes_of(stage.network.requests(DeleteGroupsRequest))) == [2, 3, 3]


def test_a_coordinator_that_is_being_loaded_is_asked_again_without_a_search() -> None:
    stage = AdminStage()
    loading, done = (
        DeleteGroupsResponse(results=[DeletableGroupResult(group_id="g", error_code=code)]) for code in (14, 0)
    )
    stage.network.answer(DeleteGroupsRequest, in_turn(loading, loading, done))

    assert stage.run(delete_groups(["g"])).results == {"g": None}
    assert len(stage.network.requests(FindCoordinatorRequest)) == 1


def test_a_group_one_may_not_see_has_no_coordinator_for_its_caller() -> None:
    stage = AdminStage()
    original = stage.network.brokers[ApiKey.FIND_COORDINATOR]

    def refusing(node: Node, request: FindCoordinatorRequest) -> Said:
        answer = original(node, request)
        for row in answer.coordinators:  # type: ignore[union-attr]  # it is an answer to FindCoordinator
            row.error_code = 30
        return answer

    stage.network.answer(FindCoordinatorRequest, refusing)
    assert isinstance(stage.run(delete_groups(["g"])).errors["g"], GroupAuthorizationError)

    stage.network.answer(FindCoordinatorRequest, original)
    stage.network.answer(
        DeleteGroupsRequest,
        in_turn(DeleteGroupsResponse(results=[DeletableGroupResult(group_id="g", error_code=0)])),
    )
    assert stage.run(delete_groups(["g"])).results == {"g": None}, "nothing is remembered of a refusal"


def test_a_broker_by_its_id_is_asked_itself_and_others_anybody() -> None:
    stage = AdminStage()

    def broker(_node: Node, request: DescribeConfigsRequest) -> Said:
        rows = [
            DescribeConfigsResult(
                error_code=0,
                error_message=None,
                resource_type=row.resource_type,
                resource_name=row.resource_name,
                configs=[],
            )
            for row in request.resources
        ]
        return DescribeConfigsResponse(results=rows)

    stage.network.answer(DescribeConfigsRequest, broker)
    resources = [ConfigResource.broker(3), ConfigResource.broker(2), ConfigResource.topic("t"), ConfigResource.broker()]

    call = stage.run(describe_configs(resources, None, False, False))

    assert call.results.keys() == set(resources)
    assert sorted(nodes_of(stage.network.requests(DescribeConfigsRequest))) == [1, 2, 3]


def test_a_broker_that_is_not_there_is_waited_for_until_the_time_is_over() -> None:
    stage = AdminStage()

    call = stage.run(describe_configs([ConfigResource.broker(7)], None, False, False), timeout_ms=4_000)

    error = call.errors[ConfigResource.broker(7)]
    assert isinstance(error, KafkaTimeoutError)
    assert isinstance(error.__cause__, BrokerNotAvailableError)


def test_a_broker_that_cannot_be_reached_is_named_when_the_time_is_over() -> None:
    stage = AdminStage()
    stage.leaders = {"t": [2]}
    stage.network.unreachable = {2}
    error = stage.run(delete_records({P0: 10}), timeout_ms=4_000).errors[P0]
    assert isinstance(error, KafkaTimeoutError)
    assert "node 2 at host-2:9092 cannot be reached" in str(error)

    stage.network.unreachable = {1, 2, 3}
    error = stage.run(delete_records({P0: 10}), timeout_ms=4_000).errors[P0]
    assert isinstance(error.__cause__, BrokerNotAvailableError)
    assert "no broker can be reached: host-1:9092, host-2:9092, host-3:9092" in str(error)


def test_who_cannot_be_reached_is_looked_for_anew() -> None:
    """No request was sent that could fail: that no connection can be made has to do."""
    stage = AdminStage()
    stage.leaders, stage.coordinators, stage.controller_id = {"t": [2]}, {"g": 2}, 2
    stage.network.unreachable = {2}
    stage.network.answer(DeleteRecordsRequest, cut())
    deleted = DeleteGroupsResponse(results=[DeletableGroupResult(group_id="g", error_code=0)])
    stage.network.answer(DeleteGroupsRequest, in_turn(deleted))
    created = CreateTopicsResponse(topics=[CreatableTopicResult(name="n", error_code=0)])
    stage.network.answer(CreateTopicsRequest, in_turn(created))

    def elect() -> None:
        stage.leaders, stage.coordinators, stage.controller_id = {"t": [3]}, {"g": 3}, 3

    stage.later(9_000, elect)
    calls: list[AdminCall[Any, Any]] = [
        stage.begin(delete_records({P0: 10})),
        stage.begin(delete_groups(["g"])),
        stage.begin(create_topics({"n": NewTopic("n", 1, 1)}, False, True)),
    ]
    stage.drive()

    assert [call.errors for call in calls] == [{}, {}, {}]
    assert calls[0].results == {P0: 13}
    # Each failure to connect has them looked for once, and not each round.
    assert len(stage.network.requests(FindCoordinatorRequest)) < 30


@pytest.mark.parametrize("name", ["\udc80", "x" * 40_000])
def test_a_group_that_no_request_can_name_fails_at_once(name: str) -> None:
    stage = AdminStage()
    began_ms = stage.now_ms
    assert stage.run(delete_groups([name])).errors.keys() == {name}
    assert stage.now_ms - began_ms < 10


@pytest.mark.parametrize("name", ["\udc80", "x" * 40_000, None])
def test_a_topic_that_no_request_can_name_fails_alone(name: Any) -> None:
    stage = AdminStage()
    stage.leaders = {"t": [2]}
    stage.network.answer(DeleteRecordsRequest, cut())

    call = stage.run(delete_records({P0: 10, TopicPartition(name, 0): 10}))

    assert call.results == {P0: 12}
    assert [type(error) for error in call.errors.values()] == [InvalidTopicError]
