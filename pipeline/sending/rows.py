"""Columns of Arrow as the rows that a producer takes."""

from collections.abc import Iterator

import pyarrow
import pyarrow.compute

from kavka.pipeline.sending.marked_producer import Row

NO_HEADERS: tuple[tuple[str, bytes | None], ...] = ()


def rows_of(batch: pyarrow.RecordBatch) -> Iterator[Row]:
    """The rows of a batch with `value`, and perhaps `key`, `timestamp` and `headers`, in their order.

    Times are cut to milliseconds, as records have them; one before 1970 is -1 to Kafka, no time, and goes as now.
    """
    size = batch.num_rows
    names = batch.schema.names
    keys = batch.column("key").to_pylist() if "key" in names else [None] * size
    times = times_ms(batch.column("timestamp")) if "timestamp" in names else [None] * size
    return zip(keys, batch.column("value").to_pylist(), times, _headers(batch), strict=True)


def times_ms(column: pyarrow.Array) -> list[int | None]:
    """Milliseconds since 1970, cut off and not rounded; None for what no record can have."""
    numbers = column.cast(pyarrow.timestamp("us", column.type.tz)).cast(pyarrow.int64())
    millis = pyarrow.compute.divide(numbers, 1000)
    found: list[int | None] = pyarrow.compute.if_else(pyarrow.compute.less(numbers, 0), None, millis).to_pylist()
    return found


def _headers(batch: pyarrow.RecordBatch) -> "list[tuple[tuple[str, bytes | None], ...]]":
    if "headers" not in batch.schema.names:
        return [NO_HEADERS] * batch.num_rows
    column = batch.column("headers")
    if column.null_count == len(column):
        return [NO_HEADERS] * batch.num_rows
    return [
        tuple((header["key"], header["value"]) for header in each) if each else NO_HEADERS
        for each in column.to_pylist()
    ]
