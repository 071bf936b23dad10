"""Appending what a follower fetched from its leader: offsets, epochs and bytes stay as they are.

All is checked before the first byte is written: CRCs, offsets, and that no batch is of a later epoch than the leader
that it was fetched from (KAFKA-18723: such an answer was under way while the leadership changed).
"""

from kavka.protocol.errors import DecodeError, ErrorCode
from kavka.protocol.records.batch import BatchHeader, iter_batch_headers, verify_crc
from kavka.storage.append_result import AppendError, AppendResult
from kavka.storage.batch_scan import ScannedBatch
from kavka.storage.leader_append import LeaderLog
from kavka.storage.log_answers import AbortedTransaction
from kavka.storage.recovery import marker_of
from kavka.storage.segment import Segment
from kavka.storage.trimming import advance_start, start_anew

PlacedHeader = tuple[int, BatchHeader]


def append_copied(
    log: LeaderLog, records: bytearray | memoryview | bytes, leader_epoch: int | None
) -> tuple[AppendResult, bool]:
    """(result, whether a segment was closed). Lock held. Raises AppendError."""
    batches = _check(log, records, leader_epoch)
    now_ms = log.environment.now_ms()
    if not batches:
        return AppendResult(-1, -1, -1, log.log_start_offset, False), False
    log_start_offset = log.log_start_offset
    if _lowest_offset(batches[0][1]) < log.published[0]:
        _begin_lower(log, _lowest_offset(batches[0][1]))
    rolled = False
    first = 0
    written = 0
    segment = log.published[2][-1]
    for number, (position, header) in enumerate(batches):
        pending = position - batches[first][0] + header.size_bytes
        if segment.must_roll(pending, header.last_offset, header.max_timestamp_ms, now_ms) and (
            number > first or segment.size_bytes or header.last_offset > segment.limit_offset
        ):
            _write_run(log, segment, records, batches[first:number])
            segment = log.roll_for_append(now_ms, max(log.published[0], header.base_offset))
            rolled = True
            first = number
        written = number + 1
    _write_run(log, segment, records, batches[first:written])
    advance_start(log, log_start_offset)
    first_offset = batches[0][1].base_offset
    result = AppendResult(first_offset, batches[-1][1].last_offset, -1, log.log_start_offset, False)
    return result, rolled


def _check(log: LeaderLog, records: bytearray | memoryview | bytes, leader_epoch: int | None) -> list[PlacedHeader]:
    """The batches to append, each with its place in `records`."""
    batches: list[PlacedHeader] = []
    next_offset = log.published[0]
    is_empty = next_offset == log.log_start_offset
    try:
        for position, header in iter_batch_headers(records, allow_truncated_tail=True):
            verify_crc(records, position, header)
            if leader_epoch is not None and header.partition_leader_epoch > leader_epoch:
                if batches:
                    break
                raise AppendError(
                    ErrorCode.CORRUPT_MESSAGE,
                    f"batch at offset {header.base_offset} is of epoch {header.partition_leader_epoch}, "
                    f"its leader of {leader_epoch}",
                )
            lowest = _lowest_offset(header)
            # The leader's log may begin inside of a batch (DeleteRecords): it comes whole, to an empty log.
            begins_the_log = is_empty and not batches and header.last_offset >= next_offset
            if (lowest < next_offset and not begins_the_log) or not 0 <= lowest <= header.last_offset:
                raise AppendError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"batch at offset {lowest} doesn't come behind the end, {next_offset}",
                )
            batches.append((position, header))
            next_offset = header.next_offset
    except DecodeError as error:
        raise AppendError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    return batches


def _lowest_offset(header: BatchHeader) -> int:
    """The offset of an old compressed message is its last record's."""
    return header.base_offset if header.magic >= 2 else header.last_offset


def _begin_lower(log: LeaderLog, offset: int) -> None:
    """Have an empty log begin at `offset`, in the middle of whose first batch it began."""
    try:
        start_anew(log, offset)
    except OSError as error:
        raise log.give_up("the log can't begin lower", error) from error


def _write_run(
    log: LeaderLog, segment: Segment, records: bytearray | memoryview | bytes, batches: list[PlacedHeader]
) -> None:
    """Write neighbouring batches at once, and account for them."""
    if not batches:
        return
    start = batches[0][0]
    end = batches[-1][0] + batches[-1][1].size_bytes
    _, base_position, segments, bases = log.published
    log.write(segment, memoryview(records)[start:end], base_position)
    save_due = False
    for position, header in batches:
        if header.partition_leader_epoch != log.epochs.latest_epoch and header.partition_leader_epoch >= 0:
            log.epochs.assign(header.partition_leader_epoch, header.base_offset)
        save_due |= segment.note_batch(
            header.base_offset,
            header.last_offset,
            base_position + position - start,
            header.size_bytes,
            header.max_timestamp_ms,
        )
        if header.producer_id >= 0:
            save_due |= _account(log, segment, records, position, header)
    log.published = (batches[-1][1].next_offset, base_position + end - start, segments, bases)
    if save_due:
        log.save_indexes(segment)


def _account(
    log: LeaderLog, segment: Segment, records: bytearray | memoryview | bytes, position: int, header: BatchHeader
) -> bool:
    """Tell the producer state; True if `.txnindex` got an entry."""
    marker = marker_of(ScannedBatch(position, header, records, position)) if header.is_control else None
    completed = log.producers.replay(header, marker)
    if completed is None or not completed.aborted:
        return False
    last_stable_offset = log.producers.last_stable_offset_after(completed)
    segment.transaction_index.append(
        AbortedTransaction(completed.producer_id, completed.first_offset, completed.last_offset, last_stable_offset)
    )
    return True
