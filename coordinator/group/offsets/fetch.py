"""OffsetFetch: what a group has committed."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from kavka.coordinator.runtime.result import Reply, Result
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.offset_fetch import (
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

if TYPE_CHECKING:
    from kavka.coordinator.group.offsets.store import CommittedOffset, OffsetStore
    from kavka.coordinator.group.table import GroupTable
    from kavka.protocol.messages.offset_fetch import OffsetFetchRequestGroup

NO_OFFSET: Final = -1
NO_LEADER_EPOCH: Final = -1


class OffsetFetches:
    """Answers what is committed. Changes nothing but a member's session; called under the shard's lock."""

    __slots__ = ("_store", "_table")

    def __init__(self, table: "GroupTable", store: "OffsetStore") -> None:
        self._table = table
        self._store = store

    def fetch(self, asked: "OffsetFetchRequestGroup", reply: Reply, *, require_stable: bool) -> Result:
        """The offsets of the partitions asked for, or of all that the group has; an `OffsetFetchResponseGroup`.

        Never committed is offset -1, and no error; so is everything about a group that doesn't exist. With
        `require_stable` a partition with a pending transactional offset is UNSTABLE_OFFSET_COMMIT (KIP-447).
        Raises BrokerError(UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH) for the whole group.
        """
        group = self._table.get(asked.group_id)
        if group is not None:
            group.validate_offset_fetch(asked.member_id, asked.member_epoch)
        topics = []
        for wanted in self._everything(asked.group_id) if asked.topics is None else asked.topics:
            name = wanted.name
            partitions = [
                _partition(index, None, ErrorCode.UNSTABLE_OFFSET_COMMIT)
                if require_stable and self._store.is_pending(asked.group_id, name, index)
                else _partition(index, self._store.get(asked.group_id, name, index), ErrorCode.NONE)
                for index in wanted.partition_indexes
            ]
            topics.append(OffsetFetchResponseTopics(name=name, topic_id=wanted.topic_id, partitions=partitions))
        answer = OffsetFetchResponseGroup(group_id=asked.group_id, topics=topics, error_code=ErrorCode.NONE)
        return Result((), ((reply, answer),), reads_committed=True)

    def _everything(self, group_id: str) -> Iterable[OffsetFetchRequestTopics]:
        for topic in self._store.topics_of(group_id):
            indexes = self._store.partitions_in(group_id, topic)
            yield OffsetFetchRequestTopics(name=topic, partition_indexes=indexes)


def _partition(index: int, committed: "CommittedOffset | None", code: ErrorCode) -> OffsetFetchResponsePartitions:
    if committed is None:
        return OffsetFetchResponsePartitions(
            partition_index=index,
            committed_offset=NO_OFFSET,
            committed_leader_epoch=NO_LEADER_EPOCH,
            metadata="",
            error_code=code,
        )
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        error_code=code,
    )
