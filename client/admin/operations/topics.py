"""CreateTopics, DeleteTopics, CreatePartitions, Metadata and DescribeTopicPartitions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kavka.client.admin.operation import (
    ALWAYS_RETRIED,
    Answered,
    Operation,
    Outcome,
    error_or,
)
from kavka.client.admin.targets import Anywhere
from kavka.client.admin.types.acls import authorized_operations
from kavka.client.admin.types.configs import ConfigEntry, ConfigSource
from kavka.client.admin.types.topics import (
    NewPartitions,
    NewTopic,
    TopicDescription,
    TopicListing,
    TopicMetadataAndConfig,
    TopicPartitionInfo,
)
from kavka.client.api_errors import UnknownServerError, error_of
from kavka.client.call import RequestBuilder
from kavka.protocol.api import ApiKey
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kavka.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kavka.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kavka.protocol.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from kavka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kavka.protocol.schema import ZERO_UUID, Request, Uuid

DEFAULTS_SINCE: Final = 4
IDS_SINCE: Final = 6
PAGE_PARTITIONS: Final = 2000
_GONE: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
_NOT_YET: Final = ALWAYS_RETRIED | {ErrorCode.LEADER_NOT_AVAILABLE}


def _retried(when_throttled: bool) -> frozenset[ErrorCode]:
    return ALWAYS_RETRIED if when_throttled else frozenset()


def create_topics(
    topics: Mapping[str, NewTopic], validate_only: bool, when_throttled: bool
) -> Operation[str, TopicMetadataAndConfig]:
    def request(names: Sequence[str], timeout_ms: int) -> Request:
        rows = [_creatable(topics[name]) for name in names]
        return CreateTopicsRequest(topics=rows, timeout_ms=timeout_ms, validate_only=validate_only)

    def read(answered: Answered[str]) -> Iterator[tuple[str, Outcome[TopicMetadataAndConfig]]]:
        for row in answered.body.topics:
            yield row.name, error_or(row, _created(row))

    def versions(names: Sequence[str]) -> tuple[int, int]:
        says_all = all(
            -1 not in (topic.num_partitions, topic.replication_factor) or topic.assignment is not None
            for topic in map(topics.__getitem__, names)
        )
        return (1 if says_all else DEFAULTS_SINCE), 7

    return Operation(
        "creating topics",
        topics,
        request=request,
        read=read,
        target=Anywhere.CONTROLLER,
        versions=versions,
        retried=_retried(when_throttled),
        repeatable=False,
    )


def _creatable(topic: NewTopic) -> CreatableTopic:
    assignment = topic.assignment
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.num_partitions if assignment is None else -1,
        replication_factor=topic.replication_factor if assignment is None else -1,
        assignments=[
            CreatableReplicaAssignment(partition_index=partition, broker_ids=list(brokers))
            for partition, brokers in (assignment or {}).items()
        ],
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in (topic.configs or {}).items()],
    )


def _created(row: Any) -> TopicMetadataAndConfig:
    configs = None
    if row.configs is not None and row.num_partitions >= 0 and not row.topic_config_error_code:
        configs = {
            config.name: ConfigEntry(
                config.name, config.value, ConfigSource(config.config_source), config.is_sensitive, config.read_only
            )
            for config in row.configs
        }
    return TopicMetadataAndConfig(row.name, row.topic_id, row.num_partitions, row.replication_factor, configs)


def delete_topics(topics: Sequence[str | Uuid], when_throttled: bool) -> Operation[str | Uuid, None]:
    def request(asked: Sequence[str | Uuid], timeout_ms: int) -> RequestBuilder:
        names = [topic for topic in asked if isinstance(topic, str)]
        states = [
            DeleteTopicState(name=topic, topic_id=ZERO_UUID)
            if isinstance(topic, str)
            else DeleteTopicState(name=None, topic_id=topic)
            for topic in asked
        ]

        def build(version: int) -> Request:
            if version < IDS_SINCE:
                return DeleteTopicsRequest(topic_names=names, timeout_ms=timeout_ms)
            return DeleteTopicsRequest(topics=states, timeout_ms=timeout_ms)

        return RequestBuilder(ApiKey.DELETE_TOPICS, build)

    def read(answered: Answered[str | Uuid]) -> Iterator[tuple[str | Uuid, Outcome[None]]]:
        by_name = isinstance(answered.items[0], str)
        for row in answered.body.responses:
            yield row.name if by_name else row.topic_id, error_or(row, None)

    return Operation(
        "deleting topics",
        topics,
        request=request,
        read=read,
        target=Anywhere.CONTROLLER,
        versions=lambda asked: (0 if isinstance(asked[0], str) else IDS_SINCE, 6),
        group=type,
        retried=_retried(when_throttled),
        settled=_GONE,
    )


def create_partitions(
    topics: Mapping[str, NewPartitions], validate_only: bool, when_throttled: bool
) -> Operation[str, None]:
    def topic(name: str) -> CreatePartitionsTopic:
        wanted = topics[name]
        assignments = None
        if wanted.assignments is not None:
            assignments = [CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in wanted.assignments]
        return CreatePartitionsTopic(name=name, count=wanted.total_count, assignments=assignments)

    def request(names: Sequence[str], timeout_ms: int) -> Request:
        return CreatePartitionsRequest(
            topics=[topic(name) for name in names], timeout_ms=timeout_ms, validate_only=validate_only
        )

    def read(answered: Answered[str]) -> Iterator[tuple[str, Outcome[None]]]:
        for row in answered.body.results:
            yield row.name, error_or(row, None)

    return Operation(
        "creating partitions",
        topics,
        request=request,
        read=read,
        target=Anywhere.CONTROLLER,
        retried=_retried(when_throttled),
        repeatable=False,
    )


def list_topics() -> Operation[None, dict[str, TopicListing]]:
    def read(answered: Answered[None]) -> Iterator[tuple[None, dict[str, TopicListing]]]:
        rows = [row for row in answered.body.topics if row.name is not None]
        yield None, {row.name: TopicListing(row.name, row.topic_id, row.is_internal) for row in rows}

    return Operation("listing topics", [None], request=lambda *_: _all_topics(), read=read, versions=(4, 13))


def _all_topics() -> MetadataRequest:
    return MetadataRequest(topics=None, allow_auto_topic_creation=False)


def describe_by_metadata(
    topics: Sequence[str | Uuid], with_operations: bool
) -> Operation[str | Uuid, TopicDescription]:
    """For topics by id (KIP-516), and of brokers that describe no pages of partitions."""

    def request(asked: Sequence[str | Uuid], _timeout_ms: int) -> Request:
        rows = [
            MetadataRequestTopic(name=topic, topic_id=ZERO_UUID)
            if isinstance(topic, str)
            else MetadataRequestTopic(name=None, topic_id=topic)
            for topic in asked
        ]
        return MetadataRequest(
            topics=rows, allow_auto_topic_creation=False, include_topic_authorized_operations=with_operations
        )

    def read(answered: Answered[str | Uuid]) -> Iterator[tuple[str | Uuid, Outcome[TopicDescription]]]:
        by_name = isinstance(answered.items[0], str)
        for row in answered.body.topics:
            key = row.name if by_name else row.topic_id
            if row.error_code:
                yield key, error_of(row.error_code)
            elif row.name is None:
                yield key, UnknownServerError("the broker described a topic without its name")
            else:
                partitions = [_described_partition(each) for each in sorted(row.partitions, key=_index)]
                bits = row.topic_authorized_operations
                yield (
                    key,
                    TopicDescription(
                        row.name, row.topic_id, row.is_internal, tuple(partitions), authorized_operations(bits)
                    ),
                )

    def versions(asked: Sequence[str | Uuid]) -> tuple[int, int]:
        return max(8 if with_operations else 4, 4 if isinstance(asked[0], str) else 12), 13

    return Operation(
        "describing topics", topics, request=request, read=read, versions=versions, group=type, retried=_NOT_YET
    )


def _index(row: Any) -> int:
    index: int = row.partition_index
    return index


def _described_partition(row: Any) -> TopicPartitionInfo:
    return TopicPartitionInfo(
        row.partition_index,
        row.leader_id,
        row.leader_epoch,
        tuple(row.replica_nodes),
        tuple(row.isr_nodes),
        tuple(row.offline_replicas),
    )


class TopicsPage(NamedTuple):
    """What one answer has of topics: partitions may go on in the next page, from `cursor` on."""

    topics: Sequence[Any]
    cursor: tuple[str, int] | None


def describe_page(names: Sequence[str], cursor: tuple[str, int] | None) -> Operation[None, TopicsPage]:
    def request(_items: Sequence[None], _timeout_ms: int) -> Request:
        return DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in names],
            response_partition_limit=PAGE_PARTITIONS,
            cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
        )

    def read(answered: Answered[None]) -> Iterator[tuple[None, TopicsPage]]:
        goes_on = answered.body.next_cursor
        yield (
            None,
            TopicsPage(
                answered.body.topics, None if goes_on is None else (goes_on.topic_name, goes_on.partition_index)
            ),
        )

    return Operation("describing topics", [None], request=request, read=read)


def paged_partition(row: Any) -> TopicPartitionInfo:
    """A partition of a page, with its eligible leaders (KIP-966)."""
    eligible, last_known = row.eligible_leader_replicas, row.last_known_elr
    return _described_partition(row)._replace(
        eligible_leader_replicas=None if eligible is None else tuple(eligible),
        last_known_eligible_leader_replicas=None if last_known is None else tuple(last_known),
    )
