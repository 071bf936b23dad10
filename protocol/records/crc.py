"""CRC-32C (Castagnoli), the checksum of v2 batches and of snapshot files.

`crc32c` uses the processor's instruction and releases the GIL on large input; `crcmod` stands in where no wheel fits.
Magic 0 and 1 use plain CRC-32: `zlib.crc32`.
"""

from collections.abc import Callable
from typing import Any


def crcmod_crc32c() -> "Callable[..., int]":
    """The second opinion: the same function from `crcmod`, taking (data, start=0)."""
    import crcmod.predefined

    castagnoli = crcmod.predefined.mkPredefinedCrcFun("crc-32c")

    def crc32c_of(data: "bytes | bytearray | memoryview", start: int = 0) -> int:
        crc: int = castagnoli(data, start)
        return crc

    return crc32c_of


def _fastest() -> "Callable[..., int]":
    try:
        import crc32c as hardware
    except ImportError:
        return crcmod_crc32c()
    found: Any = hardware.crc32c
    chosen: Callable[..., int] = found
    return chosen


crc32c = _fastest()
"""`crc32c(data, start=0)`: pass an earlier result as `start` to go on from there."""
