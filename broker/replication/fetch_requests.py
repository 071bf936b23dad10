"""The requests that a follower sends, in the version that both sides have. Pure."""

from collections.abc import Iterable, Mapping
from typing import Final

from kavka.broker.replication.followed_partitions import FetchPlan, Key, Told
from kavka.broker.replication.leader_port import known_code
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, ReplicaState
from kavka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kavka.protocol.schema import ZERO_UUID

TOPIC_IDS_SINCE: Final = 13
REPLICA_STATE_SINCE: Final = 15
OLDEST_FETCH: Final = 12
"""With it the leader tells of diverging epochs; `inter.broker.protocol.version` is never older."""
NEWEST_FETCH: Final = 17
"""Kafka's followers send none newer: v18 is for KRaft's."""
LIST_OFFSETS_VERSION: Final = 6
"""What the oldest `inter.broker.protocol.version` has, and all that followers ask for."""
READ_UNCOMMITTED: Final = 0


class FetchLimits:
    """How much a follower asks for at once, and how long the leader may wait. Immutable."""

    __slots__ = ("max_bytes", "max_wait_ms", "min_bytes", "partition_max_bytes")

    def __init__(self, *, max_wait_ms: int, min_bytes: int, max_bytes: int, partition_max_bytes: int) -> None:
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.partition_max_bytes = partition_max_bytes


def fetch_request(
    plan: FetchPlan, limits: FetchLimits, version: int, *, broker_id: int, broker_epoch: int
) -> FetchRequest:
    """The fetch that `plan` says. `broker_epoch` is the follower's own (KIP-903)."""
    request = FetchRequest(
        max_wait_ms=limits.max_wait_ms,
        min_bytes=limits.min_bytes,
        max_bytes=limits.max_bytes,
        isolation_level=READ_UNCOMMITTED,
        session_id=plan.session_id,
        session_epoch=plan.session_epoch,
        topics=_topics(plan.partitions, limits.partition_max_bytes, version),
        forgotten_topics_data=_forgotten(plan.forgotten, version),
    )
    if version >= REPLICA_STATE_SINCE:
        request.replica_state = ReplicaState(replica_id=broker_id, replica_epoch=broker_epoch)
    else:
        request.replica_id = broker_id
    return request


def offsets_request(epochs: Mapping[Key, int], timestamp: int, broker_id: int) -> ListOffsetsRequest:
    """Where the logs begin or end, as of these leader epochs."""
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for (topic, index), epoch in epochs.items():
        part = ListOffsetsPartition(partition_index=index, current_leader_epoch=epoch, timestamp=timestamp)
        topics.setdefault(topic, []).append(part)
    return ListOffsetsRequest(
        replica_id=broker_id,
        isolation_level=READ_UNCOMMITTED,
        topics=[ListOffsetsTopic(name=name, partitions=parts) for name, parts in topics.items()],
    )


def offsets_of(answer: ListOffsetsResponse) -> dict[Key, tuple[ErrorCode, int]]:
    """What the answer says of each partition."""
    return {
        (topic.name, part.partition_index): (known_code(part.error_code), part.offset)
        for topic in answer.topics
        for part in topic.partitions
    }


def _topics(partitions: Iterable[tuple[Key, Told]], max_bytes: int, version: int) -> list[FetchTopic]:
    """In the order given, as far as neighbours are of one topic: the leader reads them in that order."""
    topics: list[FetchTopic] = []
    last: tuple[str, bytes] | None = None
    for (name, index), told in partitions:
        if last != (name, told.topic_id):
            last = (name, told.topic_id)
            uses_ids = version >= TOPIC_IDS_SINCE
            topics.append(
                FetchTopic(
                    topic="" if uses_ids else name, topic_id=told.topic_id if uses_ids else ZERO_UUID, partitions=[]
                )
            )
        topics[-1].partitions.append(
            FetchPartition(
                partition=index,
                current_leader_epoch=told.leader_epoch,
                fetch_offset=told.fetch_offset,
                last_fetched_epoch=told.last_fetched_epoch,
                log_start_offset=told.log_start_offset,
                partition_max_bytes=max_bytes,
            )
        )
    return topics


def _forgotten(forgotten: Iterable[tuple[str, bytes, int]], version: int) -> list[ForgottenTopic]:
    by_topic: dict[tuple[str, bytes], list[int]] = {}
    for name, topic_id, index in forgotten:
        key = ("", topic_id) if version >= TOPIC_IDS_SINCE else (name, ZERO_UUID)
        by_topic.setdefault(key, []).append(index)
    return [
        ForgottenTopic(topic=name, topic_id=topic_id, partitions=indexes)
        for (name, topic_id), indexes in by_topic.items()
    ]
