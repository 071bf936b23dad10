"""One round over one log, in a worker: the map of the dirty part's keys, then every segment below written anew.

The map may be full before the dirty part ends: the round then ends there, and the rest stays dirty for the next one.
Segments are read and never changed; what replaces a group of them is reported as soon as it is on the disk, and the
broker swaps it in while the next group is cleaned.
"""

import struct
import time
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np

from kavka.protocol.records.batch import Record, iter_records, read_header, verify_crc
from kavka.protocol.records.columns import BATCH_LIMIT_BYTES, Batches, ParseLimits, find_batches, parsed
from kavka.protocol.records.errors import CorruptRecordsError
from kavka.protocol.records.header import LAST_OFFSET_DELTA_POSITION, LOG_OVERHEAD_BYTES, claimed_size_bytes
from kavka.protocol.records.legacy import build_message_set
from kavka.storage.cleaner.cleaned_segment import CleanedSegment
from kavka.storage.cleaner.grouping import SegmentSizes, group_segments
from kavka.storage.cleaner.jobs import CleanedGroup, CleanedLog, CleanJob
from kavka.storage.cleaner.kept_records import KeepRules, fingerprints_of, follow_transactions
from kavka.storage.cleaner.key_hash import KeyHash
from kavka.storage.cleaner.offset_map import OffsetMap
from kavka.storage.cleaner.rewriting import kept_batches
from kavka.storage.cleaner.throttle import Throttle
from kavka.storage.cleaner.transactions import CleanedTransactions
from kavka.storage.files import Files, read_fully
from kavka.storage.offset_index import IndexCache, OffsetIndex
from kavka.storage.segment import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX, RollRules

_OFFSET: Final = struct.Struct(">q")
_DELTA: Final = struct.Struct(">i")
_ANY_SIZE: Final = (1 << 62) - 1


class Stretch(NamedTuple):
    """Whole batches of one kind, as they lie in a segment."""

    data: bytes
    positions: list[int]
    is_v2: bool


