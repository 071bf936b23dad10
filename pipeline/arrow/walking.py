"""What kernels share: numbers read from bytes, compiled; tables that go from one to another; what can be wrong.

Every kernel trusts nothing: a position is compared with its end before a byte is read, for no one else looks. What does
not fit is told by a negative number, which `REASONS` has words for, and nothing behind it is read.

Numba's cache asks only the file of a kernel whether it changed: who changes a function here also touches its callers.
"""

from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np

from kavka.pipeline.arrow.compiling import compiled, inlined

Array = Any
"""Of numpy; numba knows the kinds when a kernel is called first."""

wide: Final = cast(Callable[[Any], int], np.int64)
"""A number as kernels reckon with: a byte as it is would make a product of eight bits."""

index: Final = cast(Callable[[Any], int], np.uint64)
"""A place in an array that is known not to be negative: numba would ask each time, as Python counts from the end."""

# Columns of a table of batches.
POSITION: Final = 0
END: Final = 1
BODY_START: Final = 2
BODY_END: Final = 3
CODEC: Final = 4
BASE_OFFSET: Final = 5
LAST_DELTA: Final = 6
TIMESTAMP: Final = 7
"""The base timestamp, or the only one where the broker stamped the batch."""
IS_STAMPED: Final = 8
COUNT: Final = 9
CRC: Final = 10
IS_KEPT: Final = 11
"""0: a control batch, or one of an aborted transaction."""
BATCH_COLUMNS: Final = 12

# Why a walk over batches ended.
CUT_OFF: Final = 0
"""What is there ends in a batch, or with one."""
FULL: Final = 1
LEGACY: Final = 2
"""A message of an old format comes."""
DONE: Final = 3
"""Nothing of the range is left."""
UNDECIDED: Final = 4
"""A transactional batch comes, and it is not known yet how transactions ended."""

# Columns of a table of transactions' steps.
PRODUCER: Final = 0
OFFSET: Final = 1
STEP: Final = 2
STEP_COLUMNS: Final = 3
ABORTED: Final = 0
COMMITTED: Final = 1
WRITTEN: Final = 2

REASONS: Final = (
    "",
    "no batch: impossible magic or length",
    "a batch claims fewer than no records, or negative offsets",
    "a batch claims more records than it has bytes",
    "a record claims more bytes than are left",
    "a record ends in a field, or a varint is too long",
    "a record has an offset outside its batch",
    "a record's fields do not end where it does",
    "the records of a batch do not end where it does",
    "a record has headers that cannot be",
)
BAD_NO_BATCH: Final = -1
BAD_NEGATIVE: Final = -2
BAD_COUNT: Final = -3
BAD_LENGTH: Final = -4
BAD_FIELD: Final = -5
BAD_OFFSET: Final = -6
BAD_FIELDS_END: Final = -7
BAD_RECORDS_END: Final = -8
BAD_HEADERS: Final = -9

_LARGEST: Final = (1 << 63) - 1
_MOST_U32: Final = 0xFFFFFFFF


@compiled
def big_endian(data: Array, position: int, size: int) -> int:
    """Signed."""
    value = wide(np.int8(data[index(position)]))
    for number in range(1, size):
        value = value << 8 | wide(data[index(position + number)])
    return value


@compiled
def _longer_varint(body: Array, position: int, end: int) -> tuple[int, int]:
    value = wide(0)
    for shift in range(0, 35, 7):
        if position >= end:
            return value, -1
        byte = wide(body[index(position)])
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position if value <= _MOST_U32 else -1
    return value, -1


@compiled
def _longer_varlong(body: Array, position: int, end: int) -> tuple[int, int]:
    value = wide(0)
    for shift in range(0, 70, 7):
        if position >= end:
            return value, -1
        byte = wide(body[index(position)])
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if shift == 63 and byte > 1:
                return value, -1
            return (value >> 1 & _LARGEST) ^ -(value & 1), position
    return value, -1


@inlined
def varint(body: Array, position: int, end: int) -> tuple[int, int]:
    """(unsigned value of up to 32 bits, where it ends; -1: it can't be)"""
    if position + 1 < end:
        # Nearly all have one byte or two.
        first, second = wide(body[index(position)]), wide(body[index(position + 1)])
        if first < 0x80:
            return first, position + 1
        if second < 0x80:
            return first & 0x7F | second << 7, position + 2
    return _longer_varint(body, position, end)


@inlined
def varlong(body: Array, position: int, end: int) -> tuple[int, int]:
    """(signed value of up to 64 bits, where it ends; -1: it can't be)"""
    if position + 1 < end:
        value, second = wide(body[index(position)]), wide(body[index(position + 1)])
        if value < 0x80:
            return value >> 1 ^ -(value & 1), position + 1
        if second < 0x80:
            value = value & 0x7F | second << 7
            return value >> 1 ^ -(value & 1), position + 2
    return _longer_varlong(body, position, end)
