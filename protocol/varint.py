"""Unsigned varints of the flexible versions (KIP-482): seven bits a byte, lowest first, at most 31 in five bytes."""

from kavka.protocol.errors import DecodeError
from kavka.protocol.schema import Buffer

MAX_VALUE = 0x7FFF_FFFF


def read_varint(data: Buffer, position: int) -> tuple[int, int]:
    """(value, position behind it). Raises IndexError where the data ends, DecodeError if the value exceeds 31 bits."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 28:
            raise DecodeError("a varint is longer than five bytes")
    if value > MAX_VALUE:
        raise DecodeError(f"a varint of {value} exceeds 31 bits")
    return value, position


def varint_bytes(value: int) -> bytes:
    """The varint of a value from 0 to `MAX_VALUE`."""
    if value < 0x80:
        return bytes((value,))
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
