"""The aborted transactions whose end marker lies in a segment (`<base offset>.txnindex`).

    entry  0..1    version             i16, big endian = 0
           2..9    producer id         i64
           10..17  first offset        i64, of the transaction's first record
           18..25  last offset         i64, of its abort marker
           26..33  last stable offset  i64, at the time when the marker was written

Ascending in last offset, and so in last stable offset. The file exists only where a transaction was aborted, and grows
by one entry with each; a crash may tear the last one, and recovery builds the active segment's anew. Kept once read.
Threads: changed under the log's lock; read by any thread (`_entries` only grows, or is replaced by a shorter list). The
first who asks reads the file, under `_loading`: else a slow reader would put back what a truncation has dropped.
"""

import struct
import threading
from bisect import bisect_left
from collections.abc import Sequence
from itertools import islice
from typing import Final

from kavka.storage.files import Files, append_to_file, cut_file
from kavka.storage.log_answers import AbortedTransaction
from kavka.storage.offset_index import CorruptIndexError

ENTRY: Final = struct.Struct(">hqqqq")
VERSION: Final = 0


class TransactionIndex:
    """The transaction index of one segment.

    The file holds the first `_saved_count` entries, and with `_ragged` maybe something behind them.
    """

    __slots__ = ("_entries", "_files", "_loading", "_ragged", "_saved_count", "base_offset", "path")

    def __init__(self, path: str, base_offset: int, files: Files) -> None:
        self.path = path
        self.base_offset = base_offset
        self._files = files
        self._entries: list[AbortedTransaction] | None = None
        self._loading = threading.Lock()
        self._saved_count = 0
        self._ragged = False

    def entries(self) -> Sequence[AbortedTransaction]:
        """All entries, oldest first; grows while the segment is active. Raises OSError, CorruptIndexError."""
        return self._known()

    def append(self, entry: AbortedTransaction) -> None:
        """Add an entry; readers know it at once, the file with `save`."""
        self._known().append(entry)

    def save(self) -> bool:
        """Write the entries that the file lacks. Whether that changed it. Raises OSError: the next call tries again."""
        entries = self._entries
        if entries is None or (len(entries) == self._saved_count and not self._ragged):
            return False
        start, count = self._saved_count, len(entries)
        if not count:
            return self._remove()
        missing = b"".join(ENTRY.pack(VERSION, *entry) for entry in islice(entries, start, count))
        cut, self._ragged = self._ragged, True
        written = append_to_file(self._files, self.path, missing, start * ENTRY.size, cut=cut)
        self._saved_count = count
        self._ragged = False
        return written

    def collect(self, start_offset: int, end_offset: int) -> tuple[list[AbortedTransaction], bool]:
        """(aborted transactions that touch the range, whether no later segment can have one)."""
        found: list[AbortedTransaction] = []
        entries = self._known()
        for entry in islice(entries, bisect_left(entries, start_offset, key=_last_offset), None):
            if entry.first_offset < end_offset:
                found.append(entry)
            if entry.last_stable_offset >= end_offset:
                return found, True
        return found, False

    def truncate_to(self, offset: int) -> None:
        """Drop the transactions that ended at or above `offset`. Raises OSError."""
        entries = self._known()
        kept = bisect_left(entries, offset, key=_last_offset)
        if kept < len(entries):
            # Another list: who reads the old one goes on.
            self._entries = entries[:kept]
        if kept < self._saved_count:
            self._saved_count = kept
            self._ragged = True
            cut_file(self._files, self.path, kept * ENTRY.size)
            self._ragged = False

    def start_empty(self) -> None:
        """Forget everything, before the segment's batches are read anew; the file is put right by `save`."""
        self._entries = []
        self._saved_count = 0
        self._ragged = True

    def reset(self) -> None:
        """Forget everything, and have no file: the segment is a new one. Raises OSError."""
        self.start_empty()
        self._remove()

    def _remove(self) -> bool:
        """An index without entries has no file. Whether it had one. Raises OSError."""
        exists = self._files.exists(self.path)
        if exists:
            self._files.unlink(self.path)
        self._ragged = False
        return exists

    def check(self, exists: bool) -> None:
        """Raises CorruptIndexError, OSError. `exists`: whether there is a file, as a list of the folder says."""
        if exists:
            self._known()
        elif self._entries is None:
            self._entries = []

    def _known(self) -> list[AbortedTransaction]:
        entries = self._entries
        if entries is None:
            with self._loading:
                entries = self._entries
                if entries is None:
                    entries = self._read()
                    self._saved_count = len(entries)
                    self._entries = entries
        return entries

    def _read(self) -> list[AbortedTransaction]:
        if not self._files.exists(self.path):
            return []
        data = self._files.read_bytes(self.path)
        if len(data) % ENTRY.size:
            raise CorruptIndexError(f"{self.path} has {len(data)} bytes, not a multiple of {ENTRY.size}")
        entries = []
        lowest = self.base_offset
        for version, *fields in ENTRY.iter_unpack(data):
            entry = AbortedTransaction(*fields)
            if version != VERSION or entry.last_offset < lowest:
                raise CorruptIndexError(f"{self.path} holds {entry} of version {version}")
            lowest = entry.last_offset
            entries.append(entry)
        return entries


def _last_offset(entry: AbortedTransaction) -> int:
    return entry.last_offset
