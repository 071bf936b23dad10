"""Offsets that go: by OffsetDelete, by age (KIP-211), or with their group."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from kavka.coordinator.group.group import OffsetExpiry
from kavka.coordinator.group.offsets.records import NO_EXPIRE_TIMESTAMP, Tombstones, offset_tombstone
from kavka.coordinator.runtime.result import NOTHING, CoordinatorRecord, Reply, Result
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.internal.group_records import OffsetCommitKey
from kavka.protocol.messages.offset_delete import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from kavka.coordinator.group.group import Group
    from kavka.coordinator.group.offsets.store import OffsetStore
    from kavka.coordinator.group.table import GroupTable
    from kavka.coordinator.ports import ShardContext
    from kavka.protocol.messages.offset_delete import OffsetDeleteRequest

DELETIONS: Final = "kafka_server_group_coordinator_metrics_offset_deletion"
EXPIRATIONS: Final = "kafka_server_group_coordinator_metrics_offset_expiration"

OFFSETS_A_SLICE: Final = 500
"""How many offsets one run of the expiry looks at: about a millisecond's work under the shard's lock."""
MINUTE_MS: Final = 60_000
PAUSE_BETWEEN_SLICES_MS: Final = 10
EXPIRY_TIMER: Final = "expire offsets"


class _Rule(NamedTuple):
    """By which a group's offsets expire, as it stands at one moment."""

    now_ms: int
    retention_ms: int
    expiry: OffsetExpiry


class OffsetDeletions:
    """Decides which offsets are deleted.

    `_walk`: the expiry that is under way, between two of its slices; `_left`: the groups that it has still to look at.

    Threads: all under the shard's lock.
    """

    __slots__ = ("_context", "_left", "_store", "_table", "_walk")

    def __init__(self, context: "ShardContext", table: "GroupTable", store: "OffsetStore") -> None:
        self._context = context
        self._table = table
        self._store = store
        self._left: Iterator[Group] | None = None
        self._walk: Iterator[list[CoordinatorRecord]] | None = None

    def delete(self, request: "OffsetDeleteRequest", reply: Reply) -> Result:
        """Delete those asked for, but of topics that a member is subscribed to (GROUP_SUBSCRIBED_TO_TOPIC).

        Raises BrokerError for the whole request: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP.
        """
        group_id = request.group_id
        group = self._table.get(group_id)
        if group is None:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND)
        group.validate_offset_delete()
        records: list[CoordinatorRecord] = []
        topics = []
        for topic in request.topics:
            subscribed = group.is_subscribed_to(topic.name)
            code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
            answers = []
            for each in topic.partitions:
                index = each.partition_index
                if not subscribed and self._has(group_id, topic.name, index):
                    records.append(offset_tombstone(group_id, topic.name, index))
                answers.append(OffsetDeleteResponsePartition(partition_index=index, error_code=code))
            topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=answers))
        response = OffsetDeleteResponse(error_code=ErrorCode.NONE, topics=topics)
        return Tombstones(records, ((reply, response),), stands=self.count_deleted).result()

    def all_of(self, group_id: str) -> list[CoordinatorRecord]:
        """The tombstones of all offsets of a group that is to be deleted, pending ones too."""
        return [offset_tombstone(group_id, *each) for each in self._store.partitions_of(group_id)]

    def count_deleted(self, record: CoordinatorRecord) -> None:
        """A tombstone stands: count it, if it is an offset's."""
        self._count(DELETIONS, record)

    def loaded(self) -> None:
        """Start the expiry."""
        self._schedule_expiry(self._context.config.offsets_retention_check_interval_ms)

    def _expire(self) -> Result:
        """Look at a slice of the offsets, and write the tombstones of those that are too old."""
        # First of all, so that whatever goes wrong below goes wrong this once.
        self._schedule_expiry(self._context.config.offsets_retention_check_interval_ms)
        if self._left is None:
            self._left = iter(self._table.all())
        # A walk that fails is over; the next one goes on behind the group that it failed at.
        walk, self._walk = self._walk or self._expired(self._left), None
        records = next(walk, None)
        if records is None:
            self._left = None
            return NOTHING
        self._walk = walk
        self._schedule_expiry(PAUSE_BETWEEN_SLICES_MS)
        return Tombstones(records, stands=partial(self._count, EXPIRATIONS)).result()

    def _schedule_expiry(self, delay_ms: float) -> None:
        self._context.timers.schedule(EXPIRY_TIMER, delay_ms, self._expire)

    def _expired(self, groups: "Iterator[Group]") -> Iterator[list[CoordinatorRecord]]:
        """The tombstones that are due, slice by slice. Groups and offsets may come and go between two slices.

        A group without members whose last offset goes is deleted with it, unless a transaction is still going on.
        """
        looked_at = 0
        records: list[CoordinatorRecord] = []
        for group in groups:
            rule = self._rule(group)
            due = 0
            for topic, partition in self._candidates(group) if rule is not None else ():
                if looked_at >= OFFSETS_A_SLICE:
                    yield records
                    looked_at, due, records = 0, 0, []
                    rule = self._rule(group)
                looked_at += 1
                if rule is not None and self._is_due(group.group_id, topic, partition, rule):
                    records.append(offset_tombstone(group.group_id, topic, partition))
                    due += 1
            looked_at += 1
            if self._is_over(group, due):
                records += group.tombstones()
        yield records

    def _candidates(self, group: "Group") -> Iterator[tuple[str, int]]:
        for topic in list(self._store.topics_of(group.group_id)):
            for partition in self._store.partitions_in(group.group_id, topic):
                yield topic, partition

    def _rule(self, group: "Group") -> "_Rule | None":
        """By which the group's offsets expire now; None: not at all, or the group is gone."""
        if self._table.get(group.group_id) is not group:
            return None
        now_ms = self._context.now_ms()
        expiry = group.offset_expiry(now_ms)
        if expiry is None:
            return None
        return _Rule(now_ms, self._context.config.offsets_retention_minutes * MINUTE_MS, expiry)

    def _is_due(self, group_id: str, topic: str, partition: int, rule: "_Rule") -> bool:
        now_ms, retention_ms, expiry = rule
        committed = self._store.get(group_id, topic, partition)
        if committed is None or expiry.spares(topic) or self._store.is_pending(group_id, topic, partition):
            return False
        if committed.expire_timestamp_ms != NO_EXPIRE_TIMESTAMP:
            return now_ms >= committed.expire_timestamp_ms
        return now_ms - expiry.base_timestamp_ms(committed.commit_timestamp_ms) >= retention_ms

    def _is_over(self, group: "Group", due: int) -> bool:
        """Whether nothing is left of the group once `due` more of its offsets are gone."""
        group_id = group.group_id
        return (
            group.is_empty
            and self._table.get(group_id) is group
            and not self._store.is_open(group_id)
            and self._store.count_of(group_id) == due
        )

    def _has(self, group_id: str, topic: str, partition: int) -> bool:
        return self._store.get(group_id, topic, partition) is not None or self._store.is_pending(
            group_id, topic, partition
        )

    def _count(self, name: str, record: CoordinatorRecord) -> None:
        if type(record.key) is OffsetCommitKey:
            self._context.count(name)
