"""The new segment that a group of segments is cleaned into: its files, under names that say that they aren't finished.

    00000000000000001000.log.8f2c41d09a7be356.cleaned     and .index, .timeindex, .txnindex likewise

The token in the middle is the round's own: a worker that outlived its broker can't write into another one's files.
"""

import contextlib
from collections.abc import Sequence
from typing import Final

from kavka.storage.cleaner.jobs import CleanedGroup, cleaned_name
from kavka.storage.files import Files, write_fully
from kavka.storage.log_answers import AbortedTransaction
from kavka.storage.segment import SUFFIXES, TRANSACTION_INDEX_SUFFIX, RollRules, Segment
from kavka.storage.segment_file import FilePool

_WRITE_BYTES: Final = 1 << 20


class CleanedSegment:
    """One thread. `close` must be called, also after an error."""

    __slots__ = ("_files", "_folder", "_parts", "_pending_bytes", "_segment", "_token", "size_bytes")

    def __init__(self, folder: str, base_offset: int, token: str, rules: RollRules, files: Files) -> None:
        """Raises OSError."""
        self._files = files
        self._folder = folder
        self._token = token
        segment = self._segment = Segment(folder, base_offset, FilePool(files))
        log, index, time_index, transaction_index = self._paths()
        segment.file.moved_to(log)
        segment.offset_index.path = index
        segment.time_index.path = time_index
        segment.transaction_index.path = transaction_index
        self.size_bytes = 0
        self._parts: list[bytes | bytearray | memoryview] = []
        self._pending_bytes = 0
        segment.create()
        segment.govern(rules, 0)
        segment.transaction_index.reset()

    def append(
        self, base_offset: int, last_offset: int, max_timestamp_ms: int, batch: bytes | bytearray | memoryview
    ) -> None:
        """Add a batch; it reaches the file soon. Raises OSError."""
        size = len(batch)
        self._segment.note_batch(base_offset, last_offset, self.size_bytes, size, max_timestamp_ms)
        self._parts.append(batch)
        self.size_bytes += size
        self._pending_bytes += size
        if self._pending_bytes >= _WRITE_BYTES:
            self.write_pending()

    def write_pending(self) -> None:
        """Write what was added; before the stretch that it was read from is let go. Raises OSError."""
        if self._parts:
            data = b"".join(self._parts)
            write_fully(self._files, self._segment.fd, data, self.size_bytes - self._pending_bytes)
            self._parts.clear()
            self._pending_bytes = 0

    def append_aborted(self, transactions: Sequence[AbortedTransaction]) -> None:
        """Enter transactions whose abort marker is in this segment."""
        for transaction in transactions:
            self._segment.transaction_index.append(transaction)

    def finish(self, replaced: list[int], modified_ms: int) -> CleanedGroup:
        """All is written, indexed and on the disk, and as old as what it replaces. Raises OSError."""
        self.write_pending()
        segment = self._segment
        segment.finish_time_index()
        segment.save_indexes()
        self._files.fsync(segment.fd)
        suffixes = [suffix for suffix in SUFFIXES if suffix != TRANSACTION_INDEX_SUFFIX]
        if segment.transaction_index.count():
            suffixes.append(TRANSACTION_INDEX_SUFFIX)
        for suffix, path in zip(SUFFIXES, self._paths(), strict=True):
            if suffix in suffixes[1:]:
                self._files.fsync_file(path)
        # Retention goes by it where messages have no timestamps, and so does the horizon of old formats.
        self._files.set_modified(self._paths()[0], modified_ms)
        timestamp_ms, offset = segment.max_timestamp_ms, segment.max_timestamp_offset
        return CleanedGroup(replaced, suffixes, self.size_bytes, timestamp_ms, offset)

    def close(self) -> None:
        """Let go of the file."""
        self._segment.unpin()
        self._segment.file.retire()

    def discard(self) -> None:
        """Unlink what was written. Raises OSError."""
        for path in self._paths():
            with contextlib.suppress(FileNotFoundError):
                self._files.unlink(path)

    def _paths(self) -> list[str]:
        base_offset = self._segment.base_offset
        return [f"{self._folder}/{cleaned_name(base_offset, suffix, self._token)}" for suffix in SUFFIXES]
