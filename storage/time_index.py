"""The sparse map from timestamps to offsets in a segment (`<base offset>.timeindex`).

    entry  0..7   timestamp        i64, big endian: the largest so far, milliseconds
           8..11  relative offset  u32: the last offset of the batch that has it, minus the segment's base offset

Both ascend. An entry is added where the offset index gets one, if the largest timestamp grew since the last entry; and
on roll and close, so that the last entry of a sealed index is the segment's largest timestamp.

Look-ups by time are rare (ListOffsets), so a sealed index is read when asked and not kept; the file is open only while
it is read or written. Threads: changed under the log's lock; looked up by any thread.
"""

import struct
from bisect import bisect_right
from typing import Final

from kavka.storage.files import Files, append_to_file, cut_file
from kavka.storage.offset_index import CorruptIndexError

ENTRY: Final = struct.Struct(">qI")
ENTRY_BYTES: Final = ENTRY.size
NO_TIMESTAMP: Final = -1


class TimeIndex:
    """The time index of one segment. `_active` holds the entries' bytes while the segment is written to, else None.

    The file holds the first `_saved_bytes`, and with `_ragged` maybe something behind them.
    """

    __slots__ = ("_active", "_files", "_last_timestamp_ms", "_ragged", "_saved_bytes", "base_offset", "path")

    def __init__(self, path: str, base_offset: int, files: Files) -> None:
        self.path = path
        self.base_offset = base_offset
        self._files = files
        self._active: bytearray | None = None
        self._ragged = False
        self._saved_bytes = 0
        self._last_timestamp_ms = NO_TIMESTAMP

    def lookup(self, timestamp_ms: int) -> tuple[int, int]:
        """(timestamp, offset) of the last entry at or below `timestamp_ms`; (-1, base offset) when there is none."""
        active = self._active
        data = self._files.read_bytes(self.path) if active is None else active
        found = bisect_right(range(len(data) // ENTRY_BYTES), timestamp_ms, key=lambda i: _entry(data, i)[0])
        return self._absolute(data, found - 1)

    def last_entry(self) -> tuple[int, int]:
        """(timestamp, offset) of the last entry; (-1, base offset) when there is none. Raises OSError."""
        active = self._active
        if active is not None:
            return self._absolute(active, len(active) // ENTRY_BYTES - 1)
        _, last = self._read_last()
        return self._absolute(last, len(last) // ENTRY_BYTES - 1)

    def count(self) -> int:
        active = self._active
        return (self._files.size(self.path) if active is None else len(active)) // ENTRY_BYTES

    def maybe_append(self, timestamp_ms: int, offset: int) -> None:
        """Add an entry to an active index, in memory, if its timestamp is larger than the last one's."""
        active = self._active
        assert active is not None
        if timestamp_ms > self._last_timestamp_ms:
            active += ENTRY.pack(timestamp_ms, offset - self.base_offset)
            self._last_timestamp_ms = timestamp_ms

    def start_empty(self) -> None:
        """Make the index active with no entries; what the file holds is overwritten by `save`."""
        self._active = bytearray()
        self._saved_bytes = 0
        self._ragged = True
        self._last_timestamp_ms = NO_TIMESTAMP

    def activate(self) -> None:
        """Read the file's entries to go on behind them. Raises OSError, CorruptIndexError."""
        if self._active is None:
            data = bytearray(self._files.read_bytes(self.path))
            if len(data) % ENTRY_BYTES:
                raise CorruptIndexError(f"{self.path} has {len(data)} bytes, not a multiple of {ENTRY_BYTES}")
            self._active = data
            self._saved_bytes = len(data)
            self._ragged = False
            self._last_timestamp_ms = self.last_entry()[0]

    def seal(self) -> None:
        """Save what is missing and let the memory go. Raises OSError."""
        if self._active is not None:
            self.save()
            self._active = None

    def save(self) -> bool:
        """Write the entries that the file lacks, and end it there. Whether that changed it. Raises OSError."""
        active = self._active
        if active is None or (len(active) == self._saved_bytes and not self._ragged):
            return False
        cut, self._ragged = self._ragged, True
        missing = bytes(active[self._saved_bytes :])
        written = append_to_file(self._files, self.path, missing, self._saved_bytes, cut=cut)
        self._saved_bytes = len(active)
        self._ragged = False
        return written

    def truncate_to(self, offset: int) -> None:
        """Drop the entries at or above `offset` from an active index, and from its file. Raises OSError."""
        active = self._active
        assert active is not None
        kept = len(active) // ENTRY_BYTES
        while kept and self._absolute(active, kept - 1)[1] >= offset:
            kept -= 1
        self._active = active[: kept * ENTRY_BYTES]
        self._last_timestamp_ms = self._absolute(active, kept - 1)[0]
        if kept * ENTRY_BYTES < self._saved_bytes:
            self._saved_bytes = kept * ENTRY_BYTES
            self._ragged = True
            cut_file(self._files, self.path, self._saved_bytes)
            self._ragged = False

    def check(self) -> None:
        """Raise CorruptIndexError where the file can't be a time index, OSError if it can't be read.

        An empty one is believed, also beside messages with timestamps, as Kafka does after a clean stop.
        """
        active = self._active
        if active is not None:
            size, last = len(active), bytes(active[-ENTRY_BYTES:])
        else:
            size, last = self._read_last()
        if size % ENTRY_BYTES:
            raise CorruptIndexError(f"{self.path} has {size} bytes, not a multiple of {ENTRY_BYTES}")
        if size:
            timestamp_ms, offset = ENTRY.unpack(last)
            if timestamp_ms < 0 or offset > 0x7FFFFFFF or (size > ENTRY_BYTES and not offset):
                raise CorruptIndexError(f"{self.path} ends with timestamp {timestamp_ms} at offset {offset}")

    def _read_last(self) -> tuple[int, bytes]:
        """(the file's size, its last entry)"""
        fd = self._files.open(self.path, read_only=True)
        try:
            size = self._files.descriptor_size(fd)
            return size, self._files.pread(fd, ENTRY_BYTES, size - ENTRY_BYTES) if size >= ENTRY_BYTES else b""
        finally:
            self._files.close(fd)

    def _absolute(self, data: bytes | bytearray, slot: int) -> tuple[int, int]:
        if slot < 0:
            return NO_TIMESTAMP, self.base_offset
        timestamp_ms, offset = _entry(data, slot)
        return timestamp_ms, self.base_offset + offset


def _entry(data: bytes | bytearray, slot: int) -> tuple[int, int]:
    timestamp_ms, offset = ENTRY.unpack_from(data, slot * ENTRY_BYTES)
    return timestamp_ms, offset
