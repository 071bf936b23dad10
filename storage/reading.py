"""Finding what a reader asks for: by offset, by time. No lock is taken, but for a moment where a search was long."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from kavka.protocol.errors import BrokerError, DecodeError, ErrorCode
from kavka.protocol.records.header import LOG_OVERHEAD_BYTES, claimed_size_bytes
from kavka.storage.log_answers import AbortedTransaction, FoundOffset
from kavka.storage.log_slice import LogSlice
from kavka.storage.log_state import LogState, NewestKnown
from kavka.storage.offset_index import CorruptIndexError
from kavka.storage.segment import Segment
from kavka.storage.time_index import NO_TIMESTAMP

T = TypeVar("T")


def read_slice(log: LogState, offset: int, max_bytes: int, min_one: bool, end_offset: int) -> LogSlice:
    """See PartitionLog.read."""
    truncations = log.truncations
    log_end, end_position, segments, bases = log.published
    if not log.log_start_offset <= offset <= log_end:
        raise BrokerError(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} isn't between {log.log_start_offset} and {log_end}"
        )
    last = len(segments) - 1
    if offset >= end_offset or offset == log_end:
        return LogSlice(log, truncations, segments[last].file, end_position, 0, offset, bases[last])
    number = bisect_right(bases, offset) - 1 if last else 0
    try:
        while True:
            segment = segments[number]
            limit = end_position if number == last else segment.size_bytes
            position = segment.recent_positions.get(offset, -1)
            first_size = 0
            if not 0 <= position < limit:
                place = segment.find(offset, limit)
                position, first_size = (limit, 0) if place is None else place[:2]
            if position < limit or number == last:
                break
            # The offset was compacted away at the segment's end.
            number += 1
        if end_offset < log_end and (number == last or end_offset < bases[number + 1]):
            found = segment.recent_positions.get(end_offset, -1)
            limit = found if found >= 0 else _position_of(segment, end_offset, limit)
        size = limit - position
        if size > max_bytes:
            size = min(size, max(max_bytes, (first_size or _batch_size(segment, position)) if min_one else 0))
        base = segment.base_offset
        return LogSlice(log, truncations, segment.file, position, max(size, 0), offset, base, first_size)
    except OSError as error:
        if not _has_changed(log, segments):
            raise _disk_refusal(log, segments, error) from error
        return read_slice(log, offset, max_bytes, min_one, end_offset)
    except (DecodeError, CorruptIndexError) as error:
        raise BrokerError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error


def upper_bound_offset(log: LogState, piece: LogSlice) -> int:
    """See PartitionLog.upper_bound_offset."""

    def look() -> int:
        log_end, _, segments, bases = log.published
        number = bisect_right(bases, piece.segment_base_offset) - 1
        if number < 0:
            return log_end
        found = segments[number].offset_index.offset_at_or_after(piece.position + piece.size_bytes)
        if found is not None:
            return found
        return bases[number + 1] if number + 1 < len(bases) else log_end

    return _guarded(log, look)


def aborted_transactions(log: LogState, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
    """See PartitionLog.aborted_transactions."""

    def look() -> list[AbortedTransaction]:
        _, _, segments, bases = log.published
        found: list[AbortedTransaction] = []
        for segment in segments[max(0, bisect_right(bases, start_offset) - 1) :]:
            entries, complete = segment.transaction_index.collect(start_offset, end_offset)
            found += entries
            if complete:
                break
        return found

    return _guarded(log, look)


def find_by_time(log: LogState, timestamp_ms: int) -> FoundOffset | None:
    """See PartitionLog.offset_for_time."""

    def look() -> FoundOffset | None:
        _, end_position, segments, _ = log.published
        for segment in segments:
            if segment.largest_timestamp()[0] >= timestamp_ms:
                limit = end_position if segment is segments[-1] else segment.size_bytes
                found = segment.find_by_time(timestamp_ms, log.log_start_offset, limit)
                if found is not None:
                    return found
        return None

    return _guarded(log, look)


def offsets_before(log: LogState, timestamp_ms: int | None) -> list[int]:
    """See PartitionLog.offsets_before."""

    def look() -> list[int]:
        log_end, end_position, segments, bases = log.published
        starts = [max(base, log.log_start_offset) for base in bases]
        number = len(starts)
        if end_position and (timestamp_ms is None or log.environment.now_ms() <= timestamp_ms):
            starts.append(log_end)
            number += 1
        elif timestamp_ms is not None:
            while number and log.files.modified_ms(segments[number - 1].file.path) > timestamp_ms:
                number -= 1
        return starts[:number][::-1]

    return _guarded(log, look)


def find_newest(log: LogState) -> FoundOffset | None:
    """See PartitionLog.max_timestamp_offset."""

    def look() -> FoundOffset | None:
        # In this order: see `_newest_of_first`.
        truncations, known = log.truncations, log.newest_known
        _, end_position, segments, bases = log.published
        start_offset = log.log_start_offset
        # Those below the start wait for the next retention pass.
        first = max(0, bisect_right(bases, start_offset) - 1)
        if bases[first] >= start_offset:
            return _newest_in(segments[first:], end_position, start_offset)
        # The newest of all may have been deleted, where its segment holds others still.
        others = segments[first + 1 :]
        others_ms = max((segment.largest_timestamp()[0] for segment in others), default=NO_TIMESTAMP)
        if segments[first].largest_timestamp()[0] >= others_ms:
            limit = segments[first].size_bytes if others else end_position
            found = segments[first].find_newest(start_offset, limit)
            if found is None:
                if known is not None and (known.truncations != truncations or log.truncations != truncations):
                    known = None
                found = _newest_of_first(log, segments, segments[first], start_offset, limit, known)
            if found is not None and found.timestamp_ms >= others_ms:
                return found
        return _newest_in(others, end_position, start_offset)

    return _guarded(log, look)


def _newest_of_first(
    log: LogState,
    segments: tuple[Segment, ...],
    segment: Segment,
    start_offset: int,
    end_position: int,
    known: NewestKnown | None,
) -> FoundOffset | None:
    """The newest record from the log's start on, in the segment that the start lies in. No index tells.

    What was found is remembered, for the next request would scan the same batches: it goes on behind them. `known` was
    read before the log's state, and no truncation had begun since; it is stored under the lock, if none has since
    `segments` were read. So it never tells of bytes that were cut.
    """
    found, position = None, segment.offset_index.lookup(start_offset)
    if known is not None and known.segment is segment and known.end_position <= end_position:
        is_newest = known.found is None or known.found.offset >= start_offset
        if known.start_offset <= start_offset and is_newest:
            found, position = known.found, known.end_position
    if position < end_position:
        found = segment.newest_since(start_offset, position, end_position, found)
        with log.lock:
            if log.published[2] is segments:
                log.newest_known = NewestKnown(segment, log.truncations, start_offset, end_position, found)
    return found


def _newest_in(segments: Sequence[Segment], end_position: int, start_offset: int) -> FoundOffset | None:
    """The newest record of the log's last segments, none of which begins below the start; None if none is dated."""
    newest = max(segments, key=lambda segment: segment.largest_timestamp()[0], default=None)
    if newest is None or newest.largest_timestamp()[0] < 0:
        return None
    limit = end_position if newest is segments[-1] else newest.size_bytes
    found = newest.find_newest(start_offset, limit)
    # An index that isn't of our making may name another offset.
    return found or newest.find_by_time(newest.largest_timestamp()[0], start_offset, limit)


