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
from kavka.pipeline.arrow.cutting import cut
from kavka.pipeline.arrow.headers import HEADERS, headers
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

_LARGEST_MS: Final = ((1 << 63) - 1) // 1000


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


def microseconds(timestamps_ms: Integers) -> Any:
    """Milliseconds since 1970 as Arrow's timestamps."""
    within = np.clip(timestamps_ms, -_LARGEST_MS, _LARGEST_MS)
    return pa.array(within * 1000, pa.timestamp("us", "UTC"))


_MAKERS: Final[dict[str, Callable[[RecordColumns], Any]]] = {
    "key": lambda columns: cut(columns.body, columns.key_starts, columns.key_sizes),
    "value": lambda columns: cut(columns.body, columns.value_starts, columns.value_sizes),
    "topic": lambda columns: pa.repeat(pa.scalar(columns.topic, pa.string()), len(columns)),
    "partition": lambda columns: pa.repeat(pa.scalar(columns.partition, pa.int32()), len(columns)),
    "offset": lambda columns: pa.array(columns.offsets, pa.int64()),
    "timestamp": lambda columns: microseconds(columns.timestamps_ms),
    "timestampType": lambda columns: pa.repeat(pa.scalar(int(columns.timestamp_type), pa.int32()), len(columns)),
    "headers": lambda columns: (
        headers(columns.body, columns.header_starts, columns.ends)
        if columns.has_headers
        else pa.nulls(len(columns), HEADERS)
    ),
}
