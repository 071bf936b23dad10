"""Where the records of many batches start: each one's length says where the next one is.

That chain can't be cut, but there are many of them: where there are many batches, one record of each is found at a
time, for all at once. A few large batches are walked one after the other, and runs of records of one size in one step.
"""

from array import array
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from kavka.protocol.records.errors import CorruptRecordsError

Integers: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Bytes: TypeAlias = npt.NDArray[np.uint8]

PADDING_BYTES: Final = 16
"""Behind the data, so that eight bytes can be loaded from anywhere inside."""

_LEAST_RECORD_BYTES: Final = 7
"""Length, attributes, two deltas, no key, no value, no headers."""
_NARROW: Final = 40
"""Fewer batches than that cost less one by one."""
_SAME: Final = 8
"""So many records of one size in a row raise the hope for more."""
_WORTH_A_RUN: Final = 64
"""Fewer records than that cost less one by one."""
_ALIKE: Final = 4
"""So many batches of one size and count are worth looking whether their records are alike."""


def find_records(body: bytes | memoryview, starts: Integers, ends: Integers, counts: Integers) -> Integers:
    """The start of each record of all batches, in order.

    A batch's records lie from its start to its end in `body`; they must fill it, or CorruptRecordsError is raised.
    Lengths with other than 1 to 5 bytes are for the caller to refuse.
    """
    if (counts * _LEAST_RECORD_BYTES > ends - starts).any():
        raise CorruptRecordsError("a batch claims more records than it has bytes")
    first = np.cumsum(counts) - counts
    found: Integers = np.empty(int(counts.sum()), np.int64)
    for find in (_find_even, _find_alike):
        if len(counts) >= _ALIKE:
            left = find(body, starts, ends, counts, first, found)
            starts, ends, counts, first = starts[left], ends[left], counts[left], first[left]
    if not len(counts):
        return found
    order = np.argsort(-counts, kind="stable")
    falling = -counts[order]
    # From there on there are few; what one batch claims to have is not to cost anything by itself.
    most = -int(falling[_NARROW - 1 : _NARROW].sum()) + 1
    widths = np.searchsorted(falling, -np.arange(1, min(int(counts.max(initial=0)), most) + 1), side="right").tolist()
    position = starts[order]
    place = first[order]
    view = np.frombuffer(body, np.uint8)
    for step, width in enumerate(widths):
        if width < _NARROW:
            # Writes where they end into the view of `position`.
            _walk_rest(body, found, position[:width], place[:width], counts[order[:width]], step)
            break
        here = position[:width]
        found[place[:width] + step] = here
        position[:width] = here + _sizes_at(view, here)
    if (position != ends[order]).any():
        raise CorruptRecordsError("the records of a batch don't end where it does")
    return found


def _find_even(
    body: bytes | memoryview, starts: Integers, ends: Integers, counts: Integers, first: Integers, found: Integers
) -> Integers:
    """Of batches whose records may all have one size, look whether they have; which are left to find."""
    left = np.ones(len(counts), np.bool_)
    pace, rest = np.divmod(ends - starts, np.maximum(counts, 1))
    view = np.frombuffer(body, np.uint8)
    some = np.flatnonzero((rest == 0) & (counts > 1))
    some = some[_sizes_at(view, starts[some]) == pace[some]]
    if not len(some):
        return np.flatnonzero(left)
    many = counts[some]
    begins = np.cumsum(many) - many
    steps = np.arange(int(many.sum())) - np.repeat(begins, many)
    paces = np.repeat(pace[some], many)
    positions = np.repeat(starts[some], many) + steps * paces
    is_even = np.logical_and.reduceat(_sizes_at(view, positions) == paces, begins)
    if is_even.all():
        found[np.repeat(first[some], many) + steps] = positions
    else:
        kept = np.repeat(is_even, many)
        found[(np.repeat(first[some], many) + steps)[kept]] = positions[kept]
    left[some[is_even]] = False
    return np.flatnonzero(left)


