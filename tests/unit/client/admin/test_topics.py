"""Topics: what goes out for them, in which versions, and what comes back."""

import pytest

from kavka.client.admin.areas.topics import TopicsArea
from kavka.client.admin.item_errors import ItemErrors
from kavka.client.admin.types.acls import AclOperation
from kavka.client.admin.types.configs import ConfigSource
from kavka.client.admin.types.topics import NewPartitions, NewTopic
from kavka.client.api_errors import (
    UnknownServerError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from kavka.client.node import Node
from kavka.protocol.api import ApiKey
from kavka.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from kavka.protocol.messages.create_topics import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kavka.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from kavka.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from kavka.protocol.messages.metadata import MetadataRequest
from tests.support.admin_stage import AdminStage, Said, in_turn

ID = bytes(range(16))


def page(*rows: tuple[str, list[int]], cursor: tuple[str, int] | None = None) -> DescribeTopicPartitionsResponse:
    topics = [
        DescribeTopicPartitionsResponseTopic(
            error_code=0,
            name=name,
            topic_id=ID,
            is_internal=False,
            partitions=[
                DescribeTopicPartitionsResponsePartition(
                    error_code=0,
                    partition_index=index,
                    leader_id=2,
                    leader_epoch=5,
                    replica_nodes=[2, 3],
                    isr_nodes=[2],
                    eligible_leader_replicas=[3],
                    last_known_elr=None,
                    offline_replicas=[3],
                )
                for index in partitions
            ],
            topic_authorized_operations=0b1000,
        )
        for name, partitions in rows
    ]
    goes_on = None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1])
    return DescribeTopicPartitionsResponse(topics=topics, next_cursor=goes_on)


def test_a_topic_is_created_with_what_was_asked_for() -> None:
    stage = AdminStage()
    result = CreatableTopicResult(
        name="t",
        topic_id=ID,
        error_code=0,
        num_partitions=2,
        replication_factor=1,
        configs=[
            CreatableTopicConfigs(name="retention.ms", value="5", read_only=False, config_source=1, is_sensitive=False)
        ],
    )
    stage.network.answer(CreateTopicsRequest, in_turn(CreateTopicsResponse(topics=[result])))
    wanted = NewTopic("t", configs={"retention.ms": "5"}, assignment={0: [1, 2], 1: [2, 1]})

    created = stage.area(TopicsArea).create_topics([wanted], validate_only=True)["t"]

    assert (created.topic_id, created.num_partitions, created.replication_factor) == (ID, 2, 1)
    assert created.configs is not None
    assert created.configs["retention.ms"].source is ConfigSource.DYNAMIC_TOPIC_CONFIG
    (asked,) = stage.network.requests(CreateTopicsRequest)
    assert asked.request.validate_only
    (row,) = asked.request.topics
    assert (row.num_partitions, row.replication_factor) == (-1, -1)
    assert {each.partition_index: each.broker_ids for each in row.assignments} == {0: [1, 2], 1: [2, 1]}
    assert {each.name: each.value for each in row.configs} == {"retention.ms": "5"}


def test_an_old_broker_creates_topics_that_say_all_but_no_defaults() -> None:
    stage = AdminStage()
    stage.network.versions[1] = {ApiKey.CREATE_TOPICS: (0, 3)}
    stage.network.answer(
        CreateTopicsRequest, in_turn(CreateTopicsResponse(topics=[CreatableTopicResult(name="t", error_code=0)]))
    )
    area = stage.area(TopicsArea)

    assert area.create_topics([NewTopic("t", 1, 1)])["t"].configs is None
    with pytest.raises(UnsupportedVersionError):
        area.create_topics([NewTopic("t", 1)])


def test_settings_that_the_caller_may_not_see_are_none() -> None:
    stage = AdminStage()
    result = CreatableTopicResult(name="t", error_code=0, topic_config_error_code=29, configs=[])
    stage.network.answer(CreateTopicsRequest, in_turn(CreateTopicsResponse(topics=[result])))

    assert stage.area(TopicsArea).create_topics([NewTopic("t")])["t"].configs is None


def test_topics_are_deleted_by_name_and_by_id() -> None:
    stage = AdminStage()

    def broker(_node: Node, request: DeleteTopicsRequest) -> Said:
        rows = [
            DeletableTopicResult(name=each.name, topic_id=each.topic_id, error_code=100 if each.name is None else 0)
            for each in request.topics
        ]
        return DeleteTopicsResponse(responses=rows)

    stage.network.answer(DeleteTopicsRequest, broker)

    with pytest.raises(ItemErrors) as failed:
        stage.area(TopicsArea).delete_topics(["t", ID])

    assert failed.value.results == {"t": None}
    assert isinstance(failed.value.errors[ID], UnknownTopicIdError)


