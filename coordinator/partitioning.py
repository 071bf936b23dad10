"""Which partition of an internal topic a group or a transactional id belongs to: Java's hash of its name."""

import struct
from functools import lru_cache
from typing import Final

REMEMBERED_NAMES: Final = 2048
LONGEST_REMEMBERED: Final = 255
"""Longer names than these are hashed each time: what is remembered of hostile ones has to be bounded, too."""


def partition_for(key: str, partition_count: int) -> int:
    """`abs(hashCode) % partition_count`, where the abs of the smallest int is 0 (Kafka's Utils.abs)."""
    hashed = _remembered_hash(key) if len(key) <= LONGEST_REMEMBERED else java_hash(key)
    return 0 if hashed == _MIN_I32 else abs(hashed) % partition_count


def java_hash(text: str) -> int:
    """String.hashCode, as a signed 32-bit integer: over UTF-16 units, so that a bird beyond the BMP counts twice."""
    hashed = 0
    if text.isascii():
        for unit in text.encode():
            hashed = (31 * hashed + unit) & 0xFFFFFFFF
    else:
        encoded = text.encode("utf-16-be", "surrogatepass")
        for unit in struct.unpack(f">{len(encoded) // 2}H", encoded):
            hashed = (31 * hashed + unit) & 0xFFFFFFFF
    return hashed - 0x1_0000_0000 if hashed & 0x8000_0000 else hashed


# The same groups ask again and again, and each character costs 50 ns.
_remembered_hash: Final = lru_cache(REMEMBERED_NAMES)(java_hash)
_MIN_I32: Final = -0x8000_0000
