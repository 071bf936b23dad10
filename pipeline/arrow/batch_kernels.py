"""The walks over batch headers, compiled: some calls for 64 Ki records, however many batches they are in."""

from typing import Final

from kavka.pipeline.arrow.compiling import compiled
from kavka.pipeline.arrow.walking import (
    ABORTED,
    BAD_FIELD,
    BAD_NEGATIVE,
    BAD_NO_BATCH,
    BASE_OFFSET,
    BODY_END,
    BODY_START,
    CODEC,
    COMMITTED,
    COUNT,
    CRC,
    CUT_OFF,
    DONE,
    END,
    FULL,
    IS_KEPT,
    IS_STAMPED,
    LAST_DELTA,
    LEGACY,
    OFFSET,
    POSITION,
    PRODUCER,
    STEP,
    TIMESTAMP,
    UNDECIDED,
    WRITTEN,
    Array,
    big_endian,
    varint,
    varlong,
    wide,
)
from kavka.protocol.records.header import (
    ATTRIBUTE_BITS_POSITION,
    BASE_TIMESTAMP_POSITION,
    BATCH_LENGTH_POSITION,
    CODEC_MASK,
    CONTROL_BIT,
    COUNT_POSITION,
    CRC_POSITION,
    HEADER_SIZE_BYTES,
    LAST_OFFSET_DELTA_POSITION,
    LEAST_LENGTH,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD_BYTES,
    MAGIC_POSITION,
    MAX_TIMESTAMP_POSITION,
    PRODUCER_POSITION,
    TRANSACTIONAL_BIT,
)

_LEAST_LENGTHS: Final = (LEAST_LENGTH[0], LEAST_LENGTH[1], LEAST_LENGTH[2])
_LARGEST: Final = (1 << 63) - 1
_MOST_U32: Final = 0xFFFFFFFF


@compiled
def _is_aborted(aborted: Array, producer_id: int, offset: int) -> bool:
    """Whether the producer's batch lies in one of the stretches, ascending: (producer, first, last offset)."""
    low, high = 0, len(aborted)
    while low < high:
        middle = (low + high) // 2
        producer = aborted[middle, 0]
        if producer < producer_id or (producer == producer_id and aborted[middle, 1] <= offset):
            low = middle + 1
        else:
            high = middle
    return low > 0 and aborted[low - 1, 0] == producer_id and offset <= aborted[low - 1, 2]


@compiled
def _fill(data: Array, position: int, following: int, is_kept: int, table: Array, number: int) -> None:
    """A batch's row in the table."""
    bits = wide(data[position + ATTRIBUTE_BITS_POSITION])
    stamped = 1 if bits & LOG_APPEND_TIME_BIT else 0
    table[number, POSITION] = position
    table[number, END] = following
    table[number, BODY_START] = position + HEADER_SIZE_BYTES
    table[number, BODY_END] = following
    table[number, CODEC] = bits & CODEC_MASK
    table[number, BASE_OFFSET] = big_endian(data, position, 8)
    table[number, LAST_DELTA] = big_endian(data, position + LAST_OFFSET_DELTA_POSITION, 4)
    stamp = MAX_TIMESTAMP_POSITION if stamped else BASE_TIMESTAMP_POSITION
    table[number, TIMESTAMP] = big_endian(data, position + stamp, 8)
    table[number, IS_STAMPED] = stamped
    table[number, COUNT] = big_endian(data, position + COUNT_POSITION, 4)
    table[number, CRC] = big_endian(data, position + CRC_POSITION, 4) & _MOST_U32
    table[number, IS_KEPT] = is_kept


