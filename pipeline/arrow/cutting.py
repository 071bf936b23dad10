"""Byte fields cut out of the bytes that records lie in: found by position and length, copied once, by pyarrow."""

from typing import Any, Final

import numpy as np
import pyarrow as pa

from kavka.protocol.records.record_lengths import Integers

_OFFSET_LIMIT: Final = 1 << 31
"""Arrow's plain offsets go so far."""


def cut(body: bytes | memoryview, starts: Integers, sizes: Integers) -> Any:
    """A binary array of the fields; a size of -1 stands for null. The fields may overlap only where they are empty.

    What lies between two fields counts as a field too: so the offsets of one array over `body` hold all, and what is
    wanted of it is taken. Raises pyarrow.ArrowInvalid where all together have 2 GiB or more.
    """
    count = len(starts)
    if not count:
        return pa.array([], pa.binary())
    ends = starts + np.maximum(sizes, 0)
    wanted = None
    if (starts[1:] < ends[:-1]).any():
        # Some records were unpacked elsewhere: the array goes by position, and the taking by number.
        order = np.lexsort((ends, starts))
        starts, ends = starts[order], ends[order]
        wanted = np.empty(count, np.int64)
        wanted[order] = np.arange(0, 2 * count, 2)
    large = int(ends[-1]) >= _OFFSET_LIMIT
    offsets = np.empty(2 * count, np.int64 if large else np.int32)
    offsets[::2], offsets[1::2] = starts, ends
    kind = pa.large_binary() if large else pa.binary()
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(body)]
    every = pa.Array.from_buffers(kind, 2 * count - 1, buffers)
    taken = every.take(pa.array(np.arange(0, 2 * count, 2) if wanted is None else wanted, mask=sizes < 0))
    return taken.cast(pa.binary()) if large else taken
