"""What a fetch answered for one partition, decoded: stretches of records that may be given out.

Large answers are decoded by columns, all batches at once, small ones in a loop. Left out are records before the asked
offset (a batch comes whole), control batches, and what aborted transactions wrote, if that is asked for.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kavka.client.consumer.aborted import AbortedTransactions
from kavka.client.consumer.columns import RecordColumns
from kavka.client.consumer.positions import LAST_OFFSET
from kavka.client.consumer.stretches import ColumnStretch, RowStretch, Stretch
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.buffer_pool import BufferPool
from kavka.protocol.records.batch import iter_records
from kavka.protocol.records.builder import ControlType, control_type_of
from kavka.protocol.records.compression import Codec, decompress
from kavka.protocol.records.errors import CorruptRecordsError
from kavka.protocol.records.header import (
    BATCH_START,
    HEADER_SIZE_BYTES,
    LEADER_EPOCH_POSITION,
    LEAST_LENGTH,
    LOG_OVERHEAD_BYTES,
    BatchHeader,
    TimestampType,
    read_header,
    unpack_epoch_and_counts,
    verify_crc,
)
from kavka.protocol.records.legacy import iter_records_of
from kavka.protocol.records.reading import NO_HEADERS, RecordRow, read_rows, rows_in_pieces

if TYPE_CHECKING:
    from kavka.protocol.records.columns import Batches, Records
    from kavka.protocol.records.record_lengths import Flags

COLUMNS_FROM: Final = 400
"""So many records in an answer are worth numpy."""
BATCH_LIMIT_BYTES: Final = 256 << 20
"""What a batch may unpack to; beyond that it is corrupt."""

RECORDS_AT_ONCE: Final = 16_384
LARGE_BATCH_RECORDS: Final = 65_536
"""Of more, columns would cost a multiple of what the batch unpacks to: they are made in pieces, as they are wanted."""
UNPACKED_AT_ONCE_BYTES: Final = 2 << 20
"""Some thousand records are enough to have numpy's calls cost nothing, and fit into the processor's caches."""

log = logging.getLogger(__name__)


class Survey(NamedTuple):
    """What the headers of an answer's batches say, unchecked."""

    size_bytes: int
    """Of the whole batches: the last one may be cut off."""
    next_offset: int
    """Where to fetch on; -1 when there is no whole batch."""
    records: int
    epoch: int
    """The leader epoch of the last batch; -1 where its format has none."""


def survey(data: memoryview) -> Survey:
    """Walk the batches; what is no batch ends the walk, and decoding says why."""
    position, next_offset, records, epoch, end = 0, -1, 0, -1, len(data)
    while position + BATCH_START.size <= end:
        base_offset, length, magic = BATCH_START.unpack_from(data, position)
        following = position + LOG_OVERHEAD_BYTES + length
        least = LEAST_LENGTH.get(magic)
        if least is None or length < least or following > end:
            break
        after, of, count = base_offset + 1, -1, 0
        if magic == 2:
            of, last_delta, count = unpack_epoch_and_counts(data, position + LEADER_EPOCH_POSITION)
            after += last_delta
        if after > LAST_OFFSET:
            # Nothing could be asked for behind it.
            break
        next_offset, epoch, position = after, of, following
        records += count
    return Survey(position, next_offset, records, epoch)


class CorruptBatchError(Exception):
    """A batch cannot be read; the cause says why."""

    def __init__(self, partition: TopicPartition, offset: int, next_offset: int, reason: str) -> None:
        super().__init__(f"the batch at offset {offset} of {partition} is corrupt: {reason}")
        self.offset: Final = offset
        self.next_offset: Final = next_offset
        """Where reading could go on, by the batch's header; it is above `offset`."""


class Rules(NamedTuple):
    """How answers are decoded."""

    check_crcs: bool = True
    skip_corrupt: bool = False
    """Leave corrupt batches out, with a warning, instead of raising."""
    only_columns: bool = False
    pool: BufferPool | None = None
    """What packed batches are unpacked into; whoever decodes owns it."""


