"""Which log is compacted next: the one with the largest dirty share, of those that are dirty enough or must be now.

log start .. first dirty offset      clean: compacted before, the share that costs and brings little
first dirty .. end offset            dirty and cleanable
end offset ..                        open transactions, the active segment, what is younger than min.compaction.lag.ms
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from kavka.storage.partition_log import PartitionLog
from kavka.storage.segment import Segment

_UNBOUNDED_MS: Final = (1 << 63) - 1


class CleanableLog(NamedTuple):
    """A compacted log as it stands. Immutable."""

    log: PartitionLog
    segments: tuple[Segment, ...]
    """Those below `end_offset`, from the first one on."""
    first_dirty_offset: int
    end_offset: int
    """A segment's base offset; at or below `first_dirty_offset` where nothing is cleanable."""
    clean_bytes: int
    cleanable_bytes: int
    truncations: int
    """The log's, when it was looked at: with another number, its segments may be others that begin where these did."""
    compaction_delay_ms: int
    """For how long its oldest dirty record has been there beyond `max.compaction.lag.ms`; 0 if it hasn't."""

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    @property
    def is_due(self) -> bool:
        if not self.cleanable_bytes:
            return False
        return self.compaction_delay_ms > 0 or self.dirty_ratio > self.log.config.min_cleanable_dirty_ratio


def look_at(log: PartitionLog, now_ms: int) -> CleanableLog:
    """How the log stands. Raises OSError, CorruptIndexError."""
    with log.lock:  # else a truncation might be half way
        truncations, (log_end, _, segments, bases) = log.truncations, log.published
    first_dirty = _first_dirty_offset(log, log_end)
    dirty = [segment for segment, following in zip(segments[:-1], bases[1:], strict=True) if following > first_dirty]
    bound = min(log.last_stable_offset, bases[-1])
    lag_ms = max(log.config.min_compaction_lag_ms, 0)
    if lag_ms:
        young = (segment.base_offset for segment in dirty if segment.largest_timestamp()[0] > now_ms - lag_ms)
        bound = min(bound, next(young, bound))
    # A segment that isn't cleanable to its end isn't touched, also where the dirty part begins in its middle.
    end_offset = max((base for base in bases if base <= bound), default=bases[0])
    below = tuple(segment for segment in segments[:-1] if segment.base_offset < end_offset)
    return CleanableLog(
        log,
        below,
        first_dirty,
        end_offset,
        # As Kafka counts: the segment that the dirty part begins in is on both sides.
        sum(segment.size_bytes for segment in below if segment.base_offset < first_dirty),
        sum(segment.size_bytes for segment in dirty if segment.base_offset < end_offset),
        truncations,
        _compaction_delay_ms(log, dirty, now_ms),
    )


def filthiest(logs: Iterable[CleanableLog]) -> CleanableLog | None:
    """The one to compact now, if any."""
    return max((each for each in logs if each.is_due), key=lambda each: each.dirty_ratio, default=None)


def _first_dirty_offset(log: PartitionLog, log_end: int) -> int:
    """Where the last round ended, unless the log doesn't reach that far any more or has lost it."""
    start, clean = log.log_start_offset, log.clean_offset
    return start if clean is None or not start <= clean <= log_end else clean


def _compaction_delay_ms(log: PartitionLog, dirty: Iterable[Segment], now_ms: int) -> int:
    lag_ms = max(log.config.max_compaction_lag_ms, 0)
    if lag_ms == _UNBOUNDED_MS:
        return 0
    oldest = min((time for segment in dirty if (time := segment.first_timestamp_ms()) > 0), default=_UNBOUNDED_MS)
    return max(0, now_ms - lag_ms - oldest)
