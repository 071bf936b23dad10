"""Whoever has no right to a topic is not told whether it exists."""

from collections.abc import Callable
from typing import Any

import pytest

from kavka.broker.requests.handling import load_handlers
from kavka.broker.security.acl import Operation
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages import (
    alter_configs,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_configs,
    describe_producers,
    describe_topic_partitions,
    incremental_alter_configs,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
)
from kavka.protocol.schema import ZERO_UUID
from tests.support.broker_handlers import BROKER_ID, Broker, Denying

load_handlers()
TOPIC = 2
ALL_DENIED = Denying(*((operation, "*") for operation in Operation))


def _configs(module: Any, request_class: Any) -> Callable[[str], Any]:
    return lambda name: request_class(
        resources=[module.AlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=[])],
        validate_only=False,
    )


def _list_offsets(name: str) -> Any:
    partitions = [list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-1)]
    topics = [list_offsets.ListOffsetsTopic(name=name, partitions=partitions)]
    return list_offsets.ListOffsetsRequest(replica_id=-1, topics=topics)


def _epoch_end(name: str) -> Any:
    partitions = [offset_for_leader_epoch.OffsetForLeaderPartition(partition=0, leader_epoch=0)]
    topics = [offset_for_leader_epoch.OffsetForLeaderTopic(topic=name, partitions=partitions)]
    return offset_for_leader_epoch.OffsetForLeaderEpochRequest(topics=topics)


def _delete_records(name: str) -> Any:
    partitions = [delete_records.DeleteRecordsPartition(partition_index=0, offset=1)]
    topics = [delete_records.DeleteRecordsTopic(name=name, partitions=partitions)]
    return delete_records.DeleteRecordsRequest(topics=topics, timeout_ms=1000)


def _create(name: str) -> Any:
    topic = create_topics.CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[])
    return create_topics.CreateTopicsRequest(topics=[topic])


def _delete_by_name(name: str) -> Any:
    topics = [delete_topics.DeleteTopicState(name=name, topic_id=ZERO_UUID)]
    return delete_topics.DeleteTopicsRequest(topics=topics, timeout_ms=1000)


def _grow(name: str) -> Any:
    topics = [create_partitions.CreatePartitionsTopic(name=name, count=5, assignments=None)]
    return create_partitions.CreatePartitionsRequest(topics=topics, timeout_ms=1000, validate_only=False)


def _describe_configs(name: str) -> Any:
    each = describe_configs.DescribeConfigsResource(resource_type=TOPIC, resource_name=name, configuration_keys=None)
    return describe_configs.DescribeConfigsRequest(resources=[each])


def _describe_producers(name: str) -> Any:
    topics = [describe_producers.TopicRequest(name=name, partition_indexes=[0, 9])]
    return describe_producers.DescribeProducersRequest(topics=topics)


def _describe_partitions(name: str) -> Any:
    topics = [describe_topic_partitions.TopicRequest(name=name)]
    return describe_topic_partitions.DescribeTopicPartitionsRequest(topics=topics)


def _metadata(name: str) -> Any:
    return metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=name)])


@pytest.mark.parametrize(
    ("request_for", "version"),
    [
        (_configs(alter_configs, alter_configs.AlterConfigsRequest), 2),
        (_configs(incremental_alter_configs, incremental_alter_configs.IncrementalAlterConfigsRequest), 1),
        (_create, 7),
        (_delete_by_name, 6),
        (_delete_records, 2),
        (_describe_configs, 4),
        (_describe_partitions, 0),
        (_describe_producers, 0),
        (_epoch_end, 4),
        (_grow, 3),
        (_list_offsets, 7),
        (_metadata, 12),
    ],
)
def test_a_topic_that_is_denied_is_answered_as_one_that_is_not_there(
    request_for: Callable[[str], Any], version: int
) -> None:
    broker = Broker(secret=[BROKER_ID])
    broker.host("secret")

    there, absent = (
        str(broker.ask(request_for(name), version, authorizer=ALL_DENIED)) for name in ("secret", "absent")
    )

    assert there.replace("secret", "absent") == absent
    assert f"error_code={int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)}" in there


def test_producers_of_a_topic_with_a_bad_name_are_refused_before_anything_else() -> None:
    answer = Broker().ask(_describe_producers("no such name"), 0, authorizer=ALL_DENIED)
    codes = {part.error_code for part in answer.topics[0].partitions}
    assert codes == {ErrorCode.INVALID_TOPIC_EXCEPTION}
