"""A schema registry's wire format: a zero byte, four bytes of schema id, in Protobuf the message's place, the value."""

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kavka.pipeline.schemas.errors import UnfitValueError

HEADER_SIZE_BYTES: Final = 5
_MAX_INDEXES: Final = 64
_NOT_FRAMED: Final = "no schema id: the value does not begin with a zero byte and four bytes of an id from 1 on"


class Framed(NamedTuple):
    """Values by the id of the schema that they were written with."""

    rows_of: dict[int, "np.ndarray[tuple[int], np.dtype[np.int64]]"]
    reasons: dict[int, str]


def framed(values: pa.Array) -> Framed:
    """Which rows of a binary array have which schema id. Rows without a value are in neither."""
    sizes = pc.fill_null(pc.binary_length(values), -1).to_numpy(zero_copy_only=False)
    whole = np.flatnonzero(sizes >= HEADER_SIZE_BYTES)
    reasons = dict.fromkeys(np.flatnonzero((sizes >= 0) & (sizes < HEADER_SIZE_BYTES)).tolist(), _NOT_FRAMED)
    if not len(whole):
        return Framed({}, reasons)
    heads = pc.binary_slice(values.take(pa.array(whole)), 0, HEADER_SIZE_BYTES).cast(pa.binary(HEADER_SIZE_BYTES))
    start = heads.offset * HEADER_SIZE_BYTES
    head = np.frombuffer(heads.buffers()[1], np.uint8)[start : start + len(whole) * HEADER_SIZE_BYTES].reshape(-1, 5)
    ids = np.ascontiguousarray(head[:, 1:]).view(">i4").ravel()
    # Registries count from 1.
    is_framed = (head[:, 0] == 0) & (ids > 0)
    reasons |= dict.fromkeys(whole[~is_framed].tolist(), _NOT_FRAMED)
    rows, ids = whole[is_framed], ids[is_framed]
    order = np.argsort(ids, kind="stable")
    found, begins = np.unique(ids[order], return_index=True)
    groups = np.split(rows[order], begins[1:])
    return Framed({int(each): group for each, group in zip(found, groups, strict=False)}, reasons)


def message_indexes(value: bytes, position: int = HEADER_SIZE_BYTES) -> tuple[tuple[int, ...], int]:
    """Protobuf's message as places in its file, outermost first, and where the message's bytes begin.

    A zero stands for the first message, as Confluent's serializers write it. Raises UnfitValueError.
    """
    count, position = _zigzag(value, position)
    if count == 0:
        return (0,), position
    if not 0 < count <= _MAX_INDEXES:
        raise UnfitValueError(f"the message's place has {count} numbers")
    indexes = []
    for _ in range(count):
        index, position = _zigzag(value, position)
        if index < 0:
            raise UnfitValueError("the message's place is negative")
        indexes.append(index)
    return tuple(indexes), position


def _zigzag(value: bytes, position: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 35, 7):
        if position >= len(value):
            raise UnfitValueError("the value ends within the message's place")
        byte = value[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position
    raise UnfitValueError("the message's place is longer than a number can be")
