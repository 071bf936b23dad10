"""Avro's bytes to numbers: the loop over values and instructions, compiled by numba. It checks every byte it reads."""

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import numba
import numpy as np

from kavka.pipeline.schemas.avro.program import Op

_Function = TypeVar("_Function", bound=Callable[..., Any])

MAX_FREE_ITEMS: Final = 1 << 16
"""Items of no bytes that a value may have. Others are bounded by its length."""

TRUNCATED, TRAILING, RANGE, CHOICE, TRUTH, LENGTH, ITEMS = range(1, 8)
FAILURES: Final = {
    TRUNCATED: "the value ends within it",
    TRAILING: "bytes follow the value's end",
    RANGE: "the number is out of range",
    CHOICE: "no such symbol or branch",
    TRUTH: "neither true nor false",
    LENGTH: "an impossible length",
    ITEMS: f"more than {MAX_FREE_ITEMS} empty items",
}
_LOWEST_INT: Final = -(1 << 31)
_HIGHEST_INT: Final = (1 << 31) - 1
_END, _BOOLEAN, _INT, _LONG, _BITS, _BYTES = (
    int(each) for each in (Op.END, Op.BOOLEAN, Op.INT, Op.LONG, Op.BITS, Op.BYTES)
)
_FIXED, _CHOICE, _UNION, _JUMP, _REPEAT, _NEXT = (
    int(each) for each in (Op.FIXED, Op.CHOICE, Op.UNION, Op.JUMP, Op.REPEAT, Op.NEXT)
)


def _compiled(function: _Function) -> _Function:
    """By numba, kept on disk where it finds a place for that."""
    try:
        return cast(_Function, numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:
        return cast(_Function, numba.njit(nogil=True)(function))


@_compiled
def _long(data: Any, position: int, end: int) -> Any:
    """(number, where it ends), or a position of -1 if it is cut off, of -2 if it is no 64-bit number."""
    number = np.uint64(0)
    shift = np.uint64(0)
    for count in range(10):
        if position >= end:
            return np.int64(0), np.int64(-1)
        byte = np.uint64(data[position])
        position += 1
        if count == 9 and byte > np.uint64(1):
            return np.int64(0), np.int64(-2)
        number |= (byte & np.uint64(0x7F)) << shift
        if byte < np.uint64(0x80):
            sign = np.int64(number & np.uint64(1))
            return np.int64(number >> np.uint64(1)) ^ -sign, np.int64(position)
        shift += np.uint64(7)
    return np.int64(0), np.int64(-2)


@_compiled
def _block(data: Any, position: int, end: int) -> Any:
    """(items, where they begin), positions as `_long`'s, or -3 for a length that cannot be."""
    count, position = _long(data, position, end)
    if position < 0 or count >= 0:
        return count, position
    if count == np.int64(-(2**63)):
        return count, np.int64(-3)
    size, position = _long(data, position, end)
    if position >= 0 and (size < 0 or size > end - position):
        return count, np.int64(-3)
    return -count, position


@_compiled
def _next_item(data: Any, position: int, end: int, stack: Any, depth: int, free: int) -> Any:
    """(where the next item begins, empty items so far); a failure below 0 in the place of the position.

    `stack` has, for each array or map that is open: items left in the block, items so far, where the last one began.
    """
    if position == stack[2, depth]:
        free += 1
        if free > MAX_FREE_ITEMS:
            return np.int64(-ITEMS), free
    if stack[0, depth] == 0:
        count, position = _block(data, position, end)
        if position < 0:
            return np.int64(-TRUNCATED if position == -1 else -LENGTH), free
        stack[0, depth] = count
    stack[2, depth] = position
    return position, free


@_compiled
def _number(data: Any, position: int, end: int, op: int, argument: int) -> Any:
    """(what the instruction reads, what comes after the number); a failure below 0 in the place of the position."""
    if op in (_BITS, _FIXED):
        if end - position < argument:
            return np.int64(0), np.int64(-TRUNCATED)
        if op == _FIXED:
            return np.int64(position), np.int64(position + argument)
        bits = np.uint64(0)
        for place in range(argument):
            bits |= np.uint64(data[position + place]) << np.uint64(8 * place)
        return np.int64(bits), np.int64(position + argument)
    if op == _BOOLEAN:
        if position >= end:
            return np.int64(0), np.int64(-TRUNCATED)
        return np.int64(data[position]), np.int64(position + 1 if data[position] < 2 else -TRUTH)
    number, position = _long(data, position, end)
    if position < 0:
        return number, np.int64(-TRUNCATED if position == -1 else -RANGE)
    if op == _INT and (number < _LOWEST_INT or number > _HIGHEST_INT):
        return number, np.int64(-RANGE)
    if op == _BYTES and (number < 0 or number > end - position):
        return number, np.int64(-LENGTH if number < 0 else -TRUNCATED)
    if op in (_CHOICE, _UNION) and (number < 0 or number >= argument):
        return number, np.int64(-CHOICE)
    return number, position


@_compiled
def _value(
    data: Any, position: int, end: int, rows: Any, jumps: Any, stack: Any, cursors: Any, out: Any, writes: bool
) -> Any:
    """Runs the program for one value: 0, or the failure and 16 times the instruction."""
    at = depth = free = 0
    while True:
        op, stream, argument = rows[at, 0], rows[at, 1], rows[at, 2]
        if op == _END:
            return 0 if position == end else TRAILING + 16 * at
        if op == _JUMP:
            at = rows[at, 3]
            continue
        if op in (_REPEAT, _NEXT):
            if op == _REPEAT:
                depth += 1
                stack[0, depth] = stack[1, depth] = 0
                stack[2, depth] = -1
            else:
                stack[1, depth] += 1
                stack[0, depth] -= 1
            position, free = _next_item(data, position, end, stack, depth, free)
            if position < 0:
                return -position + 16 * at
            if stack[0, depth] > 0:
                at = argument
                continue
            number = stack[1, depth]
            depth -= 1
            at = rows[at, 3]
        else:
            number, position = _number(data, position, end, op, argument)
            if position < 0:
                return -position + 16 * at
            if op == _BYTES:
                if writes:
                    out[cursors[stream + 1]] = number
                cursors[stream + 1] += 1
                position += number
                number = position - number
            at = jumps[rows[at, 3] + number] if op == _UNION else at + 1
        if writes:
            out[cursors[stream]] = number
        cursors[stream] += 1


@_compiled
def walk(
    data: Any, begins: Any, ends: Any, rows: Any, jumps: Any, cursors: Any, out: Any, writes: bool, failed: Any
) -> None:
    """Runs the program for each value. First with `writes` False: then it counts in `cursors` what streams will hold.

    `failed` gets, for a value that does not fit, the failure and 16 times the instruction; such a value leaves no trace
    in the cursors, and is left out the second time. Then `cursors` says where in `out` each stream begins.
    """
    stack = np.zeros((3, rows.shape[0] + 1), np.int64)
    kept = cursors.copy()
    for row in range(begins.shape[0]):
        if failed[row] != 0:
            continue
        kept[:] = cursors
        failed[row] = _value(data, begins[row], ends[row], rows, jumps, stack, cursors, out, writes)
        if failed[row] != 0:
            cursors[:] = kept
