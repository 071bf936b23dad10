"""xxHash32 of short inputs, for the header checksum of lz4 frames (at most 18 bytes; seed 0)."""

from typing import Final

_PRIMES: Final = (2654435761, 2246822519, 3266489917, 668265263, 374761393)
_MASK: Final = 0xFFFFFFFF


def xxh32(data: bytes) -> int:
    """The hash as unsigned 32-bit number."""
    prime1, prime2, prime3, prime4, prime5 = _PRIMES
    size = len(data)
    position = 0
    if size < 16:
        total = prime5
    else:
        lanes = [(prime1 + prime2) & _MASK, prime2, 0, -prime1 & _MASK]
        while position <= size - 16:
            for lane in range(4):
                word = int.from_bytes(data[position : position + 4], "little")
                lanes[lane] = _rotate(lanes[lane] + word * prime2, 13) * prime1 & _MASK
                position += 4
        total = sum(_rotate(value, turn) for value, turn in zip(lanes, (1, 7, 12, 18), strict=True))
    total = (total + size) & _MASK
    while position <= size - 4:
        word = int.from_bytes(data[position : position + 4], "little")
        total = _rotate(total + word * prime3, 17) * prime4 & _MASK
        position += 4
    for byte in data[position:]:
        total = _rotate(total + byte * prime5, 11) * prime1 & _MASK
    total = (total ^ total >> 15) * prime2 & _MASK
    total = (total ^ total >> 13) * prime3 & _MASK
    return total ^ total >> 16


def _rotate(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> (32 - bits)) & _MASK
