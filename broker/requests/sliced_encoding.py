"""Encoding one long answer in short slices: the encoder joins thousands of pieces in one call, which holds everything
up.

The array of the answer is encoded a few items at a time, each time in a whole answer of which the array's bytes are cut
out. Where they begin is found by comparing the answer without items to that with one: the first byte that differs is
the last one of the array's length. Nothing of a message's layout is known here.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from kavka.broker.requests.slices import in_slices
from kavka.protocol.codec import encode
from kavka.protocol.schema import Response
from kavka.protocol.varint import varint_bytes

CHUNK_ITEMS: Final = 8
"""So few that making and encoding them is a fraction of a slice, and that their number takes one byte."""

S = TypeVar("S")
T = TypeVar("T")


def encode_in_slices(
    response: Response, field: str, sources: Sequence[S], make: Callable[[S], T], version: int, *, flexible: bool
) -> bytes:
    """`response` with `[make(source) for source in sources]` in its array `field`, encoded.

    `flexible`: whether that version has compact arrays. Raises EncodeError.
    """

    def encoded(items: list[T]) -> bytes:
        setattr(response, field, items)
        return encode(response, version)

    empty = encoded([])
    if not sources:
        return empty
    start = _first_difference(empty, encoded([make(sources[0])])) + 1
    tail_size = len(empty) - start
    length = varint_bytes(len(sources) + 1) if flexible else struct.pack(">i", len(sources))
    pieces = [empty[: start - (1 if flexible else 4)], length]
    for first in in_slices(range(0, len(sources), CHUNK_ITEMS)):
        chunk = encoded([make(source) for source in sources[first : first + CHUNK_ITEMS]])
        pieces.append(chunk[start : len(chunk) - tail_size])
    pieces.append(empty[start:])
    return b"".join(pieces)


def _first_difference(one: bytes, other: bytes) -> int:
    return next(index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