def decoded(
    partition: TopicPartition,
    data: bytes | memoryview,
    offset: int,
    aborted: Sequence[tuple[int, int]],
    rules: Rules,
    records: int,
) -> Iterator[Stretch]:
    """The records of whole batches from `offset` on, `records` of them by the headers; may be empty stretches.

    Each stretch says where to read on after it. Raises CorruptBatchError once everything before it was given.
    """
    decoding = _Decoding(partition, data, offset, AbortedTransactions(aborted), rules)
    by_columns = rules.only_columns or records >= COLUMNS_FROM
    next_offset = offset
    for stretch in decoding.by_columns() if by_columns else decoding.by_rows(0, len(data)):
        next_offset = stretch.next_offset
        yield stretch
    if next_offset <= offset:
        # Asking again would go on for ever.
        raise CorruptBatchError(partition, offset, offset + 1, "no batch goes beyond that offset")


class _Decoding:
    """One answer of a partition. One thread."""

    def __init__(
        self,
        partition: TopicPartition,
        data: bytes | memoryview,
        offset: int,
        aborted: AbortedTransactions,
        rules: Rules,
    ) -> None:
        self._partition = partition
        self._data = data
        self._offset = offset
        self._aborted = aborted
        self._rules = rules

    def by_rows(self, position: int, end: int) -> Iterator[Stretch]:
        """Batch by batch, any magic; neighbours of a kind make one stretch."""
        rows: list[RecordRow] = []
        kind = _Kind(None, TimestampType.CREATE)
        next_offset = self._offset
        made = 0
        while position < end:
            try:
                header = read_header(self._data, position)
            except CorruptRecordsError as failure:
                # Nobody knows where the next batch would begin.
                if rows:
                    yield RowStretch(self._partition, rows, *kind, next_offset)
                raise CorruptBatchError(self._partition, next_offset, next_offset + 1, str(failure)) from failure
            of = _kind(header.partition_leader_epoch, header.timestamp_type)
            if rows and (of != kind or made >= RECORDS_AT_ONCE):
                yield RowStretch(self._partition, rows, *kind, next_offset)
                rows, made = [], 0
            kind = of
            made += header.count
            following = max(header.next_offset, next_offset)
            try:
                pieces = self._read(rows, header, position)
                for more in pieces:
                    rows += more
                    if len(rows) >= RECORDS_AT_ONCE:
                        next_offset = max(rows[-1][0] + 1, next_offset)
                        yield RowStretch(self._partition, rows, *kind, next_offset)
                        rows = []
            except CorruptRecordsError as failure:
                if not self._rules.skip_corrupt:
                    if rows:
                        yield RowStretch(self._partition, rows, *kind, next_offset)
                    raise CorruptBatchError(self._partition, next_offset, following, str(failure)) from failure
                log.warning("corrupt batch skipped partition=%s offset=%d: %s", self._partition, next_offset, failure)
            next_offset = following
            position += header.size_bytes
        yield RowStretch(self._partition, rows, *kind, next_offset)

    def by_columns(self) -> Iterator[Stretch]:
        """All batches of a kind at once. Where something is corrupt the rows' way goes on, and finds out what."""
        from kavka.protocol.records.columns import Batches, ParseLimits, find_batches, parsed

        at_once = ParseLimits(records=RECORDS_AT_ONCE, unpacked_bytes=UNPACKED_AT_ONCE_BYTES)
        position, end = 0, len(self._data)
        while position < end:
            rest = self._data[position:] if position else self._data
            try:
                places, is_v2, size_bytes = find_batches(rest, len(rest))
                if not places:
                    yield from self.by_rows(position, end)
                    return
                if not is_v2:
                    yield from self.by_rows(position, position + size_bytes)
                    position += size_bytes
                    continue
                batches = Batches(rest, places)
                large = (batches.counts > LARGE_BATCH_RECORDS).nonzero()[0]
                if len(large) and not large[0]:
                    size_bytes = int(batches.sizes[0])
                    yield from self.by_rows(position, position + size_bytes)
                    position += size_bytes
                    continue
                if len(large):
                    batches = batches.between(0, int(large[0]))
                rules = self._rules
                every = parsed(batches, at_once, check_crcs=rules.check_crcs, padded=False, pool=rules.pool)
                for part, records in every:
                    yield from self._stretches(part, records)
                    position += int(part.sizes.sum())
            except CorruptRecordsError:
                yield from self.by_rows(position, end)
                return

    def _read(self, rows: list[RecordRow], header: BatchHeader, position: int) -> Iterable[list[RecordRow]]:
        """Append the batch's records that are to be given out. Raises CorruptRecordsError, and appends nothing.

        What may be very many is returned instead, RECORDS_AT_ONCE at most: these may raise when some are made already.
        """
        if self._rules.check_crcs:
            verify_crc(self._data, position, header)
        if header.magic < 2:
            return self._from_asked(_legacy_rows(iter_records_of(self._data, position, header, BATCH_LIMIT_BYTES)))
        if header.is_control:
            self._marker(self._data, position, header.last_offset, header.producer_id)
            return ()
        if not self._aborted.is_idle and self._aborted.leaves_out(
            header.last_offset, header.producer_id, is_transactional=header.is_transactional
        ):
            return ()
        packed = memoryview(self._data)[position + HEADER_SIZE_BYTES : position + header.size_bytes]
        if header.codec == Codec.NONE:
            body = bytes(packed)
        else:
            body = decompress(header.codec, packed, limit_bytes=BATCH_LIMIT_BYTES)
        if header.count > RECORDS_AT_ONCE:
            return self._from_asked(rows_in_pieces(body, header, RECORDS_AT_ONCE))
        before = len(rows)
        try:
            read_rows(rows, body, 0, len(body), header)
        except CorruptRecordsError:
            del rows[before:]
            raise
        if header.base_offset < self._offset:
            rows[before:] = [row for row in rows[before:] if row[0] >= self._offset]
        return ()

    def _from_asked(self, pieces: Iterable[list[RecordRow]]) -> Iterator[list[RecordRow]]:
        return ([row for row in rows if row[0] >= self._offset] for rows in pieces)

    def _marker(self, data: bytes | memoryview, position: int, last_offset: int, producer_id: int) -> None:
        """A control batch: it may end an aborted transaction."""
        if self._aborted.is_idle:
            return
        record = next(iter_records(data, position), None)
        if record is not None and control_type_of(record) is ControlType.ABORT:
            self._aborted.abort_marker(last_offset, producer_id)

    def _stretches(self, batches: Batches, records: Records) -> Iterator[Stretch]:
        """What was parsed, without what is left out, in runs of batches of one kind. Raises CorruptRecordsError."""
        from kavka.protocol.records.columns import with_headers

        has_headers = bool(with_headers(records).any())
        left_out = self._left_out(batches)
        columns = [records.offsets, records.timestamps, records.key_starts, records.key_sizes, records.value_starts]
        columns += [records.value_sizes, records.header_starts, records.ends, records.starts]
        batch = records.batch
        keep = None if left_out is None else ~left_out[batch]
        if len(batches) and int(batches.base_offsets[0]) < self._offset:
            late = records.offsets >= self._offset
            keep = late if keep is None else keep & late
        if keep is not None:
            columns, batch = [column[keep] for column in columns], batch[keep]
        epochs, stamped = batches.leader_epochs, batches.is_log_append_time
        changes = ((epochs[1:] != epochs[:-1]) | (stamped[1:] != stamped[:-1])).nonzero()[0] + 1
        first = 0
        for end in (*changes.tolist(), len(batches)):
            low, high = batch.searchsorted((first, end)).tolist()
            kind = _kind(int(epochs[first]), TimestampType(int(stamped[first])))
            *some, starts = [column[low:high] for column in columns]
            part = RecordColumns(self._partition, *kind, records.body, some, starts=starts, has_headers=has_headers)
            yield ColumnStretch(part, max(int(batches.last_offsets[end - 1]) + 1, self._offset))
            first = end

    def _left_out(self, batches: Batches) -> Flags | None:
        """Which batches have no records for the user; None when all have."""
        left_out = batches.is_control
        if self._aborted.is_idle:
            return left_out if left_out.any() else None
        columns = (batches.last_offsets, batches.producer_ids, batches.is_transactional, left_out, batches.positions)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for number, (last_offset, producer_id, is_transactional, is_control, position) in enumerate(rows):
            if is_control:
                self._marker(batches.data, position, last_offset, producer_id)
            else:
                left_out[number] = self._aborted.leaves_out(last_offset, producer_id, is_transactional=is_transactional)
        return left_out


def _legacy_rows(records: Iterator[Any]) -> Iterator[list[RecordRow]]:
    """All of those up to RECORDS_AT_ONCE, or none if one of them is corrupt."""
    while some := list(islice(records, RECORDS_AT_ONCE)):
        yield [(each.offset, each.timestamp_ms, each.key, each.value, NO_HEADERS) for each in some]


class _Kind(NamedTuple):
    leader_epoch: int | None
    timestamp_type: TimestampType


def _kind(leader_epoch: int, timestamp_type: TimestampType) -> _Kind:
    return _Kind(None if leader_epoch < 0 else leader_epoch, timestamp_type)
