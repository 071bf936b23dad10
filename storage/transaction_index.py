"""The aborted transactions whose end marker lies in a segment (`<base offset>.txnindex`).

    entry  0..1    version             i16, big endian = 0
           2..9    producer id         i64
           10..17  first offset        i64, of the transaction's first record
           18..25  last offset         i64, of its abort marker
           26..33  last stable offset  i64, at the time when the marker was written

Ascending in last offset, and so in last stable offset. The file exists only where a transaction was aborted, and grows
by one entry with each; a crash may tear the last one, and recovery builds the active segment's anew. Clients decide how
long it gets, so only what the file lacks is kept in memory, and a search reads what it needs.

Threads: changed under the log's lock; read by any thread (`_state` is swapped whole, and its bytes only grow). Who asks
first checks the file, under `_loading`: else a slow reader would put back what a truncation has dropped.
"""

import struct
import threading
from bisect import bisect_left
from typing import Final, NamedTuple

from kavka.storage.files import Files, append_to_file, cut_file, read_fully
from kavka.storage.log_answers import AbortedTransaction
from kavka.storage.offset_index import CorruptIndexError

ENTRY: Final = struct.Struct(">hqqqq")
VERSION: Final = 0

_CHUNK_ENTRIES: Final = 120
_CHUNK_BYTES: Final = _CHUNK_ENTRIES * ENTRY.size
_NONE: Final = -1


class _State(NamedTuple):
    """What an index holds."""

    saved_count: int
    """So many entries are in the file."""
    unsaved: bytearray
    """The others."""
    last_offset: int
    """Of the last entry; -1: there is none."""


