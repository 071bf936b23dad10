"""Making a log shorter: truncation from its end, deletion from its start. `retention.py` says what is to go."""

from bisect import bisect_right
from collections.abc import Sequence

from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.storage.batch_scan import BatchPlace
from kavka.storage.log_state import LogState
from kavka.storage.recovery import replay
from kavka.storage.replaying import batches_from, recall_batches
from kavka.storage.segment import Segment
from kavka.storage.swapping import settle_swap


def place_to_cut(log: LogState, offset: int) -> BatchPlace | None:
    """The batch before which a log ends that is truncated to `offset`; None where whole segments go. Lock held.

    It is looked for before anything changes: in a broken segment it can't be found. Raises OSError, DecodeError,
    CorruptIndexError.
    """
    end_offset, _, segments, bases = log.published
    if not bases[0] <= offset < end_offset:
        return None
    last = segments[bisect_right(bases, offset) - 1]
    return last.find(offset, last.size_bytes)


def truncate_to(log: LogState, offset: int, place: BatchPlace | None) -> bool:
    """Drop the batches that hold `offset` or come behind it. Lock held; True if anything went.

    Where `offset` lies inside a batch, the log ends before that batch. `place`: see `place_to_cut`. Raises OSError,
    DecodeError, CorruptIndexError, which leave it half done.
    """
    end_offset, _, segments, bases = log.published
    if offset >= end_offset:
        # Who led for a while and appended nothing has an epoch at its end that the next leader may not know of.
        log.epochs.truncate_from_end(end_offset)
        return False
    settle_swap(log)
    log.truncations += 1
    log.changes += 1
    if offset < bases[0]:
        start_anew(log, offset)
        return True
    kept = [segment for segment in segments if segment.base_offset <= offset]
    last = kept[-1]
    # Readers stop looking at the bytes before the bytes go.
    log.publish(offset, last.size_bytes, kept)
    log.drop_segments(segments[len(kept) :])
    if len(kept) < len(segments):
        last.activate()
        last.govern(log.roll_rules, log.jitter_ms())
        last.created_ms = log.environment.now_ms()
    end_offset = last.truncate_to(offset, place)
    # Else a power cut might bring back what was cut, among what is written there meanwhile.
    log.files.fsync(last.fd)
    log.files.fsync_directory(log.folder)
    log.publish(end_offset, last.size_bytes, kept)
    _lower_recovery_point(log, end_offset)
    with log.watermark_lock:
        log.high_watermark = min(log.high_watermark, end_offset)
    log.log_start_offset = min(log.log_start_offset, end_offset)
    log.epochs.truncate_from_end(end_offset)
    _reload_producers(log, end_offset)
    _lower_clean_offset(log, end_offset)
    return True


def start_anew(log: LogState, offset: int) -> None:
    """Drop everything; the log is empty and begins at `offset`. Lock held. Raises OSError."""
    settle_swap(log)
    log.truncations += 1
    log.changes += 1
    # First, since the new segment's files may have an old one's names. Readers go on with the renamed files.
    log.drop_segments(log.published[2])
    new = log.new_segment(offset, log.environment.now_ms())
    log.publish(offset, 0, (new,))
    log.log_start_offset = offset
    _lower_recovery_point(log, offset)
    log.recovery_point = offset
    with log.watermark_lock:
        log.high_watermark = offset
    log.epochs.clear()
    log.producers.clear(offset)
    log.snapshots.remove_outside(-1, -1)
    _lower_clean_offset(log, offset)


def delete_records_before(log: LogState, offset: int) -> bool:
    """Move the log's start up to `offset`, -1 standing for the high watermark. Lock held; True if it moved.

    Raises BrokerError: POLICY_VIOLATION on a topic that isn't deleted from, OFFSET_OUT_OF_RANGE.
    """
    if not log.config.is_deleted_by_retention:
        raise BrokerError(ErrorCode.POLICY_VIOLATION, "cleanup.policy has no delete: records can't be deleted")
    if offset == -1:
        offset = log.high_watermark
    if not 0 <= offset <= log.high_watermark:
        raise BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset}, the high watermark is {log.high_watermark}")
    return advance_start(log, offset)


def advance_start(log: LogState, offset: int) -> bool:
    """The log starts at `offset` now; the files go with the next retention pass. Lock held; True if it moved."""
    if offset <= log.log_start_offset:
        return False
    log.log_start_offset = offset
    log.epochs.truncate_from_start(offset)
    with log.watermark_lock:
        log.high_watermark = max(log.high_watermark, min(offset, log.published[0]))
    log.producers.replicated_to(log.high_watermark)
    return True


def delete_below(log: LogState, offset: int) -> list[Segment]:
    """Drop the segments that end at or below `offset` and the high watermark. Lock held; those that went.

    Raises OSError where one can't be renamed: it and those behind stay in the log, and the next pass tries again; or
    where a snapshot can't be unlinked: that is left to the next start.
    """
    end_offset, position, segments, bases = log.published
    count = bisect_right(bases, min(offset, log.high_watermark), 1) - 1
    if not count:
        return []
    dropped, failure = _set_aside(log, segments[:count])
    count = len(dropped)
    advance_start(log, bases[count])
    # Who missed a file meanwhile waits for the lock, and finds another tuple.
    log.publish(end_offset, position, segments[count:])
    for segment, renamed in dropped:
        try:
            log.let_go(segment, renamed)
        except OSError as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return [segment for segment, _ in dropped]


def _set_aside(log: LogState, segments: Sequence[Segment]) -> tuple[list[tuple[Segment, list[str]]], OSError | None]:
    """(the segments whose files were renamed, with these; what kept the next one from it)"""
    done: list[tuple[Segment, list[str]]] = []
    for segment in segments:
        try:
            renamed = log.set_aside(segment)
        except OSError as error:
            return done, error
        done.append((segment, renamed))
    return done, None


def _lower_recovery_point(log: LogState, end_offset: int) -> None:
    """What comes behind the log's new end was not fsynced; a restart must know that, too (as Kafka's truncateTo).

    Also where the log ends there now: what was cut from the indexes may come back.
    """
    if log.recovery_point >= end_offset:
        log.recovery_point = end_offset
        log.owes_recovery_point = True
        log.environment.on_recovery_point_lowered()


def _lower_clean_offset(log: LogState, end_offset: int) -> None:
    """What comes behind the log's new end was never compacted; a restart must know that, too."""
    if log.clean_offset is not None and log.clean_offset > end_offset:
        log.clean_offset = end_offset
        log.environment.on_clean_offset_lowered()


def _reload_producers(log: LogState, end_offset: int) -> None:
    """Go back to what was known at `end_offset`: the newest snapshot below, and the batches behind it."""
    log.snapshots.remove_outside(-1, end_offset)
    loaded = log.snapshots.load_latest(-1, end_offset)
    log.producers.clear(log.log_start_offset)
    if loaded is not None:
        log.producers.load(*loaded)
        log.producers.remove_expired(log.environment.now_ms(), log.environment.producer_id_expiration_ms)
        recall_batches(log.files, log.published[2], log.producers)
    for segment, batch in batches_from(log.files, log.published[2], log.producers.map_end_offset):
        replay(batch, log.producers, segment, index=False)
    log.producers.map_end_offset = end_offset
    log.producers.replicated_to(log.high_watermark)
