"""A segment: a stretch of the log in one `.log` file, with its indexes, named by its base offset.

The last segment of a log is active: written to, its file pinned, its indexes in memory. The others are sealed.
"""

from collections.abc import Collection
from typing import Final

from kavka.storage.batch_scan import BatchPlace, find_batch, first_timestamp, last_batch, scan_batches
from kavka.storage.log_answers import FoundOffset
from kavka.storage.offset_index import ENTRY_BYTES, MAX_RELATIVE_OFFSET, CorruptIndexError, OffsetIndex
from kavka.storage.segment_file import FilePool, SegmentFile
from kavka.storage.time_index import ENTRY_BYTES as TIME_ENTRY_BYTES
from kavka.storage.time_index import NO_TIMESTAMP, TimeIndex
from kavka.storage.transaction_index import TransactionIndex

LOG_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TRANSACTION_INDEX_SUFFIX: Final = ".txnindex"
DELETED_SUFFIX: Final = ".deleted"
SUFFIXES: Final = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)

_REMEMBERED_POSITIONS: Final = 32
_NEVER: Final = (1 << 63) - 1
_UNDECIDED: Final = -2


class RollRules:
    """When the active segment is closed, of the topic's configuration. Immutable."""

    __slots__ = ("index_entries", "index_interval_bytes", "segment_bytes", "segment_ms", "time_index_entries")

    def __init__(self, segment_bytes: int, segment_ms: int, index_bytes: int, index_interval_bytes: int) -> None:
        self.segment_bytes = segment_bytes
        self.segment_ms = segment_ms
        """Without the jitter, which is each segment's own."""
        self.index_interval_bytes = index_interval_bytes
        self.index_entries = max(1, index_bytes // ENTRY_BYTES)
        self.time_index_entries = max(1, index_bytes // TIME_ENTRY_BYTES - 1)
        """One is kept free for the entry that is added on a roll."""


class Segment:
    """One segment.

    Changed under the log's lock. Readers use the base offset, the file, the indexes, `recent_positions`, `size_bytes`
    and the largest timestamp, each of which is swapped or grows in one step. `size_bytes` of the active segment may be
    ahead of what the log has published.

    `limit_bytes`, `limit_offset` and `limit_timestamp_ms` say beyond what an append must ask `must_roll`.
    """

    __slots__ = (
        "_bytes_since_index",
        "_files",
        "_first_timestamp_ms",
        "_jitter_ms",
        "_rules",
        "base_offset",
        "created_ms",
        "fd",
        "file",
        "limit_bytes",
        "limit_offset",
        "limit_timestamp_ms",
        "max_timestamp_ms",
        "max_timestamp_offset",
        "offset_index",
        "recent_positions",
        "size_bytes",
        "time_index",
        "transaction_index",
    )

    def __init__(self, directory: str, base_offset: int, pool: FilePool, size_bytes: int = 0) -> None:
        files = pool.files
        stem = f"{directory}/{base_offset:020d}"
        self.base_offset = base_offset
        self.size_bytes = size_bytes
        self.file = SegmentFile(stem + LOG_SUFFIX, pool)
        self.offset_index = OffsetIndex(stem + INDEX_SUFFIX, base_offset, files, pool.index_cache)
        self.time_index = TimeIndex(stem + TIME_INDEX_SUFFIX, base_offset, files)
        self.transaction_index = TransactionIndex(stem + TRANSACTION_INDEX_SUFFIX, base_offset, files)
        self.max_timestamp_ms = NO_TIMESTAMP
        self.max_timestamp_offset = base_offset
        self.created_ms = 0
        self.fd = -1
        """The descriptor of the active segment, which keeps its file pinned; of others -1: it may be another file's."""
        self.recent_positions: dict[int, int] = {}
        """Base offsets of the last few batches: a consumer at the end of the log needs no search."""
        self.limit_bytes = 0
        self.limit_offset = base_offset + MAX_RELATIVE_OFFSET
        self.limit_timestamp_ms = _NEVER
        self._files = files
        self._first_timestamp_ms: int | None = None
        self._jitter_ms = 0
        self._bytes_since_index = 0
        self._rules: RollRules | None = None

    def create(self) -> None:
        """Make the file; the indexes' files come with their first entries. Raises OSError."""
        fd = self._pin(create=True)
        if self._files.descriptor_size(fd):
            self._files.ftruncate(fd, 0)
        self.offset_index.start_empty()
        self.time_index.start_empty()
        self.transaction_index.reset()

    def activate(self) -> None:
        """Get ready to be written to, after a restart. Raises OSError, CorruptIndexError."""
        fd = self._pin(create=True)
        self.offset_index.activate()
        self.time_index.activate()
        self.max_timestamp_ms, self.max_timestamp_offset = self.time_index.last_entry()
        self._bytes_since_index = self.size_bytes - self.offset_index.last_entry()[1]
        if self.size_bytes:
            self._first_timestamp_ms = first_timestamp(self._files, fd)
        self._set_limits()

    def restart(self) -> None:
        """Get ready for a scan that notes every batch anew: pinned, indexes empty. Raises OSError."""
        self._pin(create=False)
        self.offset_index.start_empty()
        self.time_index.start_empty()
        self.transaction_index.start_empty()
        self.recent_positions = {}
        self.max_timestamp_ms, self.max_timestamp_offset = NO_TIMESTAMP, self.base_offset
        self._bytes_since_index = 0
        self._first_timestamp_ms = None
        self._set_limits()

    def indexes_good(self, names: Collection[str]) -> bool:
        """Whether the index files can belong to this segment; `names` are those in the folder.

        Raises OSError other than a missing file's.
        """
        try:
            self.offset_index.check(self.size_bytes)
            self.time_index.check()
            self.transaction_index.check(f"{self.base_offset:020d}{TRANSACTION_INDEX_SUFFIX}" in names)
        except (CorruptIndexError, FileNotFoundError):
            return False
        return True

    def govern(self, rules: RollRules, jitter_ms: int) -> None:
        """Set, or change, when this segment is full."""
        self._rules = rules
        self._jitter_ms = jitter_ms
        self._set_limits()

    def note_batch(
        self, base_offset: int, last_offset: int, position: int, size_bytes: int, max_timestamp_ms: int
    ) -> bool:
        """A batch was written at `position`. True if index entries want to be saved (`save_indexes`)."""
        if max_timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms = max_timestamp_ms
            self.max_timestamp_offset = last_offset
        recent = self.recent_positions
        if len(recent) >= _REMEMBERED_POSITIONS:
            recent = self.recent_positions = {}
        recent[base_offset] = position
        self.size_bytes = position + size_bytes
        if not position:
            self._first_timestamp_ms = max_timestamp_ms
            self._set_limits()
        rules = self._rules
        assert rules is not None
        if self._bytes_since_index <= rules.index_interval_bytes:
            self._bytes_since_index += size_bytes
            return False
        self._bytes_since_index = size_bytes
        due = self.offset_index.append(last_offset, position)
        self.time_index.maybe_append(self.max_timestamp_ms, self.max_timestamp_offset)
        if self.offset_index.count() >= rules.index_entries or self.time_index.count() >= rules.time_index_entries:
            self.limit_bytes = -1
        return due

    def must_roll(self, size_bytes: int, last_offset: int, max_timestamp_ms: int, now_ms: int) -> bool:
        """Whether a batch belongs into the next segment: size, index fullness, relative offset, time."""
        if self.size_bytes + size_bytes > self.limit_bytes or last_offset > self.limit_offset:
            return True
        return bool(self.size_bytes) and self._waited_ms(max_timestamp_ms, now_ms) > self._max_age_ms()

    def save_indexes(self) -> bool:
        """Write the index entries that are only in memory. Whether a file changed. Raises OSError."""
        saved = (self.offset_index.save(), self.time_index.save(), self.transaction_index.save())
        return any(saved)

    def seal(self) -> None:
        """No more appends: the last time index entry is added, indexes are saved. Raises OSError: still active."""
        self.finish_time_index()
        self.save_indexes()
        # Nothing is left to be written: half of a segment is never sealed.
        self.offset_index.seal()
        self.time_index.seal()
        self.recent_positions = {}
        self.unpin()

    def finish_time_index(self) -> None:
        """Add the entry that says the segment's largest timestamp."""
        if self.max_timestamp_ms > NO_TIMESTAMP:
            self.time_index.maybe_append(self.max_timestamp_ms, self.max_timestamp_offset)

    def unpin(self) -> None:
        if self.fd >= 0:
            # First: the number may be another file's as soon as the pin is gone.
            self.fd = -1
            self.file.release()

    def find(self, offset: int, end_position: int) -> BatchPlace | None:
        """The first batch that ends at or behind `offset`, before `end_position`.

        Raises OSError, CorruptRecordsError.
        """
        fd = self.file.acquire()
        try:
            return find_batch(self._files, fd, self.offset_index.lookup(offset), end_position, offset)
        finally:
            self.file.release()

    def find_last(self) -> BatchPlace | None:
        """The last batch, found from the last index entry on. Raises OSError, CorruptRecordsError."""
        fd = self.file.acquire()
        try:
            return last_batch(self._files, fd, self.offset_index.last_entry()[1], self.size_bytes)
        finally:
            self.file.release()

    def largest_timestamp(self) -> tuple[int, int]:
        """(timestamp, offset of the batch's end) of the newest message; (-1, base offset) if none has one. OSError."""
        if self.max_timestamp_ms == NO_TIMESTAMP and self.size_bytes and self.fd < 0:
            self.max_timestamp_ms, self.max_timestamp_offset = self.time_index.last_entry()
        return self.max_timestamp_ms, self.max_timestamp_offset

    def first_timestamp_ms(self) -> int:
        """The largest timestamp of the first batch; -1 if there is none. Raises OSError."""
        first = self._first_timestamp_ms
        if first is None and self.size_bytes:
            fd = self.file.acquire()
            try:
                first = self._first_timestamp_ms = first_timestamp(self._files, fd)
            finally:
                self.file.release()
        return NO_TIMESTAMP if first is None else first

    def retention_timestamp_ms(self) -> int:
        """The newest message's time, or the file's where messages have none."""
        timestamp_ms, _ = self.largest_timestamp()
        return timestamp_ms if timestamp_ms >= 0 else self._files.modified_ms(self.file.path)

    def find_by_time(self, timestamp_ms: int, start_offset: int, end_position: int) -> FoundOffset | None:
        """The first record at or behind `start_offset` that is as new. Raises OSError, DecodeError."""
        _, from_offset = self.time_index.lookup(timestamp_ms - 1)
        position = self.offset_index.lookup(max(from_offset, start_offset))
        return self._first_since(timestamp_ms, start_offset, position, end_position)

    def _first_since(
        self, timestamp_ms: int, start_offset: int, position: int, end_position: int, last_offset: int = _NEVER
    ) -> FoundOffset | None:
        """The first record that is as new, in a batch between the positions that begins at or before `last_offset`."""
        fd = self.file.acquire()
        try:
            for batch in scan_batches(self._files, fd, position, end_position):
                if batch.header.base_offset > last_offset:
                    break
                if batch.header.max_timestamp_ms >= timestamp_ms and batch.header.last_offset >= start_offset:
                    found = batch.first_record_since(timestamp_ms, start_offset)
                    if found is not None:
                        return FoundOffset(found.timestamp_ms, found.offset, batch.header.partition_leader_epoch)
            return None
        finally:
            self.file.release()

    def find_newest(self, start_offset: int, end_position: int) -> FoundOffset | None:
        """The first record with the segment's largest timestamp; None where that lies below `start_offset`.

        Only the batch that the time index names is looked at. Raises OSError, DecodeError.
        """
        timestamp_ms, batch_end = self.largest_timestamp()
        if timestamp_ms < 0 or batch_end < start_offset:
            return None
        position = self.offset_index.lookup(batch_end)
        return self._first_since(timestamp_ms, start_offset, position, end_position, batch_end)

    def newest_since(
        self, start_offset: int, position: int, end_position: int, known: FoundOffset | None
    ) -> FoundOffset | None:
        """The first record with the largest timestamp of those at or behind `start_offset`; None if none has one.

        A scan of all batches from `position` on; `known` is what the scan until there has found. Raises OSError,
        DecodeError.
        """
        newest_ms = NO_TIMESTAMP if known is None else known.timestamp_ms
        found = None
        fd = self.file.acquire()
        try:
            for batch in scan_batches(self._files, fd, position, end_position):
                header = batch.header
                if header.last_offset < start_offset or header.max_timestamp_ms <= newest_ms:
                    continue
                if header.base_offset >= start_offset:
                    newest_ms, found = header.max_timestamp_ms, batch
                else:
                    kept = [record.timestamp_ms for record in batch.records() if record.offset >= start_offset]
                    if kept and max(kept) > newest_ms:
                        newest_ms, found = max(kept), batch
            record = None if found is None else found.first_record_since(newest_ms, start_offset)
            if found is None or record is None:
                return known
            return FoundOffset(record.timestamp_ms, record.offset, found.header.partition_leader_epoch)
        finally:
            self.file.release()

    def truncate_to(self, offset: int, place: BatchPlace | None) -> int:
        """Cut an active segment before `place`, the batch that `find` has for `offset`; the log's end now.

        Raises OSError, CorruptRecordsError, which leave it half done.
        """
        self.recent_positions = {}
        if place is None:
            return offset
        self.offset_index.truncate_to(place.base_offset)
        self.time_index.truncate_to(place.base_offset)
        self.transaction_index.truncate_to(place.base_offset)
        self._files.ftruncate(self.fd, place.position)
        self.size_bytes = place.position
        self._bytes_since_index = place.position - self.offset_index.last_entry()[1]
        self._find_largest_timestamp()
        if not place.position:
            self._first_timestamp_ms = None
        self._set_limits()
        return min(offset, place.base_offset)

    def paths(self) -> list[str]:
        """The segment's files, of which only the first need exist."""
        return [self.file.path, *(index.path for index in self.indexes)]

    @property
    def indexes(self) -> tuple[OffsetIndex | TimeIndex | TransactionIndex, ...]:
        """In the order of their suffixes."""
        return self.offset_index, self.time_index, self.transaction_index

    def moved_to(self, directory: str) -> None:
        """The folder was renamed; in it, the files are called as before."""
        self.file.moved_to(_in(directory, self.file.path))
        for index in self.indexes:
            index.path = _in(directory, index.path)

    def has_its_names(self, directory: str) -> None:
        """The files in the folder have lost their suffixes."""
        stem = f"{directory}/{self.base_offset:020d}"
        self.file.moved_to(stem + LOG_SUFFIX)
        self.offset_index.path = stem + INDEX_SUFFIX
        self.time_index.path = stem + TIME_INDEX_SUFFIX
        self.transaction_index.path = stem + TRANSACTION_INDEX_SUFFIX

    def _pin(self, *, create: bool) -> int:
        if self.fd < 0:
            self.fd = self.file.acquire(create=create)
        return self.fd

    def _max_age_ms(self) -> int:
        assert self._rules is not None
        return self._rules.segment_ms - self._jitter_ms

    def _waited_ms(self, max_timestamp_ms: int, now_ms: int) -> int:
        """By the messages' own time where the first one has it (KIP-33), else by the clock."""
        first = self._first_timestamp_ms
        if first is not None and first >= 0:
            return max_timestamp_ms - first
        return now_ms - self.created_ms

    def _set_limits(self) -> None:
        rules = self._rules
        if rules is None or self.fd < 0:
            return
        self.limit_bytes = rules.segment_bytes
        first = self._first_timestamp_ms
        if first is None:
            self.limit_timestamp_ms = _NEVER
        else:
            self.limit_timestamp_ms = first + self._max_age_ms() if first >= 0 else _UNDECIDED
        if self.offset_index.count() >= rules.index_entries or self.time_index.count() >= rules.time_index_entries:
            self.limit_bytes = -1

    def _find_largest_timestamp(self) -> None:
        self.max_timestamp_ms, self.max_timestamp_offset = self.time_index.last_entry()
        position = self.offset_index.lookup(self.max_timestamp_offset)
        for batch in scan_batches(self._files, self.fd, position, self.size_bytes):
            if batch.header.max_timestamp_ms > self.max_timestamp_ms:
                self.max_timestamp_ms = batch.header.max_timestamp_ms
                self.max_timestamp_offset = batch.header.last_offset


def _in(directory: str, path: str) -> str:
    return f"{directory}/{path.rpartition('/')[2]}"
