"""Which segments of a log are to be deleted: by `retention.ms`, by `retention.bytes`, and below the log's start."""

from collections.abc import Sequence

from kavka.storage.files import PASSING
from kavka.storage.log_state import LogState
from kavka.storage.segment import Segment


def retention_offset(log: LogState, now_ms: int) -> int | None:
    """Below which offset segments go by time, size and start offset; None: there are none. Lock held. Raises OSError.

    One segment is always left, if need be a new one, which is to be on the disk before the others go.
    """
    end_offset, _, segments, bases = log.published
    count = _count_below_start(log)
    if log.config.is_deleted_by_retention:
        count += _count_too_old(log, now_ms, segments[count:])
        count += _count_over_size(log, segments[count:])
    ends = (*bases[1:], end_offset)
    while count and ends[count - 1] > log.high_watermark:
        count -= 1
    if count and count == len(segments):
        try:
            log.roll(now_ms, end_offset)
        except OSError as error:
            # The others may be what there is no room for.
            if count == 1 or error.errno not in PASSING:
                raise
            count -= 1
    return ends[count - 1] if count else None


def _count_below_start(log: LogState) -> int:
    """How many segments end at or below the log's start."""
    bases = log.published[3]
    return sum(1 for following in bases[1:] if following <= log.log_start_offset)


def _count_too_old(log: LogState, now_ms: int, segments: Sequence[Segment]) -> int:
    """How many of the first segments are older than `retention.ms`."""
    if log.config.retention_ms < 0:
        return 0
    count = 0
    for segment in _without_empty_end(segments):
        if now_ms - segment.retention_timestamp_ms() <= log.config.retention_ms:
            break
        count += 1
    return count


def _count_over_size(log: LogState, segments: Sequence[Segment]) -> int:
    """How many of the first segments can go while `retention.bytes` are left."""
    if log.config.retention_bytes < 0:
        return 0
    over = sum(segment.size_bytes for segment in segments) - log.config.retention_bytes
    count = 0
    for segment in _without_empty_end(segments):
        over -= segment.size_bytes
        if over < 0:
            break
        count += 1
    return count


def _without_empty_end(segments: Sequence[Segment]) -> Sequence[Segment]:
    """Those that can be deleted: not the last one while it is empty. Compaction leaves other empty ones."""
    return segments if not segments or segments[-1].size_bytes else segments[:-1]
