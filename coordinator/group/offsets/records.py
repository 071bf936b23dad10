"""The records of committed offsets, and batches of them that fit."""

from collections.abc import Sequence
from typing import Any, Final

from kavka.coordinator.runtime.append_errors import is_too_large
from kavka.coordinator.runtime.record_encoding import encoded
from kavka.coordinator.runtime.result import CoordinatorRecord, Reply, Result
from kavka.protocol.errors import BrokerError
from kavka.protocol.internal.group_records import OffsetCommitKey, OffsetCommitValue

NO_EXPIRE_TIMESTAMP: Final = -1
VERSION_WITH_LEADER_EPOCH: Final = 3
VERSION_WITH_EXPIRE_TIMESTAMP: Final = 1

TOMBSTONES_A_BATCH: Final = 1_000
TOMBSTONE_BATCH_BYTES: Final = 512 * 1024
"""Half of what the internal topic takes by default: a group's name may have 32 KiB, and stands in each record."""
RECORD_OVERHEAD_BYTES: Final = 24
"""What a record has beside key and value, at most."""


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

    A batch that the topic finds too large is halved. If an append fails for good, what was appended before stands, and
    no reply is given.
    """
    return _batch(records, _fitting(records), replies)


def _batch(records: Sequence[CoordinatorRecord], count: int, replies: Sequence[tuple[Reply, Any]]) -> Result:
    def failed(error: BrokerError) -> Result:
        if is_too_large(error):
            return _batch(records, count // 2, replies)
        raise error

    first, rest = records[:count], records[count:]
    return Result(
        first,
        () if rest else replies,
        appended=(lambda: in_batches(rest, replies)) if rest else None,
        failed=failed if count > 1 else None,
    )


def _fitting(records: Sequence[CoordinatorRecord]) -> int:
    """How many of them make a batch, from the first on."""
    size_bytes = 0
    for count, record in enumerate(records[:TOMBSTONES_A_BATCH]):
        key, value = encoded(record)
        size_bytes += len(key) + len(value or b"") + RECORD_OVERHEAD_BYTES
        if size_bytes > TOMBSTONE_BATCH_BYTES:
            return max(count, 1)
    return min(len(records), TOMBSTONES_A_BATCH)
