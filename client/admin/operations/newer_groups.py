"""Share groups (KIP-932) and those of Kafka Streams (KIP-1071), which brokers of Kafka 4.x have."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kavka.client.admin.operation import (
    Answered,
    Operation,
    Outcome,
    by_topic,
    check,
    error_or,
    outcome,
)
from kavka.client.admin.operations.groups import NOT_LOADED, coordinator, partitions_of
from kavka.client.admin.types.acls import authorized_operations
from kavka.client.admin.types.groups import (
    GroupState,
    ShareGroupDescription,
    ShareMemberDescription,
    SharePartitionOffsetInfo,
    StreamsGroupDescription,
    StreamsGroupMemberAssignment,
    StreamsGroupMemberDescription,
    StreamsGroupSubtopologyDescription,
    StreamsTopic,
)
from kavka.client.node import Node
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kavka.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from kavka.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from kavka.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from kavka.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from kavka.protocol.schema import Request


def describe_share_groups(group_ids: Sequence[str], with_operations: bool) -> Operation[str, ShareGroupDescription]:
    def request(asked: Sequence[str], _timeout_ms: int) -> Request:
        return ShareGroupDescribeRequest(group_ids=list(asked), include_authorized_operations=with_operations)

    def read(answered: Answered[str]) -> Iterator[tuple[str, Outcome[ShareGroupDescription]]]:
        for row in answered.body.groups:
            yield row.group_id, error_or(row, _share_group(row, answered.node))

    return Operation(
        "describing share groups",
        group_ids,
        request=request,
        read=read,
        target=coordinator,
        # Version 0 was Kafka 3.9's early access.
        versions=(1, 1),
        retried=NOT_LOADED,
    )


def _share_group(row: Any, node: Node) -> ShareGroupDescription:
    members = tuple(
        ShareMemberDescription(
            member.member_id,
            member.rack_id,
            member.client_id,
            member.client_host,
            member.member_epoch,
            tuple(member.subscribed_topic_names),
            partitions_of(member.assignment),
        )
        for member in row.members
    )
    return ShareGroupDescription(
        row.group_id,
        GroupState(row.group_state),
        members,
        node,
        row.group_epoch,
        row.assignment_epoch,
        authorized_operations(row.authorized_operations),
    )


def describe_streams_groups(group_ids: Sequence[str], with_operations: bool) -> Operation[str, StreamsGroupDescription]:
    def request(asked: Sequence[str], _timeout_ms: int) -> Request:
        return StreamsGroupDescribeRequest(group_ids=list(asked), include_authorized_operations=with_operations)

    def read(answered: Answered[str]) -> Iterator[tuple[str, Outcome[StreamsGroupDescription]]]:
        for row in answered.body.groups:
            yield row.group_id, error_or(row, _streams_group(row, answered.node))

    return Operation(
        "describing Streams groups",
        group_ids,
        request=request,
        read=read,
        target=coordinator,
        retried=NOT_LOADED,
    )


def _streams_group(row: Any, node: Node) -> StreamsGroupDescription:
    subtopologies = None
    if row.topology is not None and row.topology.subtopologies is not None:
        subtopologies = tuple(map(_subtopology, row.topology.subtopologies))
    return StreamsGroupDescription(
        row.group_id,
        GroupState(row.group_state),
        tuple(map(_streams_member, row.members)),
        node,
        row.group_epoch,
        row.assignment_epoch,
        None if row.topology is None else row.topology.epoch,
        subtopologies,
        authorized_operations(row.authorized_operations),
    )


def _subtopology(row: Any) -> StreamsGroupSubtopologyDescription:
    return StreamsGroupSubtopologyDescription(
        row.subtopology_id,
        tuple(row.source_topics),
        tuple(row.repartition_sink_topics),
        tuple(map(_streams_topic, row.state_changelog_topics)),
        tuple(map(_streams_topic, row.repartition_source_topics)),
    )


def _streams_topic(row: Any) -> StreamsTopic:
    configs = {each.key: each.value for each in row.topic_configs}
    return StreamsTopic(row.name, row.partitions, row.replication_factor, configs)


def _streams_member(row: Any) -> StreamsGroupMemberDescription:
    return StreamsGroupMemberDescription(
        row.member_id,
        row.instance_id,
        row.rack_id,
        row.client_id,
        row.client_host,
        row.member_epoch,
        row.topology_epoch,
        row.process_id,
        None if row.user_endpoint is None else (row.user_endpoint.host, row.user_endpoint.port),
        {tag.key: tag.value for tag in row.client_tags},
        {(each.subtopology_id, each.partition): each.offset for each in row.task_offsets},
        {(each.subtopology_id, each.partition): each.offset for each in row.task_end_offsets},
        _tasks(row.assignment),
        _tasks(row.target_assignment),
        row.is_classic,
    )


def _tasks(row: Any) -> StreamsGroupMemberAssignment:
    return StreamsGroupMemberAssignment(
        *(
            {task.subtopology_id: tuple(task.partitions) for task in tasks}
            for tasks in (row.active_tasks, row.standby_tasks, row.warmup_tasks)
        )
    )


def list_share_offsets(
    groups: Mapping[str, Sequence[TopicPartition] | None],
) -> Operation[str, dict[TopicPartition, Outcome[SharePartitionOffsetInfo]]]:
    def request(asked: Sequence[str], _timeout_ms: int) -> Request:
        return DescribeShareGroupOffsetsRequest(groups=[_asked_group(group_id, groups[group_id]) for group_id in asked])

    def read(
        answered: Answered[str],
    ) -> Iterator[tuple[str, Outcome[dict[TopicPartition, Outcome[SharePartitionOffsetInfo]]]]]:
        for row in answered.body.groups:
            yield row.group_id, error_or(row, _share_offsets(row))

    return Operation(
        "listing share groups' offsets",
        groups,
        request=request,
        read=read,
        target=coordinator,
        retried=NOT_LOADED,
    )


def _asked_group(group_id: str, partitions: Sequence[TopicPartition] | None) -> DescribeShareGroupOffsetsRequestGroup:
    topics = None
    if partitions is not None:
        topics = [
            DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=indexes)
            for name, indexes in by_topic(partitions).items()
        ]
    return DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=topics)


def _share_offsets(row: Any) -> dict[TopicPartition, Outcome[SharePartitionOffsetInfo]]:
    return {
        TopicPartition(topic.topic_name, each.partition_index): outcome(
            each.error_code,
            each.error_message,
            SharePartitionOffsetInfo(each.start_offset, each.leader_epoch, each.lag),
        )
        for topic in row.topics
        for each in topic.partitions
    }


def alter_share_offsets(group_id: str, offsets: Mapping[TopicPartition, int]) -> Operation[TopicPartition, None]:
    def request(asked: Sequence[TopicPartition], _timeout_ms: int) -> Request:
        topics = [
            AlterShareGroupOffsetsRequestTopic(
                topic_name=name,
                partitions=[
                    AlterShareGroupOffsetsRequestPartition(
                        partition_index=index, start_offset=offsets[TopicPartition(name, index)]
                    )
                    for index in indexes
                ],
            )
            for name, indexes in by_topic(asked).items()
        ]
        return AlterShareGroupOffsetsRequest(group_id=group_id, topics=topics)

    def read(answered: Answered[TopicPartition]) -> Iterator[tuple[TopicPartition, Outcome[None]]]:
        check(answered.body.error_code, answered.body.error_message)
        for topic in answered.body.responses:
            for row in topic.partitions:
                key = TopicPartition(topic.topic_name, row.partition_index)
                yield key, error_or(row, None)

    return Operation(
        "changing a share group's offsets",
        offsets,
        request=request,
        read=read,
        target=coordinator(group_id),
        retried=NOT_LOADED,
    )


def delete_share_offsets(group_id: str, topics: Sequence[str]) -> Operation[str, None]:
    def request(asked: Sequence[str], _timeout_ms: int) -> Request:
        rows = [DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in asked]
        return DeleteShareGroupOffsetsRequest(group_id=group_id, topics=rows)

    def read(answered: Answered[str]) -> Iterator[tuple[str, Outcome[None]]]:
        check(answered.body.error_code, answered.body.error_message)
        for row in answered.body.responses:
            yield row.topic_name, error_or(row, None)

    return Operation(
        "deleting a share group's offsets",
        topics,
        request=request,
        read=read,
        target=coordinator(group_id),
        retried=NOT_LOADED,
    )
