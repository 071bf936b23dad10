"""The rows of Spark's own Kafka source, as Arrow record batches.

    key, value      binary                      null where the record has none
    topic           string
    partition       int
    offset          long
    timestamp       timestamp, microseconds     of UTC; a record without one has -1 ms, as in Spark's source
    timestampType   int                         0: set by the producer, 1: by the broker on appending
    headers         array<struct<key: string, value: binary>>   null where the record has none

Sources: KafkaRecordToRowConverter of Spark 4.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kavka.client.consumer.columns import RecordColumns
from kavka.pipeline.arrow.headers import HEADERS, headers
from kavka.pipeline.arrow.record_kernels import LARGEST_MS, find_views
from kavka.pipeline.arrow.views import bytes_of, fields_of, new_bits, new_views
from kavka.protocol.records.record_lengths import Integers

FIELDS: Final = (
    pa.field("key", pa.binary()),
    pa.field("value", pa.binary()),
    pa.field("topic", pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("offset", pa.int64()),
    pa.field("timestamp", pa.timestamp("us", "UTC")),
    pa.field("timestampType", pa.int32()),
    pa.field("headers", HEADERS),
)
"""All columns there are; Spark's source has the last one only where it is asked for."""


def schema(wanted: Iterable[str]) -> Any:
    """The Arrow schema of these columns, in this order. Raises ValueError for a name that is none, or no names."""
    known = {field.name: field for field in FIELDS}
    names = list(wanted)
    if not names:
        raise ValueError("no columns are wanted")
    for name in names:
        if name not in known:
            raise ValueError(f"there is no column {name}; there are {', '.join(known)}")
    return pa.schema([known[name] for name in names])


def record_batch(columns: RecordColumns, wanted: Sequence[str]) -> Any:
    """A pyarrow.RecordBatch of these records, with the columns that are wanted, in that order.

    Keys and values are copied: `columns.body` may be used again afterwards. Timestamps that microseconds can't hold
    are the nearest that they can. Raises ValueError for a name that is no column.
    """
    shape = schema(wanted)
    return pa.RecordBatch.from_arrays([_MAKERS[name](columns) for name in wanted], schema=shape)


def timestamps(times_us: Integers) -> Any:
    """Microseconds since 1970 as Arrow has them; nothing is copied."""
    return pa.Array.from_buffers(pa.timestamp("us", "UTC"), len(times_us), [None, pa.py_buffer(times_us)])


def repeated(value: object, kind: Any, count: int) -> Any:
    """What all records of a partition have."""
    return pa.repeat(pa.scalar(value, kind), count)


def _fields(columns: RecordColumns, starts: Integers, sizes: Integers) -> Any:
    count = len(columns)
    body, views, bits = bytes_of(columns.body), new_views(count), new_bits(count)
    find_views(body, starts, sizes, views, bits)
    return fields_of(body, views, bits, count)


def _headers(columns: RecordColumns) -> Any:
    if not columns.has_headers:
        return pa.nulls(len(columns), HEADERS)
    return headers(bytes_of(columns.body), columns.header_starts, columns.ends)


_MAKERS: Final[dict[str, Callable[[RecordColumns], Any]]] = {
    "key": lambda columns: _fields(columns, columns.key_starts, columns.key_sizes),
    "value": lambda columns: _fields(columns, columns.value_starts, columns.value_sizes),
    "topic": lambda columns: repeated(columns.topic, pa.string(), len(columns)),
    "partition": lambda columns: repeated(columns.partition, pa.int32(), len(columns)),
    "offset": lambda columns: pa.array(columns.offsets, pa.int64()),
    "timestamp": lambda columns: timestamps(np.clip(columns.timestamps_ms, -LARGEST_MS, LARGEST_MS) * 1000),
    "timestampType": lambda columns: repeated(int(columns.timestamp_type), pa.int32(), len(columns)),
    "headers": _headers,
}
