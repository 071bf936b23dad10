"""The aborted transactions whose end marker lies in a segment (`<base offset>.txnindex`).

    entry  0..1    version             i16, big endian = 0
           2..9    producer id         i64
           10..17  first offset        i64, of the transaction's first record
           18..25  last offset         i64, of its abort marker
           26..33  last stable offset  i64, at the time when the marker was written

Ascending in last offset. The file exists only where a transaction was aborted. Entries are few and kept once read.
Threads: changed under the log's lock; read by any thread (`_entries` is an immutable tuple).
"""

import struct
from typing import Final

from kavka.storage.files import Files, write_fully
from kavka.storage.log_slice import AbortedTransaction
from kavka.storage.offset_index import CorruptIndexError

ENTRY: Final = struct.Struct(">hqqqq")
VERSION: Final = 0


class TransactionIndex:
    """The transaction index of one segment."""

    __slots__ = ("_entries", "_files", "_saved", "base_offset", "path")

    def __init__(self, path: str, base_offset: int, files: Files) -> None:
        self.path = path
        self.base_offset = base_offset
        self._files = files
        self._entries: tuple[AbortedTransaction, ...] | None = None
        self._saved = True

    def entries(self) -> tuple[AbortedTransaction, ...]:
        """All entries, oldest first. Raises OSError, CorruptIndexError."""
        entries = self._entries
        if entries is None:
            self._entries = entries = self._read()
        return entries

    def append(self, entry: AbortedTransaction) -> None:
        """Add an entry; readers know it at once, the file with `save`."""
        self._entries = (*self.entries(), entry)
        self._saved = False

    def save(self) -> bool:
        """Write the entries that the file lacks. Whether there were any. Raises OSError: the next call tries again."""
        if self._saved or self._entries is None:
            return False
        fd = self._files.open(self.path, create=True)
        try:
            write_fully(self._files, fd, b"".join(ENTRY.pack(VERSION, *entry) for entry in self._entries), 0)
        finally:
            self._files.close(fd)
        self._saved = True
        return True

    def collect(self, start_offset: int, end_offset: int) -> tuple[list[AbortedTransaction], bool]:
        """(aborted transactions that touch the range, whether no later segment can have one)."""
        found: list[AbortedTransaction] = []
        for entry in self._entries if self._entries is not None else self.entries():
            if entry.last_offset >= start_offset and entry.first_offset < end_offset:
                found.append(entry)
            if entry.last_stable_offset >= end_offset:
                return found, True
        return found, False

    def truncate_to(self, offset: int) -> None:
        """Drop the transactions that ended at or above `offset`. Raises OSError."""
        entries = self.entries()
        kept = tuple(entry for entry in entries if entry.last_offset < offset)
        if len(kept) < len(entries):
            self._entries = kept
            fd = self._files.open(self.path, create=True)
            try:
                self._files.ftruncate(fd, len(kept) * ENTRY.size)
            finally:
                self._files.close(fd)

    def reset(self) -> None:
        """Forget everything, before the segment's batches are read anew. Raises OSError."""
        self._entries = ()
        if self._files.exists(self.path):
            self._files.unlink(self.path)

    def check(self, exists: bool) -> None:
        """Raises CorruptIndexError, OSError. `exists`: whether there is a file, as a list of the folder says."""
        if exists:
            self.entries()
        elif self._entries is None:
            self._entries = ()

    def _read(self) -> tuple[AbortedTransaction, ...]:
        if not self._files.exists(self.path):
            return ()
        data = self._files.read_bytes(self.path)
        if len(data) % ENTRY.size:
            raise CorruptIndexError(f"{self.path} has {len(data)} bytes, not a multiple of {ENTRY.size}")
        entries = []
        for version, *fields in ENTRY.iter_unpack(data):
            entry = AbortedTransaction(*fields)
            if version != VERSION or entry.last_offset < self.base_offset:
                raise CorruptIndexError(f"{self.path} holds {entry} of version {version}")
            entries.append(entry)
        return tuple(entries)