def test_an_old_broker_is_told_the_names_of_what_to_delete() -> None:
    stage = AdminStage()
    stage.network.versions[1] = {ApiKey.DELETE_TOPICS: (1, 3)}
    row = DeletableTopicResult(name="t", error_code=0)
    stage.network.answer(DeleteTopicsRequest, in_turn(DeleteTopicsResponse(responses=[row])))
    area = stage.area(TopicsArea)

    assert area.delete_topics(["t"]) == {"t": None}
    assert stage.network.requests(DeleteTopicsRequest)[0].request.topic_names == ["t"]
    with pytest.raises(UnsupportedVersionError):
        area.delete_topics([ID])


def test_partitions_are_added_up_to_a_total() -> None:
    stage = AdminStage()
    rows = [CreatePartitionsTopicResult(name=name, error_code=0) for name in ("t", "u")]
    stage.network.answer(CreatePartitionsRequest, in_turn(CreatePartitionsResponse(results=rows)))

    assert stage.area(TopicsArea).create_partitions({"t": 4, "u": NewPartitions(2, [[1, 2]])}) == {"t": None, "u": None}

    first, second = stage.network.requests(CreatePartitionsRequest)[0].request.topics
    assert (first.count, first.assignments) == (4, None)
    assert (second.count, [each.broker_ids for each in second.assignments]) == (2, [[1, 2]])


def test_internal_topics_are_listed_where_they_are_asked_for() -> None:
    stage = AdminStage()
    stage.leaders = {"t": [1], "__consumer_offsets": [1]}
    original = stage.network.brokers[ApiKey.METADATA]

    def broker(node: Node, request: MetadataRequest) -> Said:
        answer = original(node, request)
        for topic in answer.topics:  # type: ignore[union-attr]  # it is an answer to Metadata
            topic.is_internal = (topic.name or "").startswith("__")
        return answer

    stage.network.answer(MetadataRequest, broker)
    area = stage.area(TopicsArea)

    assert area.list_topics().keys() == {"t"}
    assert area.list_topics(include_internal=True).keys() == {"t", "__consumer_offsets"}
    assert not stage.network.requests(MetadataRequest)[0].request.allow_auto_topic_creation


def test_topics_are_described_page_by_page() -> None:
    stage = AdminStage()
    stage.network.answer(
        DescribeTopicPartitionsRequest,
        in_turn(page(("a", [0, 1]), cursor=("a", 2)), page(("a", [2]), ("b", [0]), ("nobody", [0]))),
    )

    found = stage.area(TopicsArea).describe_topics(["b", "a"], include_authorized_operations=True)

    assert [each.partition for each in found["a"].partitions] == [0, 1, 2]
    assert found.keys() == {"a", "b"}
    assert found["a"].authorized_operations == frozenset({AclOperation.READ})
    partition = found["b"].partitions[0]
    assert (partition.leader_id, partition.leader_epoch, partition.replicas, partition.isr) == (2, 5, (2, 3), (2,))
    assert (partition.eligible_leader_replicas, partition.last_known_eligible_leader_replicas) == ((3,), None)
    second = stage.network.requests(DescribeTopicPartitionsRequest)[1].request
    assert (second.cursor.topic_name, second.cursor.partition_index) == ("a", 2)


@pytest.mark.parametrize("cursor", [("a", 1), ("a", 0), ("nobody", 5)])
def test_pages_that_lead_nowhere_are_an_error(cursor: tuple[str, int]) -> None:
    stage = AdminStage()
    stage.network.answer(
        DescribeTopicPartitionsRequest, in_turn(page(("a", [0]), cursor=("a", 1)), page(("a", [0]), cursor=cursor))
    )

    with pytest.raises(UnknownServerError, match="next page"):
        stage.area(TopicsArea).describe_topics(["a"])


def test_a_topic_that_no_page_has_is_an_error() -> None:
    stage = AdminStage()
    stage.network.answer(DescribeTopicPartitionsRequest, in_turn(page(("a", [0]))))

    with pytest.raises(ItemErrors) as failed:
        stage.area(TopicsArea).describe_topics(["a", "b"])

    assert failed.value.results.keys() == {"a"}
    assert isinstance(failed.value.errors["b"], UnknownServerError)


def test_topics_by_id_and_those_of_older_brokers_are_described_by_metadata() -> None:
    stage = AdminStage()
    stage.leaders = {"t": [2, -1]}
    original = stage.network.brokers[ApiKey.METADATA]

    def broker(node: Node, request: MetadataRequest) -> Said:
        for topic in request.topics or ():
            topic.name = topic.name or "t"
        answer = original(node, request)
        for row in answer.topics:  # type: ignore[union-attr]  # it is an answer to Metadata
            row.topic_id = ID
        return answer

    stage.network.answer(MetadataRequest, broker)
    stage.network.versions[1] = {ApiKey.DESCRIBE_TOPIC_PARTITIONS: None}
    area = stage.area(TopicsArea)

    by_both = area.describe_topics(["t", ID])

    assert by_both["t"] == by_both[ID]
    assert [each.leader_id for each in by_both["t"].partitions] == [2, -1]
    assert by_both["t"].authorized_operations is None
    with pytest.raises(UnknownTopicOrPartitionError):
        area.describe_topics(["unknown"])
