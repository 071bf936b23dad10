"""The sparse map from offsets to positions in a segment's `.log` (`<base offset>.index`).

    entry  0..3  relative offset  u32, big endian: the last offset of a batch, minus the segment's base offset
           4..7  position         u32: where that batch starts

Entries ascend in both. One is added when more than `index.interval.bytes` of log were written since the last one,
never for the segment's first batch. While the segment is active the entries live in memory and go to the file in
chunks, not preallocated: a crash may lose the last of them, and recovery rebuilds the active segment's index anyway.
A sealed index is read whole when first asked, and dropped again by the cache's bound. Never mapped: a store to a mapped
file on a full disk kills the process (SIGBUS). The file is open only while it is read or written.

Threads: changed under the log's lock; looked up by any thread, which sees a prefix of the entries.
"""

import sys
import threading
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from typing import Final, TypeAlias

from kavka.storage.files import Files, append_to_file, cut_file

ENTRY_BYTES: Final = 8
MAX_RELATIVE_OFFSET: Final = (1 << 31) - 1
SAVE_CHUNK_ENTRIES: Final = 128

Entries: TypeAlias = tuple["array[int]", "array[int]"]
"""(relative offsets, positions), in step; an entry's position is stored before its offset."""


class CorruptIndexError(Exception):
    """An index file that no broker wrote so; the segment's batches say it better."""


class IndexCache:
    """Which sealed indexes hold their entries in memory: `capacity_bytes` of them at most.

    The oldest goes first, but has a second chance if it was used meanwhile: so a look-up takes no lock. `_lock` guards
    everything here, and the indexes' `_loaded`.
    """

    __slots__ = ("_capacity_bytes", "_lock", "_size_bytes", "_sizes")

    def __init__(self, capacity_bytes: int = 32 << 20) -> None:
        self._capacity_bytes = capacity_bytes
        self._size_bytes = 0
        self._sizes: OrderedDict[OffsetIndex, int] = OrderedDict()
        self._lock = threading.Lock()

    def __contains__(self, index: "OffsetIndex") -> bool:
        return index in self._sizes

    def put(self, index: "OffsetIndex", entries: Entries) -> None:
        """Keep the entries with their index."""
        with self._lock:
            self._forget(index)
            self._sizes[index] = size_bytes = len(entries[0]) * ENTRY_BYTES
            self._size_bytes += size_bytes
            index.keep(entries)
            while self._size_bytes > self._capacity_bytes and len(self._sizes) > 1:
                oldest = next(iter(self._sizes))
                if oldest is not index and oldest.take_used():
                    self._sizes.move_to_end(oldest)
                else:
                    self._forget(oldest)

    def drop(self, index: "OffsetIndex") -> None:
        """Let go of the index's entries; harmless if it has none."""
        with self._lock:
            self._forget(index)

    def _forget(self, index: "OffsetIndex") -> None:
        self._size_bytes -= self._sizes.pop(index, 0)
        index.keep(None)