def _guarded(log: LogState, look: Callable[[], T]) -> T:
    segments = log.published[2]
    try:
        return look()
    except OSError as error:
        if not _has_changed(log, segments):
            raise _disk_refusal(log, segments, error) from error
        return _guarded(log, look)
    except (DecodeError, CorruptIndexError) as error:
        raise BrokerError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error


def _has_changed(log: LogState, segments: tuple[Segment, ...]) -> bool:
    """Whether retention, compaction or a truncation took a file meanwhile, or the log moved to another directory: as it
    is now it has the answer.

    Waits for who is at it.
    """
    with log.lock:
        return log.published[2] is not segments


def _disk_refusal(log: LogState, segments: tuple[Segment, ...], error: OSError) -> BrokerError:
    """`segments`: those that were looked at."""
    if isinstance(error, FileNotFoundError):
        # Retention or a truncation took the segment while it was looked at.
        return BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"a segment is gone: {error}")
    return log.disk_failed("read failed", error, Path(segments[0].file.path).parent)


def _position_of(segment: Segment, offset: int, limit: int) -> int:
    """Where the first batch that ends at or behind `offset` starts; `limit` if there is none before."""
    place = segment.find(offset, limit)
    return limit if place is None else place.position


def _batch_size(segment: Segment, position: int) -> int:
    return claimed_size_bytes(segment.file.read(LOG_OVERHEAD_BYTES, position))
