"""A piece of a segment's `.log` file on its way to a consumer or a follower."""

from typing import Final, NamedTuple

from kavka.storage.segment_file import SegmentFile

_LENGTH_START: Final = 8
_LENGTH_END: Final = 12


class ProducerStatus(NamedTuple):
    """A producer that wrote to the partition and hasn't expired, as DescribeProducers shows it."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    current_txn_start_offset: int
    """-1: no open transaction."""


class AbortedTransaction(NamedTuple):
    """An entry of `.txnindex`: what a read_committed consumer filters out between the two offsets."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class FoundOffset(NamedTuple):
    """The answer to a search by time."""

    timestamp_ms: int
    offset: int
    leader_epoch: int
    """Of the batch found; -1 in old message formats."""


class LogSlice:
    """Bytes `position .. position + size_bytes` of one segment; starts with the batch that holds the offset read from.

    The last batch may be cut. Whoever sends it by descriptor brackets that with `acquire` and `release`. Immutable.
    """

    __slots__ = ("base_offset", "file", "position", "segment_base_offset", "size_bytes")

    def __init__(
        self, file: SegmentFile, position: int, size_bytes: int, base_offset: int, segment_base_offset: int
    ) -> None:
        self.file = file
        self.position = position
        self.size_bytes = size_bytes
        self.base_offset = base_offset
        """The offset that was asked for."""
        self.segment_base_offset = segment_base_offset

    def acquire(self) -> int:
        """Pin the file; the descriptor stays valid until `release`. Raises OSError if the segment is gone."""
        return self.file.acquire()

    def release(self) -> None:
        self.file.release()

    def fileno(self) -> int:
        """The descriptor, between `acquire` and `release`."""
        return self.file.fileno()

    def read_bytes(self) -> bytes:
        """The slice's bytes; fewer where the log was truncated meanwhile. Raises OSError."""
        if not self.size_bytes:
            return b""
        return self.file.read(self.size_bytes, self.position)

    def begins_with_whole_batch(self) -> bool:
        """Whether the first batch isn't cut. Raises OSError."""
        head = self.file.read(_LENGTH_END, self.position) if self.size_bytes >= _LENGTH_END else b""
        if len(head) < _LENGTH_END:
            return False
        return _LENGTH_END + int.from_bytes(head[_LENGTH_START:], "big") <= self.size_bytes

    def __len__(self) -> int:
        return self.size_bytes