class TransactionIndex:
    """The transaction index of one segment.

    With `_ragged`, maybe there is something in the file behind the entries.
    """

    __slots__ = ("_files", "_loading", "_ragged", "_state", "base_offset", "path")

    def __init__(self, path: str, base_offset: int, files: Files) -> None:
        self.path = path
        self.base_offset = base_offset
        self._files = files
        self._state: _State | None = None
        self._loading = threading.Lock()
        self._ragged = False

    def count(self) -> int:
        """How many entries there are. Raises OSError, CorruptIndexError."""
        saved_count, unsaved, _ = self._known()
        return saved_count + len(unsaved) // ENTRY.size

    def append(self, entry: AbortedTransaction) -> None:
        """Add an entry; readers know it at once, the file with `save`."""
        saved_count, unsaved, _ = self._known()
        unsaved += ENTRY.pack(VERSION, *entry)
        self._state = _State(saved_count, unsaved, entry.last_offset)

    def save(self) -> bool:
        """Write the entries that the file lacks. Whether that changed it. Raises OSError: the next call tries again."""
        state = self._state
        if state is None or not (state.unsaved or self._ragged):
            return False
        start = state.saved_count
        if not (start or state.unsaved):
            return self._remove()
        cut, self._ragged = self._ragged, True
        written = append_to_file(self._files, self.path, bytes(state.unsaved), start * ENTRY.size, cut=cut)
        self._state = _State(start + len(state.unsaved) // ENTRY.size, bytearray(), state.last_offset)
        self._ragged = False
        return written

    def collect(self, start_offset: int, end_offset: int) -> tuple[list[AbortedTransaction], bool]:
        """(aborted transactions that touch the range, whether no later segment can have one).

        Raises OSError, CorruptIndexError.
        """
        found: list[AbortedTransaction] = []
        saved_count, unsaved, last_offset = self._known()
        # Most ask for the log's end, behind all of them.
        if last_offset < start_offset:
            return found, False
        if saved_count and self._collect_saved(saved_count, start_offset, end_offset, found):
            return found, True
        return found, _take(bytes(unsaved), start_offset, end_offset, found)

    def truncate_to(self, offset: int) -> None:
        """Drop the transactions that ended at or above `offset`. Raises OSError."""
        saved_count, unsaved, last_offset = self._known()
        if last_offset < offset:
            return
        entries = [AbortedTransaction(*fields) for _, *fields in ENTRY.iter_unpack(bytes(unsaved))]
        unsaved = unsaved[: bisect_left(entries, offset, key=_last_offset) * ENTRY.size]
        kept, last_offset = self._find_saved(saved_count, offset)
        if unsaved:
            last_offset = entries[len(unsaved) // ENTRY.size - 1].last_offset
        # Another state: who reads the old one goes on, and finds less in the file.
        self._state = _State(kept, unsaved, last_offset)
        if kept < saved_count:
            self._ragged = True
            cut_file(self._files, self.path, kept * ENTRY.size)
            self._ragged = False

    def start_empty(self) -> None:
        """Forget everything, before the segment's batches are read anew; the file is put right by `save`."""
        self._state = _State(0, bytearray(), _NONE)
        self._ragged = True

    def reset(self) -> None:
        """Forget everything, and have no file: the segment is a new one. Raises OSError."""
        self.start_empty()
        self._remove()

    def check(self, exists: bool) -> None:
        """Raises CorruptIndexError, OSError. `exists`: whether there is a file, as a list of the folder says."""
        if exists:
            self._known()
        elif self._state is None:
            self._state = _State(0, bytearray(), _NONE)

    def _remove(self) -> bool:
        """An index without entries has no file. Whether it had one. Raises OSError."""
        exists = self._files.exists(self.path)
        if exists:
            self._files.unlink(self.path)
        self._ragged = False
        return exists

    def _known(self) -> _State:
        state = self._state
        if state is None:
            with self._loading:
                state = self._state
                if state is None:
                    state = self._state = self._read()
        return state

    def _read(self) -> _State:
        if not self._files.exists(self.path):
            return _State(0, bytearray(), _NONE)
        data = self._files.read_bytes(self.path)
        if len(data) % ENTRY.size:
            raise CorruptIndexError(f"{self.path} has {len(data)} bytes, not a multiple of {ENTRY.size}")
        lowest = self.base_offset
        for version, _, _, last_offset, _ in ENTRY.iter_unpack(data):
            if version != VERSION or last_offset < lowest:
                raise CorruptIndexError(f"{self.path} has an entry of version {version} that ends at {last_offset}")
            lowest = last_offset
        return _State(len(data) // ENTRY.size, bytearray(), lowest if data else _NONE)

    def _collect_saved(self, count: int, start_offset: int, end_offset: int, found: list[AbortedTransaction]) -> bool:
        fd = self._files.open(self.path, read_only=True)
        try:
            number = 0
            if count > _CHUNK_ENTRIES:
                number = bisect_left(range(count), start_offset, key=lambda each: self._entry(fd, each).last_offset)
            position, end = number * ENTRY.size, count * ENTRY.size
            while position < end:
                data = read_fully(self._files, fd, min(_CHUNK_BYTES, end - position), position)
                self._check_length(position + len(data), min(position + _CHUNK_BYTES, end))
                if _take(data[: len(data) // ENTRY.size * ENTRY.size], start_offset, end_offset, found):
                    return True
                position += _CHUNK_BYTES
            return False
        finally:
            self._files.close(fd)

    def _find_saved(self, count: int, offset: int) -> tuple[int, int]:
        """(how many of the file's entries end below `offset`, the last offset of the last of them)"""
        if not count:
            return 0, _NONE
        fd = self._files.open(self.path, read_only=True)
        try:
            kept = bisect_left(range(count), offset, key=lambda each: self._entry(fd, each).last_offset)
            return kept, self._entry(fd, kept - 1).last_offset if kept else _NONE
        finally:
            self._files.close(fd)

    def _entry(self, fd: int, number: int) -> AbortedTransaction:
        data = self._files.pread(fd, ENTRY.size, number * ENTRY.size)
        if len(data) < ENTRY.size:
            self._check_length(number * ENTRY.size + len(data), (number + 1) * ENTRY.size)
            return _CUT
        return _decode(*ENTRY.unpack(data))

    def _check_length(self, found_bytes: int, wanted_bytes: int) -> None:
        """Raises CorruptIndexError, unless a truncation was faster."""
        if found_bytes < wanted_bytes <= self._known().saved_count * ENTRY.size:
            raise CorruptIndexError(f"{self.path} ends at {found_bytes}, {wanted_bytes} bytes were there")


def _take(data: bytes, start_offset: int, end_offset: int, found: list[AbortedTransaction]) -> bool:
    """Add the transactions that touch the range to `found`; whether the entries go beyond it."""
    for fields in ENTRY.iter_unpack(data):
        entry = _decode(*fields)
        if entry.last_offset >= start_offset:
            if entry.first_offset < end_offset:
                found.append(entry)
            if entry.last_stable_offset >= end_offset:
                return True
    return False


def _decode(
    version: int, producer_id: int, first_offset: int, last_offset: int, last_stable_offset: int
) -> AbortedTransaction:
    if version != VERSION:
        raise CorruptIndexError(f"an aborted transaction of version {version}, known is {VERSION}")
    return AbortedTransaction(producer_id, first_offset, last_offset, last_stable_offset)


def _last_offset(entry: AbortedTransaction) -> int:
    return entry.last_offset


_CUT: Final = AbortedTransaction(-1, -1, (1 << 63) - 1, -1)
"""Stands for what a truncation has cut meanwhile."""
