"""The walks over records and their headers, compiled. They hold each other's rules with `protocol.records.columns` and
`protocol.records.reading`: equal records of equal bytes.

A field is told by a view, as in Arrow: 16 bytes with its length, its first bytes, and where it lies; up to 12 bytes lie
in the view itself.
"""

from typing import Any, Final

import numpy as np

from kavka.pipeline.arrow.compiling import compiled, inlined
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
    index,
    varint,
    varlong,
)

LARGEST_MS: Final = ((1 << 63) - 1) // 1000
"""What microseconds can hold."""

_LEAST_RECORD_BYTES: Final = 7
_INLINE_BYTES: Final = 12


@inlined
def _word(body: Array, position: int) -> np.int32:
    """Four bytes, as they lie there."""
    low = np.int32(body[index(position)]) | np.int32(body[index(position + 1)]) << 8
    return low | np.int32(body[index(position + 2)]) << 16 | np.int32(body[index(position + 3)]) << 24


@compiled
def _last_word(body: Array, position: int, size: int) -> np.int32:
    """Up to four bytes, and zeros. As a part of `_note`, it would make a record cost three times as much."""
    if size >= 4:
        return _word(body, position)
    word = np.int32(0)
    for number in range(size):
        word |= np.int32(body[index(position + number)]) << (number << 3)
    return word


@inlined
def _note(views: Array, number: int, body: Array, start: int, size: int) -> None:
    """Fill in one field's view. No slice of `views` is taken: counting its users would cost more than all else."""
    at = index(number)
    views[at, 0] = size
    if size > _INLINE_BYTES:
        views[at, 1] = _word(body, start)
        views[at, 2] = 0
        views[at, 3] = start
    else:
        views[at, 1] = _last_word(body, start, size)
        views[at, 2] = _last_word(body, start + 4, size - 4)
        views[at, 3] = _last_word(body, start + 8, size - 8)


@inlined
def _extent(body: Array, position: int, end: int) -> tuple[int, int]:
    """(where a record goes on behind its length, where it ends; -1: it can't be)"""
    size, position = varint(body, position, end)
    record_end = position + (size >> 1)
    return position, -1 if position < 0 or size & 1 or record_end > end else record_end


@inlined
def _nullable(body: Array, position: int, end: int) -> tuple[int, int]:
    """(where a field begins; -1: it can't be, its size; -1: null)"""
    size, start = varint(body, position, end)
    return start, -1 if size & 1 else size >> 1


@inlined
def _set(bits: Array, number: int, size: int) -> None:
    """The field is none of the nulls, unless its size says so."""
    if size >= 0:
        bits[number >> 3] |= np.uint8(1 << (number & 7))


@compiled
def find_records(body: Array, batches: Array, state: Array, first_offset: int, end_offset: int, room: Any) -> int:
    """Note the records of a table of batches within the range, while there is room; how many, or what is wrong.

    `state` is where to go on: batch, record of it, its position in `body`. Behind the last batch, that is all.
    """
    offsets, times_us, kinds, keys, key_bits, values, value_bits, header_starts, ends = room
    found = 0
    batch, number, position = state[0], state[1], state[2]
    while batch < len(batches):
        state[0] = batch
        end, count = batches[batch, BODY_END], batches[batch, COUNT]
        base_offset, last_delta = batches[batch, BASE_OFFSET], batches[batch, LAST_DELTA]
        timestamp, stamped = batches[batch, TIMESTAMP], batches[batch, IS_STAMPED]
        if number == 0:
            position = batches[batch, BODY_START]
            if count * _LEAST_RECORD_BYTES > end - position:
                return BAD_COUNT
        while number < count:
            if found == len(offsets):
                state[1], state[2] = number, position
                return found
            position, record_end = _extent(body, position, end)
            if record_end < 0:
                return BAD_LENGTH
            time_delta, position = varlong(body, position + 1, record_end)
            if position < 0:
                return BAD_FIELD
            delta, position = varint(body, position, record_end)
            if position < 0 or delta & 1 or delta >> 1 > last_delta:
                return BAD_OFFSET
            key, key_size = _nullable(body, position, record_end)
            if key < 0 or key + max(key_size, 0) >= record_end:
                return BAD_FIELD
            value, value_size = _nullable(body, key + max(key_size, 0), record_end)
            position = value + max(value_size, 0)
            if value < 0 or position >= record_end or (body[index(position)] == 0 and position + 1 != record_end):
                return BAD_FIELDS_END
            number += 1
            offset = base_offset + (delta >> 1)
            if first_offset <= offset < end_offset:
                time_ms = timestamp if stamped else timestamp + time_delta
                at = index(found)
                offsets[at], kinds[at] = offset, stamped
                times_us[at] = min(max(time_ms, -LARGEST_MS), LARGEST_MS) * 1000
                _note(keys, found, body, key, max(key_size, 0))
                _note(values, found, body, value, max(value_size, 0))
                _set(key_bits, found, key_size)
                _set(value_bits, found, value_size)
                header_starts[at], ends[at] = position, record_end
                found += 1
            position = record_end
        if position != end:
            return BAD_RECORDS_END
        batch, number = batch + 1, 0
    state[0], state[1] = batch, 0
    return found


@compiled
def find_views(body: Array, starts: Array, sizes: Array, views: Array, bits: Array) -> None:
    """The views of fields that were found before; a size of -1 stands for null."""
    for number in range(len(starts)):
        size = sizes[number]
        _note(views, number, body, starts[number], max(size, 0))
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
            _note(keys, found, body, position, size >> 1)
            size, position = varint(body, position + (size >> 1), end)
            _note(values, found, body, position, 0 if size & 1 else size >> 1)
            if not size & 1:
                position += size >> 1
                value_bits[found >> 3] |= np.uint8(1 << (found & 7))
            found += 1
