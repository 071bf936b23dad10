"""Walking the batches of a `.log` file without reading their records.

A search reads headers only; recovery reads everything in chunks and checks each CRC. Both release the GIL with every
chunk that they read, so that serving goes on beside them.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from kavka.protocol.records.batch import BatchHeader, Record, iter_records, read_header
from kavka.protocol.records.errors import CorruptRecordsError, TruncatedBatchError
from kavka.protocol.records.header import (
    HEADER_SIZE_BYTES,
    LEAST_LENGTH,
    LOG_OVERHEAD_BYTES,
    MAGIC_POSITION,
    MAX_TIMESTAMP_POSITION,
    MESSAGE_TIMESTAMP_POSITION,
    PREVIEW,
    claimed_size_bytes,
)
from kavka.storage.files import Files, read_fully

SCAN_CHUNK_BYTES: Final = 1 << 20
_SEARCH_CHUNK_BYTES: Final = 8192
_SHORTEST_LENGTH: Final = LEAST_LENGTH[0]
"""A message of magic 0 with neither key nor value."""
_SHORTEST_BATCH_BYTES: Final = LOG_OVERHEAD_BYTES + _SHORTEST_LENGTH
_TIMESTAMP_POSITION: Final = {1: MESSAGE_TIMESTAMP_POSITION, 2: MAX_TIMESTAMP_POSITION}
_new_tuple: Final = tuple.__new__


class BatchPlace(NamedTuple):
    """Where a batch lies in its file."""

    position: int
    size_bytes: int
    base_offset: int
    last_offset: int


class ScannedBatch(NamedTuple):
    """A batch met on a scan; `data[start:start + header.size_bytes]` are its bytes."""

    position: int
    header: BatchHeader
    data: bytes | bytearray | memoryview
    start: int

    def records(self) -> Iterator[Record]:
        """The batch's records. Raises DecodeError when a bad one is reached."""
        return iter_records(self.data, self.start)

    def first_record_since(self, timestamp_ms: int, start_offset: int) -> Record | None:
        """The first record at or behind `start_offset` that is as new as `timestamp_ms`. Raises DecodeError."""
        for record in self.records():
            if record.timestamp_ms >= timestamp_ms and record.offset >= start_offset:
                return record
        return None


def find_batch(files: Files, fd: int, position: int, end_position: int, offset: int) -> BatchPlace | None:
    """The first batch at or behind `position` whose last offset is `offset` or more; None before `end_position`.

    `position` must be the start of a batch. Raises OSError, CorruptRecordsError if what lies there isn't a batch.
    """
    return _search(files, fd, position, end_position, offset, False)


def last_batch(files: Files, fd: int, position: int, end_position: int) -> BatchPlace | None:
    """The last batch that starts at or behind `position` (the start of one). Raises as `find_batch` does."""
    return _search(files, fd, position, end_position, -1, True)


def _search(
    files: Files, fd: int, position: int, end_position: int, offset: int, to_the_end: bool
) -> BatchPlace | None:
    """The first batch that ends at or behind `offset`; `to_the_end`: the last one that ends behind those before it."""
    found = None
    unpack = PREVIEW.unpack_from
    while position + _SHORTEST_BATCH_BYTES <= end_position:
        chunk = files.pread(fd, min(_SEARCH_CHUNK_BYTES, end_position - position), position)
        if len(chunk) < _SHORTEST_BATCH_BYTES:
            return found
        if len(chunk) < PREVIEW.size:
            chunk += b"\0"
        inside = 0
        last_inside = len(chunk) - PREVIEW.size
        while inside <= last_inside:
            base_offset, length, magic, last_delta = unpack(chunk, inside)
            last_offset = base_offset + last_delta if magic == 2 else base_offset
            if length < _SHORTEST_LENGTH or last_offset < base_offset or not 0 <= magic <= 2:
                raise CorruptRecordsError(f"no batch at {position + inside}: length {length}, magic {magic}")
            if last_offset >= offset:
                size = length + LOG_OVERHEAD_BYTES
                found = _new_tuple(BatchPlace, (position + inside, size, base_offset, last_offset))
                if not to_the_end:
                    return found
                offset = last_offset + 1
            inside += length + LOG_OVERHEAD_BYTES
        position += inside
    return found


def first_timestamp(files: Files, fd: int) -> int | None:
    """The largest timestamp of the file's first batch; -1 if it has none, None in an empty file. Raises OSError."""
    data = files.pread(fd, HEADER_SIZE_BYTES, 0)
    if len(data) < _SHORTEST_BATCH_BYTES:
        return None
    place = _TIMESTAMP_POSITION.get(data[MAGIC_POSITION])
    return -1 if place is None else int.from_bytes(data[place : place + 8], "big", signed=True)


def scan_batches(files: Files, fd: int, position: int, end_position: int) -> Iterator[ScannedBatch]:
    """The batches from `position` on, each whole in memory; ends at `end_position`, never beyond the file.

    CRCs aren't checked. Raises CorruptRecordsError at the first thing that isn't a whole batch, and OSError.
    """
    chunk = b""
    inside = 0
    while position < end_position:
        try:
            header = read_header(chunk, inside)
        except TruncatedBatchError:
            left = end_position - position
            chunk, inside = read_fully(files, fd, min(left, SCAN_CHUNK_BYTES), position), 0
            wanted = claimed_size_bytes(chunk)
            if len(chunk) < wanted <= left:
                chunk = read_fully(files, fd, wanted, position)
            header = read_header(chunk, 0)
        yield ScannedBatch(position, header, chunk, inside)
        size = header.size_bytes
        position += size
        inside += size
