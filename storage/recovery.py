"""What is done with each segment at start, and the scan that makes a damaged one sound.

    stopped cleanly  below recovery point  last  indexes  tail  ->
    no               no                    any   any      any   RECOVER   page cache may be lost: trust no byte
    any              any                   yes   broken   any   RECOVER   the log's end can't be told without a scan
    any              any                   yes   good     torn  RECOVER   as above
    any              any                   no    broken   any   REBUILD   fsynced and sealed: only the indexes are lost
    all else                                                    KEEP

RECOVER checks every batch's CRC, cuts the segment at the first bad one and drops the segments behind it. REBUILD keeps
every byte: what was fsynced and acknowledged is not thrown away because an index is missing.
"""

import contextlib
from collections.abc import Callable, Iterable
from enum import Enum
from typing import NamedTuple

from kavka.protocol.errors import DecodeError
from kavka.protocol.records.batch import ControlType, control_type_of, coordinator_epoch_of, verify_crc
from kavka.protocol.records.errors import CorruptRecordsError
from kavka.storage.batch_scan import ScannedBatch, scan_batches
from kavka.storage.files import TEMPORARY_SUFFIX, Files
from kavka.storage.log_answers import AbortedTransaction
from kavka.storage.producer_state import ProducerStates
from kavka.storage.segment import Segment


class Action(Enum):
    """What to do with a segment at start."""

    KEEP = "keep"
    REBUILD = "rebuild its indexes"
    RECOVER = "check it, and cut it at the first bad batch"


class SegmentFinding(NamedTuple):
    """What is known of a segment before it is read."""

    stopped_cleanly: bool
    below_recovery_point: bool
    """All of the segment lies below the recovery point: it was fsynced."""
    is_last: bool
    indexes_good: bool
    tail_whole: bool
    """The last batch ends where the file does; asked of the last segment only."""


def decide(finding: SegmentFinding) -> Action:
    """The table above."""
    if not finding.stopped_cleanly and not finding.below_recovery_point:
        return Action.RECOVER
    if finding.is_last:
        return Action.KEEP if finding.indexes_good and finding.tail_whole else Action.RECOVER
    return Action.KEEP if finding.indexes_good else Action.REBUILD


OnBatch = Callable[[ScannedBatch], None]


def recover_segment(segment: Segment, files: Files, next_offset: int, on_batch: OnBatch) -> tuple[int, int]:
    """Check an unsealed segment's batches, rebuild its indexes, cut it at the first bad one.

    `next_offset`: where the segment before it ended; batches below are bad. Returns (the log's end, bytes cut).
    Raises OSError.
    """
    size = segment.size_bytes
    sound_bytes = 0
    next_offset = max(next_offset, segment.base_offset)
    with contextlib.suppress(CorruptRecordsError):
        for batch in scan_batches(files, segment.fd, 0, size):
            header = batch.header
            verify_crc(batch.data, batch.start, header)
            first_offset = header.base_offset
            if first_offset < next_offset or not first_offset <= header.last_offset <= segment.limit_offset:
                break
            segment.note_batch(
                first_offset, header.last_offset, batch.position, header.size_bytes, header.max_timestamp_ms
            )
            on_batch(batch)
            sound_bytes = batch.position + header.size_bytes
            next_offset = header.next_offset
    if sound_bytes < size:
        files.ftruncate(segment.fd, sound_bytes)
        # Else a second crash might bring back what was cut, behind what is written there meanwhile.
        files.fsync(segment.fd)
        segment.size_bytes = sound_bytes
    return next_offset, size - sound_bytes


def rebuild_indexes(segment: Segment, files: Files, folder: str, on_batch: OnBatch) -> None:
    """Index a sealed segment anew as far as its batches can be told apart; no byte of it is cut. Raises OSError.

    The recovery point vouches for the indexes already, so they are built beside the old ones, and the disk has them
    before they take their place. That a transaction index is lost nothing tells, so it comes first: until it is sure,
    the next start finds what was damaged, and builds all of them again.
    """
    for index in segment.indexes:
        index.path += TEMPORARY_SUFFIX
    segment.restart()
    size = segment.size_bytes
    with contextlib.suppress(CorruptRecordsError):
        for batch in scan_batches(files, segment.fd, 0, size):
            header = batch.header
            if not segment.base_offset <= header.last_offset <= segment.limit_offset:
                break
            segment.note_batch(
                header.base_offset, header.last_offset, batch.position, header.size_bytes, header.max_timestamp_ms
            )
            on_batch(batch)
    segment.size_bytes = size
    segment.seal()
    segment.has_its_names(folder)
    _, offset_index, time_index, transaction_index = segment.paths()
    _install(files, [transaction_index])
    files.fsync_directory(folder)
    _install(files, [offset_index, time_index])
    files.fsync_directory(folder)


def _install(files: Files, paths: Iterable[str]) -> None:
    for path in paths:
        if files.exists(path + TEMPORARY_SUFFIX):
            files.fsync_file(path + TEMPORARY_SUFFIX)
            files.rename(path + TEMPORARY_SUFFIX, path)
        elif files.exists(path):
            files.unlink(path)


def replay(batch: ScannedBatch, producers: ProducerStates, segment: Segment, *, index: bool) -> None:
    """Account for a batch of the log; with `index`, an aborted transaction goes into `.txnindex`. Raises OSError."""
    header = batch.header
    if header.producer_id >= 0:
        completed = producers.replay(header, marker_of(batch) if header.is_control else None)
        if completed is not None and completed.aborted and index:
            segment.transaction_index.append(
                AbortedTransaction(
                    completed.producer_id,
                    completed.first_offset,
                    completed.last_offset,
                    producers.last_stable_offset_after(completed),
                )
            )
    producers.map_end_offset = header.next_offset


def marker_of(batch: ScannedBatch) -> tuple[bool, int] | None:
    """(aborted, coordinator epoch) of an end marker; None for other control batches and for what can't be read."""
    try:
        record = next(batch.records(), None)
    except DecodeError:
        return None
    control_type = None if record is None else control_type_of(record)
    if record is None or control_type is None:
        return None
    return control_type == ControlType.ABORT, coordinator_epoch_of(record)
