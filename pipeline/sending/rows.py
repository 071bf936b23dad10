"""Columns of Arrow as the rows that a producer takes."""

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow
import pyarrow.compute

from kavka.pipeline.sending.marked_producer import Row

NO_HEADERS: tuple[tuple[str, bytes | None], ...] = ()
_HEAD: Final = struct.Struct("<qii")
_LARGEST: Final = (1 << 64) - 1


class Content:
    """What tells rows from others: a sum over all of them, as their order may be another one the next time.

    Threads: one.
    """

    def __init__(self) -> None:
        self.sum = 0

    def of(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The same rows, each added as it goes by."""
        for row in rows:
            key, value, time_ms, headers = row
            head = _HEAD.pack(-1 if time_ms is None else time_ms, _size(key), _size(value))
            check = zlib.crc32(value or b"", zlib.crc32(key or b"", zlib.crc32(head)))
            for name, each in headers:
                text = name.encode(errors="surrogatepass")
                head = _HEAD.pack(0, len(text), _size(each))
                check = zlib.crc32(each or b"", zlib.crc32(text, zlib.crc32(head, check)))
            # Of checksums alone the sum may stay when two rows exchange their values; of squares it does not.
            self.sum = (self.sum + check * check) & _LARGEST
            yield row

    def add(self, rows: Iterable[Row]) -> None:
        """Rows that go nowhere."""
        for _ in self.of(rows):
            pass


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


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
