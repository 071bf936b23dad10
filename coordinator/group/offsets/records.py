"""The records of committed offsets, and batches of them that fit."""

from collections.abc import Sequence
from typing import Any, Final

from kavka.coordinator.runtime.result import CoordinatorRecord, Reply, Result
from kavka.protocol.internal.group_records import OffsetCommitKey, OffsetCommitValue

NO_EXPIRE_TIMESTAMP: Final = -1
VERSION_WITH_LEADER_EPOCH: Final = 3
VERSION_WITH_EXPIRE_TIMESTAMP: Final = 1

TOMBSTONES_A_BATCH: Final = 1_000
"""So many fit into the internal topic's max.message.bytes: the longest names make 600 bytes of each."""


def offset_record(
    group_id: str,
    topic: str,
    partition: int,
    offset: int,
    leader_epoch: int,
    metadata: str,
    commit_timestamp_ms: int,
    expire_timestamp_ms: int = NO_EXPIRE_TIMESTAMP,
) -> CoordinatorRecord:
    """A committed offset. With an expire timestamp it has no leader epoch: no version can say both."""
    return CoordinatorRecord(
        OffsetCommitKey(group=group_id, topic=topic, partition=partition),
        OffsetCommitValue(
            offset=offset,
            leader_epoch=leader_epoch if expire_timestamp_ms == NO_EXPIRE_TIMESTAMP else -1,
            metadata=metadata,
            commit_timestamp=commit_timestamp_ms,
            expire_timestamp=expire_timestamp_ms,
        ),
        VERSION_WITH_LEADER_EPOCH if expire_timestamp_ms == NO_EXPIRE_TIMESTAMP else VERSION_WITH_EXPIRE_TIMESTAMP,
    )


def offset_tombstone(group_id: str, topic: str, partition: int) -> CoordinatorRecord:
    """A committed offset is deleted, pending ones too."""
    return CoordinatorRecord(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)


def in_batches(records: Sequence[CoordinatorRecord], replies: Sequence[tuple[Reply, Any]] = ()) -> Result:
    """Tombstones, as many as they are: one batch is appended after the other, then come the replies.

    If an append fails, what was appended before stands, and no reply is given.
    """
    if len(records) <= TOMBSTONES_A_BATCH:
        return Result(records, replies)
    rest = records[TOMBSTONES_A_BATCH:]
    return Result(records[:TOMBSTONES_A_BATCH], appended=lambda: in_batches(rest, replies))
