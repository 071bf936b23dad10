"""Byte fields that the kernels found, as Arrow arrays of their own: copied once, by pyarrow."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kavka.protocol.records.record_lengths import Bytes

VIEW_WORDS: Final = 4
_MOST_BYTES: Final = (1 << 31) - 1
Views = npt.NDArray[np.int32]


def bytes_of(body: bytes | bytearray | memoryview) -> Bytes:
    """The array that kernels read: never to be written through, so that they are compiled for one kind.

    Raises ValueError for 2 GiB or more, beyond which no view can point.
    """
    if len(body) > _MOST_BYTES:
        raise ValueError(f"{len(body)} bytes at once are too many")
    view = np.frombuffer(body, np.uint8)
    view.flags.writeable = False
    return view


def new_views(count: int) -> Views:
    """Room for so many fields."""
    return np.empty((count, VIEW_WORDS), np.int32)


def new_bits(count: int) -> Bytes:
    """Room for so many flags, none of them set."""
    return np.zeros((count + 7) // 8, np.uint8)


def fields_of(body: Bytes, views: Views, bits: Bytes | None, count: int) -> Any:
    """A binary array of the first `count` fields, null where `bits` are not set.

    Raises pyarrow.ArrowInvalid where they are 2 GiB or more together.
    """
    if not count:
        return pa.array([], pa.binary())
    buffers = [None if bits is None else pa.py_buffer(bits), pa.py_buffer(views), pa.py_buffer(body)]
    return pa.Array.from_buffers(pa.binary_view(), count, buffers).cast(pa.binary())
