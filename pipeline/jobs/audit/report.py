"""What an audit found, for people and for programs."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

Integers = np.ndarray[Any, np.dtype[np.int64]]

MOST_RANGES: Final = 20
MOST_BUCKETS: Final = 10_000
_US: Final = 1_000_000


@dataclass
class Offsets:
    """Offsets that something is the matter with: how many, and the first ranges of them, both ends in it."""

    count: int = 0
    ranges: list[tuple[int, int]] = field(default_factory=list)

    def add(self, offsets: Integers) -> None:
        """`offsets` in order, each once, behind all that came before."""
        self.count += len(offsets)
        if not len(offsets) or len(self.ranges) > MOST_RANGES:
            return
        breaks = np.flatnonzero(np.diff(offsets) > 1)[: MOST_RANGES + 1]
        firsts = [int(offsets[0]), *offsets[breaks + 1].tolist()]
        lasts = [*offsets[breaks].tolist(), int(offsets[-1])]
        for first, last in zip(firsts[: MOST_RANGES + 1], lasts, strict=False):
            if self.ranges and self.ranges[-1][1] + 1 == first:
                self.ranges[-1] = (self.ranges[-1][0], last)
            else:
                self.ranges.append((first, last))

    def to_json(self) -> dict[str, object]:
        """The count of all, and up to MOST_RANGES ranges."""
        return {"count": self.count, "ranges": [list(each) for each in self.ranges[:MOST_RANGES]]}

    def __str__(self) -> str:
        if not self.count:
            return "0"
        shown = ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in self.ranges[:3])
        return f"{self.count} ({shown}{', ...' if len(self.ranges) > 3 else ''})"


class Buckets:
    """Rows by time: of the log and of the lake. Beyond MOST_BUCKETS of them, further ones are one together."""

    def __init__(self, length_ms: int) -> None:
        self._length_us: Final = length_ms * 1000
        self._counts: dict[int | None, list[int]] = {}

    def add(self, times_us: Integers, side: int) -> None:
        """`side` 0: the log's, 1: the lake's."""
        numbers, counts = np.unique(times_us // self._length_us, return_counts=True)
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            key = number if number in self._counts or len(self._counts) < MOST_BUCKETS else None
            self._counts.setdefault(key, [0, 0])[side] += count

    def to_json(self) -> list[dict[str, object]]:
        """In the order of time."""
        known = sorted(number for number in self._counts if number is not None)
        found: list[dict[str, object]] = [self._entry(number, _time_text(number * self._length_us)) for number in known]
        return found + ([self._entry(None, None)] if None in self._counts else [])

    def _entry(self, key: int | None, start: str | None) -> dict[str, object]:
        log, lake = self._counts[key]
        return {"start": start, "log_rows": log, "lake_rows": lake}


@dataclass
class PartitionAudit:
    """What was found of one partition. Ranges are [start, end) but for those in `Offsets`."""

    topic: str
    partition: int
    is_compacted: bool
    log: range | None
    """From the log's first offset to the last stable one; None: it is not there."""
    archived: list[tuple[int, int]]
    manifest_rows: int
    buckets: Buckets
    log_rows: int = 0
    """In what was compared."""
    lake_rows: int = 0
    """All of the partition's."""
    unverified_rows: int = 0
    """Of these, below the log's start: nothing is left to compare them with."""
    compacted_rows: int = 0
    """Of these, what the log has compacted away since."""
    missing: Offsets = field(default_factory=Offsets)
    duplicates: Offsets = field(default_factory=Offsets)
    extra: Offsets = field(default_factory=Offsets)
    """In the lake, and never in the log as it is."""
    retimed: Offsets = field(default_factory=Offsets)
    """In both, with another time: the record that the lake has is another one than the log's."""
    gaps: list[tuple[int, int]] = field(default_factory=list)
    """Below the log's start, offsets between archived ranges: they may have been records."""

    @property
    def lag(self) -> int:
        """Offsets that the log has and the archive has not come to."""
        if self.log is None:
            return 0
        return max(0, self.log.stop - (self.archived[-1][1] if self.archived else self.log.start))

    @property
    def problems(self) -> list[str]:
        """One short line each; none: it was compared, nothing is lost, and nothing is there twice."""
        found = []
        if self.log is None:
            found.append(f"not verified: there is no such partition; the lake has {self.lake_rows} rows of it")
        elif not self.archived and len(self.log):
            found.append(f"not in the lake: the log has offsets {self.log.start}-{self.log.stop - 1}")
        for what, offsets in (
            ("missing", self.missing),
            ("twice", self.duplicates),
            ("not in the log", self.extra),
            ("of another time in the log", self.retimed),
        ):
            if offsets.count:
                found.append(f"{what}: {offsets}")
        if self.gaps:
            found.append("never archived: " + ", ".join(f"{low}-{high - 1}" for low, high in self.gaps[:3]))
        if self.lake_rows != self.manifest_rows:
            found.append(f"files hold {self.lake_rows} rows, the manifest counts {self.manifest_rows}")
        return found

    def to_json(self) -> dict[str, object]:
        """One partition of the document."""
        return {
            "topic": self.topic,
            "partition": self.partition,
            "compacted": self.is_compacted,
            "log": None if self.log is None else [self.log.start, self.log.stop],
            "archived": [list(each) for each in self.archived[:MOST_RANGES]],
            "log_rows": self.log_rows,
            "lake_rows": self.lake_rows,
            "manifest_rows": self.manifest_rows,
            "unverified_rows": self.unverified_rows,
            "compacted_rows": self.compacted_rows,
            "missing": self.missing.to_json(),
            "duplicates": self.duplicates.to_json(),
            "extra": self.extra.to_json(),
            "retimed": self.retimed.to_json(),
            "gaps": [list(each) for each in self.gaps[:MOST_RANGES]],
            "lag": self.lag,
            "buckets": self.buckets.to_json(),
            "problems": self.problems,
        }


@dataclass
class AuditReport:
    """A whole audit."""

    lake: str
    version: int
    partitions: list[PartitionAudit]

    @property
    def is_clean(self) -> bool:
        """Nothing is lost, there twice or left unverified for want of a log. A lag is no fault."""
        return not any(each.problems for each in self.partitions)

    @property
    def exit_code(self) -> int:
        """Of a command: 0, or 1 where something was found."""
        return 0 if self.is_clean else 1

    def to_json(self) -> dict[str, object]:
        """The document for programs."""
        return {
            "lake": self.lake,
            "version": self.version,
            "clean": self.is_clean,
            "partitions": [each.to_json() for each in self.partitions],
        }

    def lines(self) -> Iterator[str]:
        """The table for people, and below it what was found."""
        rows: list[tuple[str, ...]] = [
            ("topic", "partition", "log", "lake", "in log", "in lake", "missing", "twice", "lag")
        ]
        for each in self.partitions:
            counts = (each.log_rows, each.lake_rows, each.missing.count, each.duplicates.count, each.lag)
            log = "-" if each.log is None else f"{each.log.start}..{each.log.stop}"
            lake = f"{each.archived[0][0]}..{each.archived[-1][1]}" if each.archived else "-"
            rows.append((each.topic, str(each.partition), log, lake, *map(str, counts)))
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        for row in rows:
            first = row[0].ljust(widths[0])
            yield "  ".join([first, *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))])
        for each in self.partitions:
            for problem in each.problems:
                yield f"{each.topic}-{each.partition} {problem}"
        yield "clean" if self.is_clean else "NOT CLEAN"


def _time_text(time_us: int) -> str | None:
    try:
        return datetime.fromtimestamp(time_us / _US, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None
