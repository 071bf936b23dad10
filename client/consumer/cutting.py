"""Keys and values cut out of what records lie in: one C loop for those of one form, slices for the others.

Records that a program writes are often of one form: their keys and values have the same sizes as those before, and lie
at the same distance from the record's end. What follows one another so is taken apart as an array of structures.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from kavka.protocol.records.record_lengths import Integers

Cut = list[bytes | None]
Body = bytes | memoryview

COPY_BYTES: Final = 64 * 1024
LARGE_RECORD_BYTES: Final = 4096
"""Of records that are larger on average, each field is copied by itself."""
WORTH_A_RUN: Final = 6
"""Where there are fewer records of one form in a row, on average, slices cost less."""


class Places(NamedTuple):
    """Where the fields of some records lie, in their order; a size of -1 stands for none."""

    key_starts: Integers
    key_sizes: Integers
    value_starts: Integers
    value_sizes: Integers
    ends: Integers
    """Of the records."""


def keys_and_values(body: Body, starts: Integers | None, places: Places) -> tuple[Cut, Cut]:
    """All of them; None for what there is none of. `starts` are the records', where these are known."""
    count = len(places.ends)
    if starts is not None and count >= WORTH_A_RUN:
        found = _in_runs(body, starts, places)
        if found is not None:
            return found
    keys: Cut = []
    values: Cut = []
    if count:
        key_starts, key_sizes, value_starts, value_sizes, ends = places
        span = int(ends[-1]) - int(key_starts[0])
        for first, end, shift, piece in _pieces(body, count, span, key_starts, ends):
            _slice(keys, piece, key_starts[first:end] - shift, key_sizes[first:end])
            _slice(values, piece, value_starts[first:end] - shift, value_sizes[first:end])
    return keys, values


def slices(body: Body, starts: Integers, sizes: Integers) -> Cut:
    """One field of some records."""
    found: Cut = []
    count = len(starts)
    if not count:
        return found
    ends = starts + np.maximum(sizes, 0)
    span = int(ends[-1]) - int(starts[0])
    for first, end, shift, piece in _pieces(body, count, span, starts, ends):
        _slice(found, piece, starts[first:end] - shift, sizes[first:end])
    return found


def _in_runs(body: Body, starts: Integers, places: Places) -> tuple[Cut, Cut] | None:
    """All, run by run; None where that is not worth it, or some have keys, or values, and others do not."""
    key_starts, key_sizes, value_starts, value_sizes, ends = places
    count = len(ends)
    sizes = ends - starts
    # Sizes and distances have 31 bits: two of them fit into a number, whatever they are.
    keys_at = (key_starts - starts << 32) + key_sizes
    values_at = (value_starts - starts << 32) + value_sizes
    breaks = (keys_at[1:] != keys_at[:-1]) | (values_at[1:] != values_at[:-1])
    breaks |= (sizes[1:] != sizes[:-1]) | (starts[1:] != ends[:-1])
    last = np.append(breaks.nonzero()[0], count - 1)
    if len(last) * WORTH_A_RUN > count:
        return None
    forms = list(map(_form, *[column[last].tolist() for column in (sizes, keys_at, values_at)]))
    kinds = {form.fields for form in forms}
    if len(kinds) > 1:
        return None
    stops = ends[last].tolist()
    begins = [int(starts[0]), *starts[last[:-1] + 1].tolist()]
    view = memoryview(body)
    rows = chain.from_iterable(
        [form.iter_unpack(view[begin:stop]) for form, begin, stop in zip(forms, begins, stops, strict=True)]
    )
    has_key, has_value = kinds.pop()
    if has_key and has_value:
        keys, values = zip(*rows, strict=True)
        return list(keys), list(values)
    none: Cut = [None] * count
    if has_key or has_value:
        some = [field for (field,) in rows]
        return (some, none) if has_key else (none, some)
    return none, none.copy()


class _Form:
    """How records of a form are taken apart."""

    __slots__ = ("fields", "iter_unpack")

    def __init__(self, size: int, places: Sequence[tuple[int, int]]) -> None:
        """`places` are starts and sizes of key and value, in a record of `size` bytes."""
        self.fields: Final = tuple(length >= 0 for _, length in places)
        parts, position = [], 0
        for start, length in places:
            if length >= 0:
                parts.append(f"{start - position}x{length}s")
                position = start + length
        self.iter_unpack: Final = struct.Struct("".join(parts) + f"{size - position}x").iter_unpack


@lru_cache(maxsize=1024)
def _form(size: int, key_at: int, value_at: int) -> _Form:
    """By numbers as `_in_runs` makes them."""
    places = []
    for at in (key_at, value_at):
        length = (at + 1 & 0xFFFFFFFF) - 1
        places.append((at - length >> 32, length))
    return _Form(size, places)


def _pieces(body: Body, count: int, span: int, starts: Integers, ends: Integers) -> list[tuple[int, int, int, Body]]:
    """(first record, end, where the piece begins, the piece): copying some at once costs less than views of each."""
    if isinstance(body, bytes) or span > LARGE_RECORD_BYTES * count:
        return [(0, count, 0, body)]
    step = max(count * COPY_BYTES // max(span, 1), 1)
    found: list[tuple[int, int, int, Body]] = []
    for first in range(0, count, step):
        end = min(first + step, count)
        begin = int(starts[first])
        found.append((first, end, begin, bytes(body[begin : int(ends[end - 1])])))
    return found


def _slice(into: Cut, body: Body, starts: Integers, sizes: Integers) -> None:
    least = int(sizes.min())
    if least < 0 and int(sizes.max()) < 0:
        into += [None] * len(sizes)
        return
    before = len(into)
    places = zip(starts.tolist(), (starts + sizes).tolist(), strict=True)
    # Cheaper than the same with map: no slice objects are made.
    if isinstance(body, bytes):
        into += [body[start:end] for start, end in places]
    else:
        into += [bytes(body[start:end]) for start, end in places]
    if least < 0:
        for number in (sizes < 0).nonzero()[0].tolist():
            into[before + number] = None
