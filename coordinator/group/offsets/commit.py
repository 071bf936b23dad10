"""OffsetCommit and TxnOffsetCommit: who may commit, what is refused, what is written.

A group that doesn't exist comes into being with a commit that names no generation: it is then a "simple" group, which
holds offsets and has no members. The replay of the first offset makes it.
"""

from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from kavka.coordinator.group.offsets.records import NO_EXPIRE_TIMESTAMP, offset_record
from kavka.coordinator.runtime.result import CoordinatorRecord, Producer, Reply, Result
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kavka.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from kavka.coordinator.group.group import Client, PartitionCheck
    from kavka.coordinator.group.offsets.repeated import RepeatedCommit
    from kavka.coordinator.group.table import GroupTable
    from kavka.coordinator.ports import ShardContext
    from kavka.protocol.messages.offset_commit import OffsetCommitRequest
    from kavka.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

COMMITS: Final = "kafka_server_group_coordinator_metrics_offset_commit"
NO_RETENTION_TIME: Final = -1
NO_COMMIT_TIMESTAMP: Final = -1
FIRST_VERSION_WITH_MEMBER_EPOCHS: Final = 9
MAX_I64: Final = (1 << 63) - 1


class _Asked(Protocol):
    """A partition of either request."""

    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str | None


class OffsetCommits:
    """Decides on commits. Stateless; called under the shard's lock."""

    __slots__ = ("_context", "_table")

    def __init__(self, context: "ShardContext", table: "GroupTable") -> None:
        self._context = context
        self._table = table

    def commit(self, request: "OffsetCommitRequest", client: "Client", reply: Reply) -> Result:
        """Store what may be stored; the rest is answered partition by partition.

        Topics must exist and have names, also where the request gave ids. Raises BrokerError for the whole request:
        GROUP_ID_NOT_FOUND (before v9 ILLEGAL_GENERATION), UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, FENCED_INSTANCE_ID,
        REBALANCE_IN_PROGRESS, STALE_MEMBER_EPOCH (before v9 UNSUPPORTED_VERSION).
        """
        check = self._validate(request, client.api_version)
        now_ms = self._context.now_ms()
        retention_ms = request.retention_time_ms
        # "For ever" is the longest time that there is: no timestamp lies that far ahead.
        expire_ms = NO_EXPIRE_TIMESTAMP if retention_ms == NO_RETENTION_TIME else min(now_ms + retention_ms, MAX_I64)
        accepted = _Accepted(request.group_id, self._context.config.offset_metadata_max_bytes, check)
        topics = []
        for topic in request.topics:
            accepted.begin(topic.name, self._topic_id(topic.name, check))
            answers = []
            for each in topic.partitions:
                timestamp_ms = now_ms if each.commit_timestamp == NO_COMMIT_TIMESTAMP else each.commit_timestamp
                code = accepted.take(each, timestamp_ms, expire_ms)
                answers.append(OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code))
            topics.append(OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=answers))
        self._count(accepted.records)
        return Result(accepted.records, ((reply, OffsetCommitResponse(topics=topics)),))

    def repeat(self, repeated: "RepeatedCommit") -> Result:
        """As `commit`, of a commit that was answered without a fault before; nobody is answered, and nothing counted.

        Raises BrokerError as `commit` does.
        """
        if self._validate(repeated.request, repeated.api_version) is not None:
            # The epoch has become an old one: each partition has to be looked at.
            raise BrokerError(ErrorCode.STALE_MEMBER_EPOCH)
        return repeated.result(self._context.now_ms())

    def txn_commit(self, request: "TxnOffsetCommitRequest", client: "Client", reply: Reply, guard: int = 0) -> Result:
        """Store offsets that stand when the producer's transaction is committed (KIP-447: fenced as a member is).

        `guard`: what the transaction was verified with (KIP-890), see `Result`.
        Raises BrokerError for the whole request, as `commit` does; a group that is not there or a stale member epoch is
        ILLEGAL_GENERATION.
        """
        check = self._validate_transactional(request, client.api_version)
        now_ms = self._context.now_ms()
        accepted = _Accepted(request.group_id, self._context.config.offset_metadata_max_bytes, check)
        topics = []
        for topic in request.topics:
            accepted.begin(topic.name, self._topic_id(topic.name, check))
            answers = []
            for each in topic.partitions:
                code = accepted.take(each, now_ms, NO_EXPIRE_TIMESTAMP)
                answers.append(TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code))
            topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=answers))
        self._count(accepted.records)
        producer = Producer(request.producer_id, request.producer_epoch)
        response = TxnOffsetCommitResponse(topics=topics)
        return Result(accepted.records, ((reply, response),), producer=producer, guard=guard)

    def _count(self, records: list[CoordinatorRecord]) -> None:
        count = self._context.count
        for _ in records:
            count(COMMITS)

    def _topic_id(self, name: str, check: "PartitionCheck | None") -> bytes | None:
        """Looked up only where it is asked for."""
        return None if check is None else self._context.topics.topic_id(name)

    def _validate(self, request: "OffsetCommitRequest", api_version: int) -> "PartitionCheck | None":
        generation = request.generation_id_or_member_epoch
        group = self._table.get(request.group_id)
        if group is None:
            if generation < 0:
                return None
            raise BrokerError(
                ErrorCode.GROUP_ID_NOT_FOUND
                if api_version >= FIRST_VERSION_WITH_MEMBER_EPOCHS
                else ErrorCode.ILLEGAL_GENERATION
            )
        try:
            return group.validate_offset_commit(
                request.member_id, request.group_instance_id, generation, transactional=False, api_version=api_version
            )
        except BrokerError as error:
            if error.code is ErrorCode.STALE_MEMBER_EPOCH and api_version < FIRST_VERSION_WITH_MEMBER_EPOCHS:
                raise BrokerError(ErrorCode.UNSUPPORTED_VERSION) from error
            raise

    def _validate_transactional(self, request: "TxnOffsetCommitRequest", api_version: int) -> "PartitionCheck | None":
        generation = request.generation_id
        group = self._table.get(request.group_id)
        if group is None:
            if generation < 0:
                return None
            raise BrokerError(ErrorCode.ILLEGAL_GENERATION)
        try:
            check = group.validate_offset_commit(
                request.member_id, request.group_instance_id, generation, transactional=True, api_version=api_version
            )
        except BrokerError as error:
            if error.code is ErrorCode.STALE_MEMBER_EPOCH:
                raise BrokerError(ErrorCode.ILLEGAL_GENERATION) from error
            raise
        return None if check is None else partial(_check_for_producers, check)