@compiled
def find_batches(
    data: Array,
    position: int,
    end: int,
    first_offset: int,
    end_offset: int,
    most_records: int,
    asks_outcomes: bool,
    is_decided: bool,
    aborted: Array,
    table: Array,
) -> tuple[int, int, int, int]:
    """Walk the batches of `data` from `position` on, and note those of the range in `table`, up to `most_records`.

    (how many, where the walk ended, why (CUT_OFF, ... or what is wrong there), the offset behind the last batch or -1)
    """
    found = 0
    records = wide(0)
    next_offset = wide(-1)
    while True:
        if position + MAGIC_POSITION >= end:
            return found, position, CUT_OFF, next_offset
        magic = big_endian(data, position + MAGIC_POSITION, 1)
        length = big_endian(data, position + BATCH_LENGTH_POSITION, 4)
        if length == 0 and magic == 0 and big_endian(data, position, 8) == 0:
            # Room that Kafka has kept for more.
            return found, position, CUT_OFF, next_offset
        if magic < 0 or magic > 2 or length < _LEAST_LENGTHS[magic]:
            return found, position, BAD_NO_BATCH, next_offset
        if magic < 2 or position + HEADER_SIZE_BYTES > end:
            return found, position, LEGACY if magic < 2 else CUT_OFF, next_offset
        following = position + LOG_OVERHEAD_BYTES + length
        base_offset = big_endian(data, position, 8)
        delta = big_endian(data, position + LAST_OFFSET_DELTA_POSITION, 4)
        if base_offset < 0 or delta < 0 or base_offset > _LARGEST - 1 - delta:
            return found, position, BAD_NEGATIVE, next_offset
        if base_offset >= end_offset:
            return found, position, DONE, next_offset
        if following > end:
            return found, position, CUT_OFF, next_offset
        if base_offset + delta >= first_offset:
            if found == len(table) or records >= most_records:
                return found, position, FULL, next_offset
            bits = wide(data[position + ATTRIBUTE_BITS_POSITION])
            is_kept = 0 if bits & CONTROL_BIT else 1
            if asks_outcomes and is_kept and bits & TRANSACTIONAL_BIT:
                if not is_decided:
                    return found, position, UNDECIDED, next_offset
                if _is_aborted(aborted, big_endian(data, position + PRODUCER_POSITION, 8), base_offset):
                    is_kept = 0
            count = big_endian(data, position + COUNT_POSITION, 4)
            if count < 0:
                return found, position, BAD_NEGATIVE, next_offset
            _fill(data, position, following, is_kept, table, found)
            found += 1
            records += count if is_kept else 0
        position = following
        next_offset = base_offset + delta + 1
        if next_offset >= end_offset:
            return found, position, DONE, next_offset


@compiled
def find_steps(data: Array, position: int, end: int, table: Array) -> tuple[int, int, int, int]:
    """Walk the batches, and note in `table` who wrote in a transaction, and how transactions ended.

    (how many, where the walk ended, why, the offset behind the last batch or -1), as `find_batches`.
    """
    found = 0
    next_offset = wide(-1)
    while position + MAGIC_POSITION < end:
        magic = big_endian(data, position + MAGIC_POSITION, 1)
        length = big_endian(data, position + BATCH_LENGTH_POSITION, 4)
        if length == 0 and magic == 0 and big_endian(data, position, 8) == 0:
            # Room that Kafka has kept for more.
            return found, position, CUT_OFF, next_offset
        if magic < 0 or magic > 2 or length < _LEAST_LENGTHS[magic]:
            return found, position, BAD_NO_BATCH, next_offset
        following = position + LOG_OVERHEAD_BYTES + length
        base_offset = big_endian(data, position, 8)
        if following > end:
            break
        delta = big_endian(data, position + LAST_OFFSET_DELTA_POSITION, 4) if magic == 2 else 0
        if base_offset < 0 or delta < 0 or base_offset > _LARGEST - 1 - delta:
            return found, position, BAD_NEGATIVE, next_offset
        bits = wide(data[position + ATTRIBUTE_BITS_POSITION]) if magic == 2 else 0
        if bits & (TRANSACTIONAL_BIT | CONTROL_BIT):
            if found == len(table):
                return found, position, FULL, next_offset
            producer_id = big_endian(data, position + PRODUCER_POSITION, 8)
            step = _marker(data, position + HEADER_SIZE_BYTES, following) if bits & CONTROL_BIT else WRITTEN
            if step < 0:
                return found, position, step, next_offset
            is_more = step == WRITTEN and found and table[found - 1, STEP] == WRITTEN
            if step <= WRITTEN and not (is_more and table[found - 1, PRODUCER] == producer_id):
                table[found, PRODUCER] = producer_id
                table[found, OFFSET] = base_offset
                table[found, STEP] = step
                found += 1
        position = following
        next_offset = base_offset + delta + 1
    return found, position, CUT_OFF, next_offset


@compiled
def _marker(data: Array, position: int, end: int) -> int:
    """How a transaction ended, by the first record of a control batch; above WRITTEN: it is none of that."""
    if position == end:
        return WRITTEN + 1
    _, position = varint(data, position, end)
    if position < 0 or position >= end:
        return BAD_FIELD
    _, position = varlong(data, position + 1, end)
    if position < 0:
        return BAD_FIELD
    _, position = varint(data, position, end)
    if position < 0:
        return BAD_FIELD
    size, position = varint(data, position, end)
    if position < 0:
        return BAD_FIELD
    if size & 1 or size >> 1 < 4:
        return WRITTEN + 1
    if position + 4 > end:
        return BAD_FIELD
    kind = big_endian(data, position + 2, 2)
    return kind if kind in (ABORTED, COMMITTED) else WRITTEN + 1
