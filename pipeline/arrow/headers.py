"""Records' headers as an Arrow column: a list of (key, value) for each record, null for one without any."""

from typing import Any, Final

import pyarrow as pa

from kavka.protocol.records.record import PackedHeaders
from kavka.protocol.records.record_lengths import Integers

HEADER: Final = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
HEADERS: Final = pa.list_(HEADER)


def headers(body: bytes | memoryview, starts: Integers, ends: Integers) -> Any:
    """The headers that lie between the positions, checked before. What is no UTF-8 in a key is replaced by U+FFFD."""
    rows: list[list[tuple[str, bytes | None]] | None] = []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if not body[start]:
            rows.append(None)
            continue
        packed = PackedHeaders(bytes(body[start:end]))
        rows.append([(_as_java_reads(key), value) for key, value in packed])
    return pa.array(rows, HEADERS)


def _as_java_reads(key: str) -> str:
    """Surrogates stand for what is no UTF-8."""
    return key.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