class _Accepted:
    """The offsets of one request that are to be written."""

    __slots__ = ("_check", "_group_id", "_longest", "_topic", "_topic_id", "records")

    def __init__(self, group_id: str, longest: int, check: "PartitionCheck | None") -> None:
        self._group_id = group_id
        self._longest = longest
        self._check = check
        self._topic = ""
        self._topic_id: bytes | None = None
        self.records: list[CoordinatorRecord] = []

    def begin(self, topic: str, topic_id: bytes | None) -> None:
        """What follows is of that topic. `topic_id`: None if there is no such topic, or nobody asks."""
        self._topic, self._topic_id = topic, topic_id

    def take(self, asked: _Asked, commit_timestamp_ms: int, expire_timestamp_ms: int) -> ErrorCode:
        """What the partition is answered; NONE if its offset will be written. Raises BrokerError for all of them."""
        metadata = asked.committed_metadata or ""
        if metadata and _is_longer(metadata, self._longest):
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        if self._check is not None:
            self._check(self._topic, self._topic_id, asked.partition_index)
        self.records.append(
            offset_record(
                self._group_id,
                self._topic,
                asked.partition_index,
                asked.committed_offset,
                asked.committed_leader_epoch,
                metadata,
                commit_timestamp_ms,
                expire_timestamp_ms,
            )
        )
        return ErrorCode.NONE


def _check_for_producers(check: "PartitionCheck", topic: str, topic_id: bytes | None, partition: int) -> None:
    try:
        check(topic, topic_id, partition)
    except BrokerError as error:
        # TxnOffsetCommit knows generations only.
        raise BrokerError(ErrorCode.ILLEGAL_GENERATION) from error


def _is_longer(text: str, limit: int) -> bool:
    """Whether it has more UTF-16 units than that, which is what Kafka counts."""
    return len(text) > limit or (not text.isascii() and len(text.encode("utf-16-le")) > 2 * limit)