class LogRound:
    """One round. One thread.

    `keep_on` is asked between two stretches; what it raises ends the round. Errors: OSError, DecodeError (the log is
    corrupt), CorruptIndexError. Files of a group that isn't finished are removed.
    """

    def __init__(self, job: CleanJob, files: Files, throttle: Throttle, keep_on: Callable[[], object]) -> None:
        self._job = job
        self._files = files
        self._throttle = throttle
        self._keep_on = keep_on
        self._limits = ParseLimits(unpacked_bytes=4 * job.chunk_bytes)
        self._numbers = {base_offset: number for number, (base_offset, _) in enumerate(job.segments)}
        self._hash = KeyHash()
        self._map = OffsetMap(job.map_bytes, job.map_load_factor)
        self._rules = RollRules(job.segment_bytes, _ANY_SIZE, job.index_bytes, job.index_interval_bytes)
        self._bytes_read = self._bytes_written = self._records_read = self._records_kept = 0

    def run(self) -> Iterator[CleanedGroup | CleanedLog]:
        """The groups, then the end."""
        job = self._job
        started_s = time.monotonic()
        self._build_map()
        clean_offset = max(job.first_dirty_offset, self._map.latest_offset + 1)
        mapped_s = time.monotonic()
        bytes_mapped = self._bytes_read
        producers = {producer_id: (last, epoch) for producer_id, last, epoch in job.producers}
        rules = KeepRules(
            self._map,
            self._hash,
            CleanedTransactions(job.aborted),
            producers,
            job.end_offset,
            job.now_ms,
        )
        legacy_horizon_ms = self._legacy_horizon_ms()
        segments = [self._sizes_of(number) for number, (base, _) in enumerate(job.segments) if base < clean_offset]
        for group in group_segments(segments, job.segment_bytes, job.index_bytes):
            cleaned = self._clean(group, rules, legacy_horizon_ms)
            if cleaned is not None:
                yield cleaned
        yield CleanedLog(
            clean_offset,
            self._bytes_read,
            self._bytes_read - bytes_mapped,
            self._bytes_written,
            self._records_read,
            self._records_kept,
            rules.keyless,
            self._map.size,
            self._map.most_entries,
            int(1000 * (mapped_s - started_s)),
            int(1000 * (time.monotonic() - mapped_s)),
        )

    def _build_map(self) -> None:
        job = self._job
        start = job.first_dirty_offset
        # Those that ended before would never be seen to end.
        transactions = CleanedTransactions(each for each in job.aborted if each.last_offset >= start)
        for number, (base_offset, _) in enumerate(job.segments):
            end_offset = self._end_of(number)
            if end_offset <= start:
                continue
            position = 0
            if base_offset < start:
                path = self._path(base_offset, INDEX_SUFFIX)
                index = OffsetIndex(path, base_offset, self._files, IndexCache())
                position = index.lookup(start)
            for stretch in self._stretches(number, position):
                if not self._map_stretch(stretch, transactions):
                    return
            # What is missing at the segment's end was compacted away.
            self._map.latest_offset = max(self._map.latest_offset, end_offset - 1)

    def _map_stretch(self, stretch: Stretch, transactions: CleanedTransactions) -> bool:
        """Enter a stretch's keys; False when the map is full."""
        start = self._job.first_dirty_offset
        if not stretch.is_v2:
            return all(self._map_message(stretch.data, position) for position in stretch.positions)
        for batches, records in parsed(Batches(stretch.data, stretch.positions), self._limits):
            aborted, _ = follow_transactions(transactions, batches, records)
            passed_over = aborted | batches.is_control
            chosen = np.flatnonzero((records.key_sizes >= 0) & (records.offsets >= start) & ~passed_over[records.batch])
            if len(chosen):
                keys = self._hash.of_keys(bytes(records.body), records.key_starts[chosen], records.key_sizes[chosen])
                if self._map.put(keys, records.offsets[chosen]) < len(chosen):
                    return False
            last_offset = int(batches.last_offsets.max())
            if last_offset >= start:
                self._map.latest_offset = max(self._map.latest_offset, last_offset)
        return True

    def _map_message(self, data: bytes, position: int) -> bool:
        """The same for a message of an old format, maybe with others inside."""
        records = [record for record in _messages(data, position) if record.offset >= self._job.first_dirty_offset]
        keyed = [(record.key, record.offset) for record in records if record.key is not None]
        if keyed:
            keys = fingerprints_of(self._hash, [key for key, _ in keyed])
            if self._map.put(keys, np.array([offset for _, offset in keyed], np.int64)) < len(keyed):
                return False
        if records:
            self._map.latest_offset = max(self._map.latest_offset, records[-1].offset)
        return True

    def _clean(self, group: list[SegmentSizes], rules: KeepRules, legacy_horizon_ms: int) -> CleanedGroup | None:
        """Write the group anew; None if it is a single segment of which nothing changes."""
        job = self._job
        changed = len(group) > 1
        cleaned = CleanedSegment(job.folder, group[0].base_offset, job.token, self._rules, self._files)
        try:
            for segment in group:
                tombstones_stay = self._modified_ms(segment.base_offset) > legacy_horizon_ms
                for stretch in self._stretches(self._numbers[segment.base_offset], 0):
                    before = cleaned.size_bytes
                    changed |= self._clean_stretch(stretch, cleaned, rules, tombstones_stay)
                    cleaned.append_aborted(rules.transactions.take_still_aborted())
                    cleaned.write_pending()
                    self._bytes_written += cleaned.size_bytes - before
                    self._throttle.spent(cleaned.size_bytes - before, self._keep_on)
            changed |= cleaned.size_bytes != group[0].size_bytes
            bases = [segment.base_offset for segment in group]
            finished = cleaned.finish(bases, self._modified_ms(bases[-1])) if changed else None
        except BaseException:
            cleaned.close()
            cleaned.discard()
            raise
        cleaned.close()
        if not changed:
            cleaned.discard()
        return finished

    def _clean_stretch(
        self, stretch: Stretch, cleaned: CleanedSegment, rules: KeepRules, tombstones_stay: bool
    ) -> bool:
        """Whether any batch is another one now; those that are gone don't count."""
        changed = False
        horizon_ms = self._job.now_ms + self._job.delete_retention_ms
        if not stretch.is_v2:
            for position in stretch.positions:
                changed |= self._clean_message(stretch.data, position, cleaned, rules, tombstones_stay)
            return changed
        for batches, records in parsed(Batches(stretch.data, stretch.positions), self._limits):
            kept = rules.look_at(batches, records)
            self._records_read += len(records.starts)
            self._records_kept += int(kept.counts.sum())
            for batch in kept_batches(batches, records, kept, horizon_ms):
                cleaned.append(*batch)
                changed |= not isinstance(batch.data, memoryview)
        return changed

    def _clean_message(
        self, data: bytes, position: int, cleaned: CleanedSegment, rules: KeepRules, tombstones_stay: bool
    ) -> bool:
        header = read_header(data, position)
        found = list(_messages(data, position))
        kept = [record for record in found if rules.keeps(record, tombstones_stay)]
        self._records_read += len(found)
        self._records_kept += len(kept)
        if not kept:
            return False
        message: bytes | memoryview = memoryview(data)[position : position + header.size_bytes]
        if len(kept) < len(found):
            message = build_message_set(
                kept, header.magic, codec=header.codec, timestamp_type=header.timestamp_type, keep_offsets=True
            )
            header = read_header(message)
        cleaned.append(header.base_offset, header.last_offset, header.max_timestamp_ms, message)
        return len(kept) < len(found)

    def _stretches(self, number: int, position: int) -> Iterator[Stretch]:
        """The batches of a segment from `position` on. Raises OSError, CorruptRecordsError."""
        files, (base_offset, size_bytes) = self._files, self._job.segments[number]
        last_offset = base_offset - 1
        fd = files.open(self._path(base_offset, LOG_SUFFIX), read_only=True)
        try:
            while position < size_bytes:
                self._keep_on()
                left = size_bytes - position
                data = read_fully(files, fd, min(self._job.chunk_bytes, left), position)
                positions, is_v2, end = find_batches(data, len(data))
                if not positions:
                    wanted = claimed_size_bytes(data)
                    if len(data) < LOG_OVERHEAD_BYTES or not len(data) < wanted <= left:
                        raise CorruptRecordsError(f"{wanted} bytes claimed at {position} of {size_bytes}")
                    data = read_fully(files, fd, wanted, position)
                    positions, is_v2, end = find_batches(data, len(data))
                    if not positions:
                        raise CorruptRecordsError(f"no whole batch at {position} of {size_bytes}")
                self._bytes_read += end
                self._throttle.spent(end, self._keep_on)
                stretch = Stretch(data[:end], positions, is_v2)
                # Offsets lie outside the CRC.
                last_offset = _check_order(stretch, last_offset, self._end_of(number))
                yield stretch
                position += end
        finally:
            files.close(fd)

    def _legacy_horizon_ms(self) -> int:
        """Tombstones of old formats stay in segments that were changed later."""
        clean = [base for base, _ in self._job.segments if base < self._job.first_dirty_offset]
        return self._modified_ms(clean[-1]) - self._job.delete_retention_ms if clean else 0

    def _sizes_of(self, number: int) -> SegmentSizes:
        base_offset, size = self._job.segments[number]
        return SegmentSizes(
            base_offset,
            self._end_of(number),
            size,
            self._files.size(self._path(base_offset, INDEX_SUFFIX)),
            self._files.size(self._path(base_offset, TIME_INDEX_SUFFIX)),
        )

    def _end_of(self, number: int) -> int:
        segments = self._job.segments
        return segments[number + 1][0] if number + 1 < len(segments) else self._job.end_offset

    def _modified_ms(self, base_offset: int) -> int:
        return self._files.modified_ms(self._path(base_offset, LOG_SUFFIX))

    def _path(self, base_offset: int, suffix: str) -> str:
        return f"{self._job.folder}/{base_offset:020d}{suffix}"


def _check_order(stretch: Stretch, last_offset: int, end_offset: int) -> int:
    """The stretch's last offset. Raises CorruptRecordsError where batches overlap or leave their segment."""
    for position in stretch.positions:
        base_offset = _OFFSET.unpack_from(stretch.data, position)[0]
        if base_offset <= last_offset:
            raise CorruptRecordsError(f"offset {base_offset} comes behind {last_offset}")
        last_offset = base_offset
        if stretch.is_v2:
            last_offset += _DELTA.unpack_from(stretch.data, position + LAST_OFFSET_DELTA_POSITION)[0]
    if last_offset >= end_offset:
        raise CorruptRecordsError(f"offset {last_offset} in a segment that ends before {end_offset}")
    return last_offset


def _messages(data: bytes, position: int) -> Iterator[Record]:
    """The records of a message of magic 0 or 1. Raises DecodeError."""
    verify_crc(data, position, read_header(data, position))
    return iter_records(data, position, limit_bytes=BATCH_LIMIT_BYTES)
