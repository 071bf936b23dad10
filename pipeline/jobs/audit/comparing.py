"""One partition of a lake against its log, in windows of offsets: memory is bounded by a window, not by the topic."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kavka.pipeline.jobs.audit.logs import AuditError, LogSide, Places, RecordsGoneError
from kavka.pipeline.jobs.audit.report import PartitionAudit
from kavka.pipeline.lake.entries import Filter
from kavka.pipeline.lake.lake import Lake

Integers = np.ndarray[Any, np.dtype[np.int64]]

WINDOW: Final = 1 << 20
"""Offsets that are compared at once: some forty megabytes."""
_NOTHING: Final = Places(np.zeros(0, np.int64), np.zeros(0, np.int64))


class LogRecords:
    """A partition's records, given out by offset. What retention takes meanwhile is skipped: `known_from` moves."""

    def __init__(self, side: LogSide, topic: str, partition: int, offsets: range) -> None:
        self._open: Final[Callable[[int], Iterator[Places]]] = lambda start: side.records(
            topic, partition, start, offsets.stop
        )
        self._end: Final = offsets.stop
        self.known_from = offsets.start
        """Below it the log has nothing to compare with."""
        self._more = self._open(offsets.start)
        self._next = _NOTHING

    def first(self) -> int | None:
        """The next record's offset; None after the last one."""
        while not len(self._next.offsets):
            try:
                following = next(self._more, None)
            except RecordsGoneError as gone:
                if gone.first <= self.known_from:
                    raise AuditError(f"records are gone, and the log still begins at {gone.first}") from None
                self.known_from = min(gone.first, self._end)
                self._more = self._open(self.known_from)
                continue
            if following is None:
                return None
            self._next = following
        return int(self._next.offsets[0])

    def before(self, end: int) -> Places:
        """All the records up to an offset, and on from there the next time."""
        parts = []
        while (first := self.first()) is not None and first < end:
            count = int(np.searchsorted(self._next.offsets, end))
            parts.append(Places(self._next.offsets[:count], self._next.times_us[:count]))
            self._next = Places(self._next.offsets[count:], self._next.times_us[count:])
        if not parts:
            return _NOTHING
        return Places(
            np.concatenate([each.offsets for each in parts]), np.concatenate([each.times_us for each in parts])
        )


class LakeRows:
    """A partition's rows in the lake."""

    def __init__(self, lake: Lake, topic: str, partition: int) -> None:
        self._lake: Final = lake
        self._topic: Final = topic
        self._partition: Final = partition
        ranges = [each.offsets[topic][partition] for each in lake.files(Filter(topic=topic, partition=partition))]
        self._firsts: Final = np.array([each.first for each in ranges], np.int64)
        self._lasts: Final = np.array([each.last for each in ranges], np.int64)
        self.count: Final = sum(each.rows for each in ranges)
        """By the manifest."""

    @property
    def end(self) -> int:
        """After the last one, by the manifest."""
        return int(self._lasts.max()) + 1 if len(self._lasts) else 0

    def first(self, start: int) -> int | None:
        """The first offset from `start` on that a file may hold."""
        within = self._firsts[self._lasts >= start]
        return max(start, int(within.min())) if len(within) else None

    def between(self, start: int, end: int) -> Places:
        """In the order of offsets, with what is there twice."""
        wanted = Filter(topic=self._topic, partition=self._partition, start_offset=start, end_offset=end)
        dataset = self._lake.dataset(wanted)
        has_times = "timestamp" in dataset.schema.names
        try:
            table = self._lake.to_arrow(["offset", "timestamp"] if has_times else ["offset"], wanted)
        except (pa.ArrowException, KeyError) as error:
            raise AuditError(f"the lake's rows do not say where they come from: {error}") from error
        offsets = table["offset"].to_numpy()
        times = np.full(len(offsets), -1, np.int64)
        if has_times:
            times = table["timestamp"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).fill_null(-1).to_numpy()
        order = np.argsort(offsets, kind="stable")
        return Places(offsets[order], times[order])


def compare(side: LogSide, lake: LakeRows, audit: PartitionAudit) -> None:
    """Fill in what the partition's rows say. Raises AuditError."""
    start = audit.archived[0][0] if audit.archived else 0
    end = max(audit.archived[-1][1] if audit.archived else 0, lake.end)
    log = audit.log if audit.log is not None else range(end, end)
    audited = range(max(start, log.start), max(start, log.start, min(end, log.stop)))
    for _, rows in _windows(lake, None, range(audited.start)):
        _count(rows, audit)
        audit.unverified_rows += len(rows.offsets)
    records = LogRecords(side, audit.topic, audit.partition, audited)
    for window, rows in _windows(lake, records, audited):
        found = records.before(window.stop)
        _count(rows, audit)
        _compare(found, rows, records.known_from, audit)
    for _, rows in _windows(lake, None, range(audited.stop, end)):
        _count(rows, audit)
        audit.extra.add(np.unique(rows.offsets))
    audit.gaps = _gaps(audit.archived, records.known_from)


def _windows(lake: LakeRows, records: LogRecords | None, offsets: range) -> Iterator[tuple[range, Places]]:
    """Stretches in which there is something, with the lake's rows there."""
    position = offsets.start
    while position < offsets.stop:
        begins = [lake.first(position), records.first() if records is not None else None]
        known = [each for each in begins if each is not None]
        if not known or (position := max(position, min(known))) >= offsets.stop:
            return
        window = range(position, min(position + WINDOW, offsets.stop))
        yield window, lake.between(window.start, window.stop)
        position = window.stop


def _count(rows: Places, audit: PartitionAudit) -> None:
    audit.lake_rows += len(rows.offsets)
    audit.buckets.add(rows.times_us, 1)
    again = rows.offsets[1:][np.diff(rows.offsets) == 0]
    audit.duplicates.add(np.unique(again))


def _compare(found: Places, rows: Places, known_from: int, audit: PartitionAudit) -> None:
    audit.log_rows += len(found.offsets)
    audit.buckets.add(found.times_us, 0)
    there, first_rows = np.unique(rows.offsets, return_index=True)
    both, in_log, in_lake = np.intersect1d(found.offsets, there, assume_unique=True, return_indices=True)
    log_us, lake_us = found.times_us[in_log], rows.times_us[first_rows[in_lake]]
    # To the millisecond, as the log has them. A lake without the column knows no times.
    audit.retimed.add(both[(log_us >= 0) & (lake_us >= 0) & (log_us // 1000 != lake_us // 1000)])
    audit.missing.add(np.setdiff1d(found.offsets, there, assume_unique=True))
    more = np.setdiff1d(there, found.offsets, assume_unique=True)
    unverified = int(np.searchsorted(more, known_from))
    audit.unverified_rows += unverified
    if audit.is_compacted:
        audit.compacted_rows += len(more) - unverified
    else:
        audit.extra.add(more[unverified:])


def _gaps(archived: list[tuple[int, int]], log_start: int) -> list[tuple[int, int]]:
    """Where the log still has the offsets, it said itself what is missing."""
    between = [(left[1], min(right[0], log_start)) for left, right in pairwise(archived)]
    return [(low, high) for low, high in between if low < high]
