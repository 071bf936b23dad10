"""Varints of many records at once, as columns: each call reads one of every record."""

from typing import Final

import numpy as np
import numpy.typing as npt

from kavka.protocol.records.errors import CorruptRecordsError
from kavka.protocol.records.record_lengths import Bytes, Flags, Integers

_MORE: Final = 0x80


def behind_lengths(view: Bytes, starts: Integers, ends: Integers) -> Integers:
    """Where records go on behind their lengths, as these were found to lead from one to the next.

    Raises CorruptRecordsError for lengths that do not.
    """
    first = view.take(starts, mode="clip")
    # The lowest bit is the sign.
    if len(first) and not (first & 1).any():
        if first.max() < _MORE:
            return starts + 1
        if first.min() >= _MORE and view.take(starts + 1, mode="clip").max() < _MORE:
            return starts + 2
    length, position = varints(view, starts, 5)
    require(position + zigzag(length) == ends, "lengths that don't add up")
    return position


def varints(view: Bytes, positions: Integers, most_bytes: int) -> tuple[npt.NDArray[np.uint64], Integers]:
    """(the unsigned values of the varints at `positions`, where they end)"""
    byte = view.take(positions, mode="clip")
    if not len(byte) or byte.max() < _MORE:
        return byte.astype(np.uint64), positions + 1
    value = (byte & 0x7F).astype(np.uint64)
    position = positions + 1
    more = np.flatnonzero(byte & 0x80)
    shift = 7
    while len(more):
        if shift >= 7 * most_bytes:
            raise CorruptRecordsError("a varint is too long")
        # Mostly all of a kind, or hardly any.
        some = slice(None) if len(more) == len(value) else more
        byte = view.take(position[some], mode="clip")
        value[some] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
        position[some] += 1
        if most_bytes == 10 and shift == 63 and (byte > 1).any():
            raise CorruptRecordsError("a varint of more than 64 bits")
        more = more[byte >= 0x80]
        shift += 7
    if most_bytes == 5 and shift > 28 and (value > 0xFFFFFFFF).any():
        raise CorruptRecordsError("a varint of more than 32 bits")
    return value, position


def zigzag(value: npt.NDArray[np.uint64]) -> Integers:
    """The signed values."""
    return (value >> np.uint64(1)).view(np.int64) ^ -(value & np.uint64(1)).view(np.int64)


def sizes(view: Bytes, positions: Integers) -> tuple[Integers, Integers]:
    """(sizes of nullable fields, -1 for null; where their bytes start)"""
    value, start = varints(view, positions, 5)
    size = (value >> np.uint64(1)).view(np.int64)
    size[(value & np.uint64(1)) != 0] = -1
    return size, start


def require(holds: Flags, what: str) -> None:
    """Raises CorruptRecordsError for the first that it does not hold for."""
    if not holds.all():
        raise CorruptRecordsError(f"record {int(np.argmin(holds))} of a stretch has {what}")
