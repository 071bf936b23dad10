"""DeleteRecords, ListOffsets, ElectLeaders, and reassignments."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kavka.client.admin.operation import (
    ALWAYS_RETRIED,
    Answered,
    Operation,
    Outcome,
    by_topic,
    check,
    error_or,
)
from kavka.client.admin.targets import Anywhere
from kavka.client.admin.types.topics import (
    ElectionType,
    IsolationLevel,
    ListOffsetsResultInfo,
    OffsetSpec,
    PartitionReassignment,
)
from kavka.client.call import RequestBuilder
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.api import ApiKey
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kavka.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kavka.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from kavka.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kavka.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from kavka.protocol.schema import Request

CONSUMER: Final = -1
HIGH_WATERMARK: Final = -1
_SPEC_SINCE: Final[Mapping[int, int]] = {
    OffsetSpec.MAX_TIMESTAMP: 7,
    OffsetSpec.EARLIEST_LOCAL: 8,
    OffsetSpec.LATEST_TIERED: 9,
    OffsetSpec.EARLIEST_PENDING_UPLOAD: 11,
}
_NOT_YET: Final = ALWAYS_RETRIED | {ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.BROKER_NOT_AVAILABLE}


def delete_records(offsets: Mapping[TopicPartition, int]) -> Operation[TopicPartition, int]:
    def request(asked: Sequence[TopicPartition], timeout_ms: int) -> Request:
        topics = [
            DeleteRecordsTopic(
                name=name,
                partitions=[
                    DeleteRecordsPartition(partition_index=index, offset=offsets[TopicPartition(name, index)])
                    for index in indexes
                ],
            )
            for name, indexes in by_topic(asked).items()
        ]
        return DeleteRecordsRequest(topics=topics, timeout_ms=timeout_ms)

    def read(answered: Answered[TopicPartition]) -> Iterator[tuple[TopicPartition, Outcome[int]]]:
        for topic in answered.body.topics:
            for row in topic.partitions:
                yield (
                    TopicPartition(topic.name, row.partition_index),
                    error_or(row, row.low_watermark),
                )

    def is_the_same_later(partition: TopicPartition) -> bool:
        # "All there are" would be the records, too, that came after the first time.
        return offsets[partition] != HIGH_WATERMARK

    return Operation(
        "deleting records", offsets, request=request, read=read, target=_leader, repeatable=is_the_same_later
    )


def _leader(partition: TopicPartition) -> TopicPartition:
    # It may have been given as any pair.
    return TopicPartition(*partition)


def list_offsets(
    specs: Mapping[TopicPartition, int], isolation: IsolationLevel
) -> Operation[TopicPartition, ListOffsetsResultInfo]:
    least = 2 if isolation is IsolationLevel.READ_COMMITTED else 1

    def oldest(partition: TopicPartition) -> int:
        return max(_SPEC_SINCE.get(specs[partition], 0), least)

    def request(asked: Sequence[TopicPartition], timeout_ms: int) -> RequestBuilder:
        topics = [
            ListOffsetsTopic(
                name=name,
                partitions=[
                    ListOffsetsPartition(partition_index=index, timestamp=specs[TopicPartition(name, index)])
                    for index in indexes
                ],
            )
            for name, indexes in by_topic(asked).items()
        ]
        return RequestBuilder(
            ApiKey.LIST_OFFSETS,
            lambda version: ListOffsetsRequest(
                replica_id=CONSUMER,
                isolation_level=isolation if version >= 2 else 0,
                topics=topics,
                timeout_ms=timeout_ms,
            ),
        )

    def read(answered: Answered[TopicPartition]) -> Iterator[tuple[TopicPartition, Outcome[ListOffsetsResultInfo]]]:
        for topic in answered.body.topics:
            for row in topic.partitions:
                found = ListOffsetsResultInfo(row.offset, row.timestamp, row.leader_epoch)
                yield TopicPartition(topic.name, row.partition_index), error_or(row, found)

    return Operation(
        "listing offsets",
        specs,
        request=request,
        read=read,
        target=_leader,
        versions=lambda asked: (oldest(asked[0]), 11),
        # What an old broker does not know fails alone.
        group=oldest,
        retried=_NOT_YET,
    )


def elect_leaders(election: ElectionType, partitions: Sequence[TopicPartition]) -> Operation[TopicPartition, None]:
    def request(asked: Sequence[TopicPartition], timeout_ms: int) -> RequestBuilder:
        return _election(election, asked, timeout_ms)

    def read(answered: Answered[TopicPartition]) -> Iterator[tuple[TopicPartition, Outcome[None]]]:
        check(answered.body.error_code)
        for topic in answered.body.replica_election_results:
            for row in topic.partition_result:
                yield (
                    TopicPartition(topic.topic, row.partition_id),
                    error_or(row, None),
                )

    return Operation(
        "electing leaders",
        partitions,
        request=request,
        read=read,
        target=Anywhere.CONTROLLER,
        versions=_election_versions(election),
        settled=frozenset({ErrorCode.ELECTION_NOT_NEEDED}),
    )


def elect_all_leaders(election: ElectionType) -> Operation[None, dict[TopicPartition, Outcome[None]]]:
    """Of all partitions: the answer says which of them needed an election."""

    def read(answered: Answered[None]) -> Iterator[tuple[None, dict[TopicPartition, Outcome[None]]]]:
        check(answered.body.error_code)
        yield (
            None,
            {
                TopicPartition(topic.topic, row.partition_id): error_or(row, None)
                for topic in answered.body.replica_election_results
                for row in topic.partition_result
                if row.error_code != ErrorCode.ELECTION_NOT_NEEDED
            },
        )

    return Operation(
        "electing leaders",
        [None],
        request=lambda _, timeout_ms: _election(election, None, timeout_ms),
        read=read,
        target=Anywhere.CONTROLLER,
        versions=_election_versions(election),
    )


def _election_versions(election: ElectionType) -> tuple[int, int]:
    # Version 0 knows the election of preferred leaders alone.
    return 0 if election is ElectionType.PREFERRED else 1, 2


def _election(election: ElectionType, partitions: Sequence[TopicPartition] | None, timeout_ms: int) -> RequestBuilder:
    topics = None
    if partitions is not None:
        topics = [TopicPartitions(topic=name, partitions=rows) for name, rows in by_topic(partitions).items()]
    return RequestBuilder(
        ApiKey.ELECT_LEADERS,
        lambda version: ElectLeadersRequest(
            election_type=election if version > 0 else 0, topic_partitions=topics, timeout_ms=timeout_ms
        ),
    )


def alter_reassignments(
    targets: Mapping[TopicPartition, Sequence[int] | None], may_change_factor: bool
) -> Operation[TopicPartition, None]:
    def request(asked: Sequence[TopicPartition], timeout_ms: int) -> RequestBuilder:
        topics = [
            ReassignableTopic(
                name=name,
                partitions=[
                    ReassignablePartition(partition_index=index, replicas=_replicas(TopicPartition(name, index)))
                    for index in indexes
                ],
            )
            for name, indexes in by_topic(asked).items()
        ]
        return RequestBuilder(
            ApiKey.ALTER_PARTITION_REASSIGNMENTS,
            lambda _: AlterPartitionReassignmentsRequest(
                timeout_ms=timeout_ms, allow_replication_factor_change=may_change_factor, topics=topics
            ),
        )

    def _replicas(partition: TopicPartition) -> list[int] | None:
        replicas = targets[partition]
        return None if replicas is None else list(replicas)

    def read(answered: Answered[TopicPartition]) -> Iterator[tuple[TopicPartition, Outcome[None]]]:
        check(answered.body.error_code, answered.body.error_message)
        for topic in answered.body.responses:
            for row in topic.partitions:
                yield (
                    TopicPartition(topic.name, row.partition_index),
                    error_or(row, None),
                )

    return Operation(
        "reassigning partitions",
        targets,
        request=request,
        read=read,
        target=Anywhere.CONTROLLER,
        versions=(0 if may_change_factor else 1, 1),
        # One that was called off.
        settled=frozenset({ErrorCode.NO_REASSIGNMENT_IN_PROGRESS}),
    )


def list_reassignments(
    partitions: Sequence[TopicPartition] | None,
) -> Operation[None, dict[TopicPartition, PartitionReassignment]]:
    def request(_items: Sequence[None], timeout_ms: int) -> Request:
        topics = None
        if partitions is not None:
            topics = [
                ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes)
                for name, indexes in by_topic(partitions).items()
            ]
        return ListPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=topics)

    def read(answered: Answered[None]) -> Iterator[tuple[None, dict[TopicPartition, PartitionReassignment]]]:
        check(answered.body.error_code, answered.body.error_message)
        yield (
            None,
            {
                TopicPartition(topic.name, row.partition_index): PartitionReassignment(
                    tuple(row.replicas), tuple(row.adding_replicas), tuple(row.removing_replicas)
                )
                for topic in answered.body.topics
                for row in topic.partitions
            },
        )

    return Operation("listing reassignments", [None], request=request, read=read, target=Anywhere.CONTROLLER)
