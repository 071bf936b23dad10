"""Kafka's hash of keys: a record's partition is the same whichever client sent it."""

from collections.abc import Callable
from struct import Struct
from typing import Any, Final

_SEED: Final = 0x9747B28C
_FACTOR: Final = 0x5BD1E995
_MASK: Final = 0xFFFF_FFFF
_TABLED_WORDS: Final = 64


def murmur2(data: bytes) -> int:
    """MurmurHash2 of 32 bits with Kafka's seed, as a number from 0 on; Java's int has the same bits."""
    size = len(data)
    words = size >> 2
    hashed = _SEED ^ size
    unpack = _UNPACK[words] if words < _TABLED_WORDS else Struct(f"<{words}I").unpack_from
    for word in unpack(data):
        word = word * _FACTOR & _MASK
        hashed = (hashed * _FACTOR ^ (word ^ word >> 24) * _FACTOR) & _MASK
    if size & 3:
        hashed = (hashed ^ int.from_bytes(data[words << 2 :], "little")) * _FACTOR & _MASK
    hashed = (hashed ^ hashed >> 13) * _FACTOR & _MASK
    return hashed ^ hashed >> 15


_UNPACK: Final[tuple[Callable[..., tuple[Any, ...]], ...]] = tuple(
    Struct(f"<{words}I").unpack_from for words in range(_TABLED_WORDS)
)
"""By number of words: a format that is known costs no look-up of it."""
