"""The walks over records and their headers, compiled. They hold each other's rules with `protocol.records.columns` and
`protocol.records.reading`: equal records of equal bytes.

A field is told by a view, as in Arrow: 16 bytes with its length, its first bytes, and where it lies; up to 12 bytes lie
in the view itself.
"""

from typing import Final

import numpy as np

from kavka.pipeline.arrow.compiling import compiled
from kavka.pipeline.arrow.walking import (
    BAD_COUNT,
    BAD_FIELD,
    BAD_FIELDS_END,
    BAD_HEADERS,
    BAD_LENGTH,
    BAD_OFFSET,
    BAD_RECORDS_END,
    BASE_OFFSET,
    BODY_END,
    BODY_START,
    COUNT,
    IS_STAMPED,
    LAST_DELTA,
    TIMESTAMP,
    Array,
    varint,
    varlong,
)

LARGEST_MS: Final = ((1 << 63) - 1) // 1000
"""What microseconds can hold."""

_LEAST_RECORD_BYTES: Final = 7
_INLINE_BYTES: Final = 12


@compiled
def _view(view: Array, body: Array, start: int, size: int) -> None:
    """Fill in one field's view, four words."""
    view[0] = size
    if size > _INLINE_BYTES:
        view[1] = (
            np.int32(body[start])
            | np.int32(body[start + 1]) << 8
            | np.int32(body[start + 2]) << 16
            | np.int32(body[start + 3]) << 24
        )
        view[2] = 0
        view[3] = start
        return
    view[1] = view[2] = view[3] = 0
    for index in range(size):
        view[1 + (index >> 2)] |= np.int32(body[start + index]) << ((index & 3) << 3)


@compiled
def find_records(
    body: Array,
    batches: Array,
    state: Array,
    first_offset: int,
    end_offset: int,
    offsets: Array,
    times_us: Array,
    kinds: Array,
    keys: Array,
    key_bits: Array,
    values: Array,
    value_bits: Array,
    header_starts: Array,
    ends: Array,
) -> int:
    """Note the records of a table of batches within the range, while there is room; how many, or what is wrong.

    `state` is where to go on: batch, record of it, its position in `body`. Behind the last batch, that is all.
    """
    found = 0
    batch, number, position = state[0], state[1], state[2]
    while batch < len(batches):
        row = batches[batch]
        end, count = row[BODY_END], row[COUNT]
        base_offset, last_delta, timestamp, stamped = row[BASE_OFFSET], row[LAST_DELTA], row[TIMESTAMP], row[IS_STAMPED]
        if number == 0:
            position = row[BODY_START]
            if count * _LEAST_RECORD_BYTES > end - position:
                state[0] = batch
                return BAD_COUNT
        while number < count:
            if found == len(offsets):
                state[0], state[1], state[2] = batch, number, position
                return found
            state[0] = batch
            size, position = varint(body, position, end)
            if position < 0:
                return BAD_FIELD
            record_end = position + (size >> 1)
            if size & 1 or record_end > end:
                return BAD_LENGTH
            time_delta, position = varlong(body, position + 1, record_end)
            if position < 0:
                return BAD_FIELD
            delta, position = varint(body, position, record_end)
            if position < 0:
                return BAD_FIELD
            if delta & 1 or delta >> 1 > last_delta:
                return BAD_OFFSET
            size, key = varint(body, position, record_end)
            if key < 0:
                return BAD_FIELD
            key_size = -1 if size & 1 else size >> 1
            if key + max(key_size, 0) >= record_end:
                return BAD_FIELDS_END
            size, value = varint(body, key + max(key_size, 0), record_end)
            if value < 0:
                return BAD_FIELD
            value_size = -1 if size & 1 else size >> 1
            position = value + max(value_size, 0)
            if position >= record_end or (body[position] == 0 and position + 1 != record_end):
                return BAD_FIELDS_END
            number += 1
            offset = base_offset + (delta >> 1)
            if first_offset <= offset < end_offset:
                time_ms = timestamp if stamped else timestamp + time_delta
                offsets[found] = offset
                times_us[found] = min(max(time_ms, -LARGEST_MS), LARGEST_MS) * 1000
                kinds[found] = stamped
                _view(keys[found], body, key, max(key_size, 0))
                _view(values[found], body, value, max(value_size, 0))
                if key_size >= 0:
                    key_bits[found >> 3] |= np.uint8(1 << (found & 7))
                if value_size >= 0:
                    value_bits[found >> 3] |= np.uint8(1 << (found & 7))
                header_starts[found] = position
                ends[found] = record_end
                found += 1
            position = record_end
        if position != end:
            state[0] = batch
            return BAD_RECORDS_END
        batch += 1
        number = 0
    state[0], state[1] = batch, 0
    return found


@compiled
def find_views(body: Array, starts: Array, sizes: Array, views: Array, bits: Array) -> None:
    """The views of fields that were found before; a size of -1 stands for null."""
    for number in range(len(starts)):
        size = sizes[number]
        _view(views[number], body, starts[number], max(size, 0))
        if size >= 0:
            bits[number >> 3] |= np.uint8(1 << (number & 7))


@compiled
def count_headers(body: Array, starts: Array, ends: Array, firsts: Array, bits: Array) -> int:
    """Fill `firsts` with where each record's headers begin among all, one more than records; which have some: `bits`.

    All are checked. What is wrong, or 0.
    """
    total = 0
    for number in range(len(starts)):
        firsts[number] = total
        position, end = starts[number], ends[number]
        count, position = varint(body, position, end)
        if position < 0 or count & 1 or count >> 1 > end - position:
            return BAD_HEADERS
        for _ in range(count >> 1):
            size, position = varint(body, position, end)
            if position < 0 or size & 1 or position + (size >> 1) >= end:
                return BAD_HEADERS
            size, position = varint(body, position + (size >> 1), end)
            if position < 0:
                return BAD_HEADERS
            position += 0 if size & 1 else size >> 1
            if position > end:
                return BAD_HEADERS
        if position != end:
            return BAD_HEADERS
        total += count >> 1
        if count:
            bits[number >> 3] |= np.uint8(1 << (number & 7))
    firsts[len(starts)] = total
    return 0


@compiled
def find_headers(body: Array, starts: Array, ends: Array, keys: Array, values: Array, value_bits: Array) -> None:
    """The views of headers that `count_headers` has checked."""
    found = 0
    for number in range(len(starts)):
        end = ends[number]
        count, position = varint(body, starts[number], end)
        for _ in range(count >> 1):
            size, position = varint(body, position, end)
            _view(keys[found], body, position, size >> 1)
            size, position = varint(body, position + (size >> 1), end)
            _view(values[found], body, position, 0 if size & 1 else size >> 1)
            if not size & 1:
                position += size >> 1
                value_bits[found >> 3] |= np.uint8(1 << (found & 7))
            found += 1
