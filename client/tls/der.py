"""Elements of DER, in which certificates, keys and stores of them are written: tag, length, content."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

INTEGER: Final = 0x02
OCTETS: Final = 0x04
OBJECT_IDENTIFIER: Final = 0x06
SEQUENCE: Final = 0x30
SET: Final = 0x31


def element(data: bytes) -> tuple[int, bytes, bytes]:
    """(tag, content, what follows) of the element at the start. Raises ValueError."""
    if len(data) < 2:
        raise ValueError("DER that is cut short")
    size, begin = data[1], 2
    if size & 0x80:
        begin += size & 0x7F
        if begin == 2:
            raise ValueError("a length that is told at the end, which DER has not")
        size = int.from_bytes(data[2:begin])
    end = begin + size
    if end > len(data):
        raise ValueError("DER that is cut short")
    return data[0], data[begin:end], data[end:]


def elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(tag, content) of each element. Raises ValueError."""
    while data:
        tag, content, data = element(data)
        yield tag, content


def take(data: bytes, tag: int) -> tuple[bytes, bytes]:
    """The content of the element at the start, and what follows. Raises ValueError where it has another tag."""
    found, content, rest = element(data)
    if found != tag:
        raise ValueError(f"an element with the tag {found:#x}, where one with {tag:#x} belongs")
    return content, rest
