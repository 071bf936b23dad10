"""Records' headers as an Arrow column: a list of (key, value) for each record, null for one without any."""

from typing import Any, Final

import numpy as np
import pyarrow as pa

from kavka.pipeline.arrow.record_kernels import count_headers, find_headers
from kavka.pipeline.arrow.views import fields_of, new_bits, new_views
from kavka.pipeline.arrow.walking import REASONS
from kavka.protocol.records.errors import CorruptRecordsError
from kavka.protocol.records.record_lengths import Bytes, Integers

HEADER: Final = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
HEADERS: Final = pa.list_(HEADER)


def headers(body: Bytes, starts: Integers, ends: Integers) -> Any:
    """The headers between the positions. What is no UTF-8 in a key reads as U+FFFD, as in Java.

    Raises CorruptRecordsError.
    """
    count = len(starts)
    firsts = np.empty(count + 1, np.int64)
    bits = new_bits(count)
    wrong = count_headers(body, starts, ends, firsts, bits)
    if wrong < 0:
        raise CorruptRecordsError(REASONS[-wrong])
    total = int(firsts[-1])
    if not total:
        return pa.nulls(count, HEADERS)
    keys, values, value_bits = new_views(total), new_views(total), new_bits(total)
    find_headers(body, starts, ends, keys, values, value_bits)
    pairs = [_texts(fields_of(body, keys, None, total)), fields_of(body, values, value_bits, total)]
    every = pa.StructArray.from_arrays(pairs, fields=list(HEADER))
    offsets = pa.py_buffer(firsts.astype(np.int32))
    return pa.Array.from_buffers(HEADERS, count, [pa.py_buffer(bits), offsets], children=[every])


def _texts(keys: Any) -> Any:
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([key.decode("utf-8", "replace") for key in keys.to_pylist()], pa.string())
