"""The records of committed offsets, and tombstones in batches that fit."""

from collections.abc import Callable, Sequence
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


class Tombstones:
    """Tombstones, as many as they are: one batch is appended after the other, then come the replies.

    A batch that the topic finds too large is halved. If an append fails for good, what was appended before stands, no
    reply is given, and `failed(error)` may raise another error than that. `stands` is called with each record that has
    been appended.
    """

    __slots__ = ("_failed", "_records", "_replies", "_stands")

    def __init__(
        self,
        records: Sequence[CoordinatorRecord],
        replies: Sequence[tuple[Reply, Any]] = (),
        *,
        stands: Callable[[CoordinatorRecord], object] | None = None,
        failed: Callable[[BrokerError], object] | None = None,
    ) -> None:
        self._records = records
        self._replies = replies
        self._stands = stands
        self._failed = failed

    def result(self) -> Result:
        """The first batch, and the others after it."""
        return self._from(0) if self._records else Result((), self._replies)

    def _from(self, first: int) -> Result:
        return self._batch(first, _fitting(self._records, first))

    def _batch(self, first: int, count: int) -> Result:
        behind = first + count
        records = self._records[first:behind]
        is_last = behind >= len(self._records)

        def appended() -> Result | None:
            if self._stands is not None:
                for record in records:
                    self._stands(record)
            return None if is_last else self._from(behind)

        def failed(error: BrokerError) -> Result:
            if count > 1 and is_too_large(error):
                return self._batch(first, count // 2)
            if self._failed is not None:
                self._failed(error)
            raise error

        return Result(records, self._replies if is_last else (), appended=appended, failed=failed)


def _fitting(records: Sequence[CoordinatorRecord], first: int) -> int:
    """How many of them make a batch, from `first` on."""
    size_bytes = 0
    end = min(len(records), first + TOMBSTONES_A_BATCH)
    for index in range(first, end):
        key, value = encoded(records[index])
        size_bytes += len(key) + len(value or b"") + RECORD_OVERHEAD_BYTES
        if size_bytes > TOMBSTONE_BATCH_BYTES:
            return max(index - first, 1)
    return end - first