def _find_alike(
    body: bytes | memoryview, starts: Integers, ends: Integers, counts: Integers, first: Integers, found: Integers
) -> Integers:
    """Of batches with equal sizes and counts, expect the lengths of the first one's records; which are left to find.

    Records of one form, at a steady pace, make many such batches: their lengths are looked at all together.
    """
    left = np.ones(len(counts), np.bool_)
    kinds, kind_of, sizes = np.unique((ends - starts << 32) + counts, return_inverse=True, return_counts=True)
    view = np.frombuffer(body, np.uint8)
    for kind in np.flatnonzero(sizes >= _ALIKE).tolist():
        members = np.flatnonzero(kind_of == kind)
        model = members[0]
        count = int(kinds[kind] & 0xFFFFFFFF)
        if not count:
            continue
        pattern, end = _walk(body, int(starts[model]), count)
        if end != ends[model]:
            continue
        lengths = np.diff(pattern, append=end)
        positions = starts[members][:, None] + (pattern - starts[model])
        alike = (_sizes_at(view, positions.reshape(-1)).reshape(positions.shape) == lengths).all(axis=1)
        places = first[members][alike][:, None] + np.arange(count)
        found[places] = positions[alike]
        left[members[alike]] = False
    return np.flatnonzero(left)


def _sizes_at(view: Bytes, positions: Integers) -> Integers:
    """The sizes of the records there, with their lengths; nonsense may lead anywhere."""
    byte = view.take(positions, mode="clip").astype(np.int64)
    size = 1 + (byte >> 1)
    longer = byte >= 0x80
    if not longer.any():
        return size
    if longer.all():
        second = view.take(positions + 1, mode="clip").astype(np.int64)
        if (second < 0x80).all():
            return 2 + ((byte & 0x7F | second << 7) >> 1)
    more = np.flatnonzero(longer)
    value = byte[more] & 0x7F
    at = positions[more]
    for index in range(1, 5):
        byte = view.take(at + index, mode="clip").astype(np.int64)
        value |= (byte & 0x7F) << 7 * index
        size[more] = index + 1 + (value >> 1)
        still = np.flatnonzero(byte & 0x80)
        if not len(still):
            break
        more, value, at = more[still], value[still], at[still]
    return size


def _walk_rest(
    body: bytes | memoryview, found: Integers, positions: Integers, places: Integers, counts: Integers, step: int
) -> None:
    """Find the records from number `step` on, batch by batch; `positions` is where each ends afterwards."""
    for number, (position, place, count) in enumerate(
        zip(positions.tolist(), places.tolist(), counts.tolist(), strict=True)
    ):
        rest, positions[number] = _walk(body, position, count - step)
        found[place + step : place + count] = rest


def _walk(body: bytes | memoryview, position: int, count: int) -> tuple[Integers, int]:
    """(where the next `count` records start, where the last one ends); CorruptRecordsError beyond the body."""
    try:
        return _walk_within(body, position, count)
    except IndexError:
        raise CorruptRecordsError("the records of a batch lead beyond it") from None


def _walk_within(body: bytes | memoryview, position: int, count: int) -> tuple[Integers, int]:
    """As `_walk`; IndexError beyond the body."""
    pieces: list[Integers] = []
    starts = array("q")
    append = starts.append
    limit = len(body)
    left = count
    before = same = 0
    while left:
        append(position)
        left -= 1
        byte = body[position]
        if byte < 0x80:
            size = 1 + (byte >> 1)
        else:
            second = body[position + 1]
            size = 2 + ((byte & 0x7F | second << 7) >> 1) if second < 0x80 else _long_size(body, position)
        position += size
        if size != before:
            before, same = size, 0
        elif (same := same + 1) == _SAME and left > _WORTH_A_RUN:
            run = _run(body, position, size, min(left, (limit - position) // size))
            pieces += (np.frombuffer(starts, np.int64), np.arange(run, dtype=np.int64) * size + position)
            starts = array("q")
            append = starts.append
            position += run * size
            left -= run
            same = 0
    return np.concatenate([*pieces, np.frombuffer(starts, np.int64)]), position


def _run(body: bytes | memoryview, position: int, size: int, most: int) -> int:
    """How many records from `position` on have this size, as their lengths are written."""
    if most <= 0:
        return 0
    view = np.frombuffer(body, np.uint8)
    width = next(index for index in range(5) if body[position - size + index] < 0x80 or index == 4) + 1
    same = np.ones(most, np.bool_)
    for index in range(width):
        same &= view[position + index :: size][:most] == body[position - size + index]
    return most if same.all() else int(np.argmin(same))


def _long_size(body: bytes | memoryview, position: int) -> int:
    """The size of a record whose length takes three bytes or more."""
    value = 0
    for index in range(5):
        byte = body[position + index]
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return index + 1 + (value >> 1)
    return 6