class OffsetIndex:
    """The offset index of one segment.

    `_active` holds the entries while the segment is written to, else None; `_loaded` those of a sealed one that the
    cache keeps, and `_used` says that they were asked for. The file holds the first `_saved_count`, and with `_ragged`
    maybe something behind them.
    """

    __slots__ = ("_active", "_cache", "_files", "_loaded", "_ragged", "_saved_count", "_used", "base_offset", "path")

    def __init__(self, path: str, base_offset: int, files: Files, cache: IndexCache) -> None:
        self.path = path
        self.base_offset = base_offset
        self._files = files
        self._cache = cache
        self._active: Entries | None = None
        self._loaded: Entries | None = None
        self._used = False
        self._ragged = False
        self._saved_count = 0

    def lookup(self, offset: int) -> int:
        """The position to scan from for the batch that holds `offset`: 0 where no entry lies at or below it."""
        offsets, positions = self._active or self._sealed()
        found = bisect_right(offsets, offset - self.base_offset)
        return positions[found - 1] if found else 0

    def offset_at_or_after(self, position: int) -> int | None:
        """The offset of the first entry at or behind `position`; None if the index ends before."""
        offsets, positions = self._active or self._sealed()
        found = bisect_left(positions, position)
        return self.base_offset + offsets[found] if found < len(offsets) else None

    def last_entry(self) -> tuple[int, int]:
        """(offset, position) of the last entry; (base offset, 0) when there is none."""
        offsets, positions = self._active or self._sealed()
        if not offsets:
            return self.base_offset, 0
        return self.base_offset + offsets[-1], positions[len(offsets) - 1]

    def count(self) -> int:
        return len((self._active or self._sealed())[0])

    def append(self, last_offset: int, position: int) -> bool:
        """Add an entry to an active index, in memory. True when a chunk is full and wants to be saved."""
        entries = self._active
        assert entries is not None
        offsets, positions = entries
        positions.append(position)
        offsets.append(last_offset - self.base_offset)
        return len(offsets) - self._saved_count >= SAVE_CHUNK_ENTRIES

    def start_empty(self) -> None:
        """Make the index active with no entries; what the file holds is forgotten, and overwritten by `save`."""
        self._active = (array("I"), array("I"))
        self._saved_count = 0
        self._ragged = True
        self._cache.drop(self)

    def activate(self) -> None:
        """Read the file's entries to go on behind them. Raises OSError, CorruptIndexError."""
        if self._active is None:
            self._active = self._read()
            self._saved_count = len(self._active[0])
            self._ragged = False
            self._cache.drop(self)

    def seal(self) -> None:
        """Save what is missing and let the memory go. Raises OSError."""
        if self._active is not None:
            self.save()
            self._active = None

    def save(self) -> bool:
        """Write the entries that the file lacks, and end it there. Whether that changed it. Raises OSError."""
        if self._active is None:
            return False
        offsets, positions = self._active
        start, count = self._saved_count, len(offsets)
        if start == count and not self._ragged:
            return False
        cut, self._ragged = self._ragged, True
        missing = _encode(offsets[start:count], positions[start:count])
        written = append_to_file(self._files, self.path, missing, start * ENTRY_BYTES, cut=cut)
        self._saved_count = count
        self._ragged = False
        return written

    def truncate_to(self, offset: int) -> None:
        """Drop the entries at or above `offset` from an active index, and from its file. Raises OSError."""
        entries = self._active
        assert entries is not None
        kept = bisect_left(entries[0], max(0, offset - self.base_offset))
        self._active = (entries[0][:kept], entries[1][:kept])
        if kept < self._saved_count:
            self._saved_count = kept
            self._ragged = True
            cut_file(self._files, self.path, kept * ENTRY_BYTES)
            self._ragged = False

    def check(self, log_size_bytes: int) -> None:
        """Raise CorruptIndexError where the file can't be an index of a log of that size, OSError if it can't be read.

        Of a sealed one only the end is looked at, as Kafka does: it is read when it is needed.
        """
        if self._active is not None:
            offsets, positions = self._active
            if offsets:
                self._check_last(offsets[-1], positions[-1], log_size_bytes)
            return
        fd = self._files.open(self.path, read_only=True)
        try:
            size = self._files.descriptor_size(fd)
            if size % ENTRY_BYTES:
                raise CorruptIndexError(f"{self.path} has {size} bytes, not a multiple of {ENTRY_BYTES}")
            if not size:
                return
            last = self._files.pread(fd, ENTRY_BYTES, size - ENTRY_BYTES)
        finally:
            self._files.close(fd)
        self._check_last(int.from_bytes(last[:4], "big"), int.from_bytes(last[4:], "big"), log_size_bytes)

    def forget(self) -> None:
        """The segment is gone: free the cache."""
        self._cache.drop(self)

    def _check_last(self, offset: int, position: int, log_size_bytes: int) -> None:
        if offset > MAX_RELATIVE_OFFSET or not 0 < position < log_size_bytes:
            raise CorruptIndexError(f"{self.path} ends with offset {offset} at {position} of {log_size_bytes} bytes")

    def keep(self, entries: Entries | None) -> None:
        """For the cache."""
        self._loaded = entries
        self._used = False

    def take_used(self) -> bool:
        """For the cache: whether the entries were asked for since the last time."""
        used, self._used = self._used, False
        return used

    def _sealed(self) -> Entries:
        entries = self._loaded
        self._used = True
        if entries is None:
            # The segment may have been sealed, or made active again, between two looks of a reader.
            entries = self._active or self._read()
            if self._active is None:
                self._cache.put(self, entries)
        return entries

    def _read(self) -> Entries:
        data = self._files.read_bytes(self.path)
        if len(data) % ENTRY_BYTES:
            raise CorruptIndexError(f"{self.path} has {len(data)} bytes, not a multiple of {ENTRY_BYTES}")
        words = array("I", data)
        if sys.byteorder == "little":
            words.byteswap()
        return words[0::2], words[1::2]


def _encode(offsets: "array[int]", positions: "array[int]") -> bytes:
    words = array("I", bytes(ENTRY_BYTES * len(offsets)))
    words[0::2] = offsets
    words[1::2] = positions
    if sys.byteorder == "little":
        words.byteswap()
    return words.tobytes()
