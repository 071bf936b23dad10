"""DeleteGroups, LeaveGroup, and what groups have committed: OffsetFetch, OffsetCommit and OffsetDelete."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kavka.client.admin.operation import (
    ALWAYS_RETRIED,
    Answered,
    OneGroupOnlyError,
    Operation,
    Outcome,
    by_topic,
    check,
    error_or,
)
from kavka.client.admin.operations.groups import NOT_LOADED, coordinator
from kavka.client.admin.types.groups import MemberToRemove
from kavka.client.api_errors import KafkaError, error_of
from kavka.client.call import RequestBuilder
from kavka.client.consumer.group.port import OffsetAndMetadata
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.api import ApiKey
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.delete_groups import DeleteGroupsRequest
from kavka.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kavka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kavka.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kavka.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kavka.protocol.schema import Request

SEVERAL_SINCE: Final = 8
STABLE_SINCE: Final = 7
NEWEST_WITH_NAMES: Final = 9
"""From the next version on OffsetFetch and OffsetCommit name topics by id alone."""
NO_OFFSET: Final = -1
NO_EPOCH: Final = -1
_UNSTABLE: Final = NOT_LOADED | {ErrorCode.UNSTABLE_OFFSET_COMMIT}
_REBALANCING: Final = NOT_LOADED | {ErrorCode.REBALANCE_IN_PROGRESS}


def delete_groups(group_ids: Sequence[str]) -> Operation[str, None]:
    def request(asked: Sequence[str], _timeout_ms: int) -> Request:
        return DeleteGroupsRequest(groups_names=list(asked))

    def read(answered: Answered[str]) -> Iterator[tuple[str, Outcome[None]]]:
        for row in answered.body.results:
            yield row.group_id, error_or(row, None)

    return Operation(
        "deleting groups",
        group_ids,
        request=request,
        read=read,
        target=coordinator,
        retried=NOT_LOADED,
        settled=frozenset({ErrorCode.GROUP_ID_NOT_FOUND}),
    )


def remove_members(group_id: str, members: Sequence[MemberToRemove], reason: str) -> Operation[MemberToRemove, None]:
    def request(asked: Sequence[MemberToRemove], _timeout_ms: int) -> Request:
        identities = [
            MemberIdentity(member_id=each.member_id, group_instance_id=each.group_instance_id, reason=reason)
            for each in asked
        ]
        return LeaveGroupRequest(group_id=group_id, members=identities)

    def read(answered: Answered[MemberToRemove]) -> Iterator[tuple[MemberToRemove, Outcome[None]]]:
        check(answered.body.error_code)
        # A static member is answered under the member id that it had.
        static = {each.group_instance_id: each for each in answered.items if each.group_instance_id is not None}
        by_id = {each.member_id: each for each in answered.items if each.group_instance_id is None}
        for row in answered.body.members:
            key = by_id.get(row.member_id) if row.group_instance_id is None else static.get(row.group_instance_id)
            key = key or by_id.get(row.member_id)
            if key is not None:
                yield key, error_or(row, None)

    return Operation(
        "removing members",
        members,
        request=request,
        read=read,
        target=coordinator(group_id),
        # Before, a request has one member, and no static one.
        versions=(3, 5),
        retried=NOT_LOADED,
        settled=frozenset({ErrorCode.UNKNOWN_MEMBER_ID}),
    )


def list_offsets(
    groups: Mapping[str, Sequence[TopicPartition] | None], require_stable: bool
) -> Operation[str, dict[TopicPartition, OffsetAndMetadata | None]]:
    """A partition of which nothing is committed is None; where all are asked for it is not there."""

    def request(asked: Sequence[str], _timeout_ms: int) -> RequestBuilder:
        def build(version: int) -> Request:
            if version >= SEVERAL_SINCE:
                rows = [_several(group_id, groups[group_id]) for group_id in asked]
                return OffsetFetchRequest(groups=rows, require_stable=require_stable)
            if len(asked) > 1:
                raise OneGroupOnlyError
            wanted = groups[asked[0]]
            topics = None
            if wanted is not None:
                topics = [
                    OffsetFetchRequestTopic(name=name, partition_indexes=indexes)
                    for name, indexes in by_topic(wanted).items()
                ]
            return OffsetFetchRequest(group_id=asked[0], topics=topics, require_stable=require_stable)

        return RequestBuilder(ApiKey.OFFSET_FETCH, build)

    def read(answered: Answered[str]) -> Iterator[tuple[str, Outcome[dict[TopicPartition, OffsetAndMetadata | None]]]]:
        body = answered.body
        if answered.version < SEVERAL_SINCE:
            yield answered.items[0], _committed(body, groups[answered.items[0]])
            return
        for row in body.groups:
            yield row.group_id, _committed(row, groups.get(row.group_id))

    # Version 1 cannot ask for all partitions.
    asks_all = any(wanted is None for wanted in groups.values())
    oldest = STABLE_SINCE if require_stable else 2 if asks_all else 1
    return Operation(
        "listing groups' offsets",
        groups,
        request=request,
        read=read,
        target=coordinator,
        versions=(oldest, NEWEST_WITH_NAMES),
        retried=_UNSTABLE,
    )


def _several(group_id: str, partitions: Sequence[TopicPartition] | None) -> OffsetFetchRequestGroup:
    topics = None
    if partitions is not None:
        topics = [
            OffsetFetchRequestTopics(name=name, partition_indexes=indexes)
            for name, indexes in by_topic(partitions).items()
        ]
    return OffsetFetchRequestGroup(group_id=group_id, topics=topics)


def _committed(
    row: Any, wanted: Sequence[TopicPartition] | None
) -> Outcome[dict[TopicPartition, OffsetAndMetadata | None]]:
    if row.error_code:
        return error_of(row.error_code)
    offsets: dict[TopicPartition, OffsetAndMetadata | None] = dict.fromkeys(wanted or ())
    for topic in row.topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.name, each.partition_index)
            if wanted is not None and partition not in offsets:
                continue
            if each.error_code:
                return _of_partition(partition, error_of(each.error_code))
            if each.committed_offset != NO_OFFSET:
                epoch = each.committed_leader_epoch if each.committed_leader_epoch >= 0 else None
                offsets[partition] = OffsetAndMetadata(each.committed_offset, epoch, each.metadata or "")
    return offsets


def _of_partition(partition: TopicPartition, error: KafkaError) -> KafkaError:
    return error_of(error.code, f"{partition.topic}-{partition.partition}: {error}")


def alter_offsets(
    group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]
) -> Operation[TopicPartition, None]:
    def partition(name: str, index: int) -> OffsetCommitRequestPartition:
        wanted = offsets[TopicPartition(name, index)]
        return OffsetCommitRequestPartition(
            partition_index=index,
            committed_offset=wanted.offset,
            committed_leader_epoch=NO_EPOCH if wanted.leader_epoch is None else wanted.leader_epoch,
            committed_metadata=wanted.metadata,
        )

    def request(asked: Sequence[TopicPartition], _timeout_ms: int) -> Request:
        topics = [
            OffsetCommitRequestTopic(name=name, partitions=[partition(name, index) for index in indexes])
            for name, indexes in by_topic(asked).items()
        ]
        return OffsetCommitRequest(group_id=group_id, topics=topics)

    return Operation(
        "changing a group's offsets",
        offsets,
        request=request,
        read=_partitions_answered,
        target=coordinator(group_id),
        versions=(2, NEWEST_WITH_NAMES),
        retried=_REBALANCING,
    )


def _partitions_answered(answered: Answered[TopicPartition]) -> Iterator[tuple[TopicPartition, Outcome[None]]]:
    for topic in answered.body.topics:
        for row in topic.partitions:
            yield TopicPartition(topic.name, row.partition_index), error_or(row, None)


def delete_offsets(group_id: str, partitions: Sequence[TopicPartition]) -> Operation[TopicPartition, None]:
    def request(asked: Sequence[TopicPartition], _timeout_ms: int) -> Request:
        topics = [
            OffsetDeleteRequestTopic(
                name=name, partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in indexes]
            )
            for name, indexes in by_topic(asked).items()
        ]
        return OffsetDeleteRequest(group_id=group_id, topics=topics)

    def read(answered: Answered[TopicPartition]) -> Iterator[tuple[TopicPartition, Outcome[None]]]:
        check(answered.body.error_code)
        yield from _partitions_answered(answered)

    return Operation(
        "deleting a group's offsets",
        partitions,
        request=request,
        read=read,
        target=coordinator(group_id),
        retried=NOT_LOADED | ALWAYS_RETRIED,
    )
