"""All fields of a few hundred records, by one loop: no call per record but for its headers.

From some hundred records on `columns` is quicker.
"""

from collections.abc import Iterator
from typing import Final, TypeAlias

from kavka.protocol.records.errors import CorruptRecordsError
from kavka.protocol.records.header import LOG_APPEND_TIME_BIT, BatchHeader
from kavka.protocol.records.record import headers_end, varint_rest, varlong_rest, wrap_i64, zigzag

NO_HEADERS: Final = b"\0"
"""Packed: their number is none."""

RecordRow: TypeAlias = tuple[int, int, bytes | None, bytes | None, bytes]
"""(offset, timestamp in ms, key, value, packed headers)."""


def read_rows(rows: list[RecordRow], body: bytes, position: int, end: int, header: BatchHeader) -> None:
    """Append the records of the v2 batch with this header, whose unpacked records fill `body` between the positions.

    Raises CorruptRecordsError for whatever does not fit; the records before it have been appended.
    """
    if not 0 <= header.count <= end - position:
        raise CorruptRecordsError(f"batch at offset {header.base_offset} claims {header.count} records")
    try:
        position = _read(rows, body, position, end, header, header.count)
    except IndexError:
        raise CorruptRecordsError(f"batch at offset {header.base_offset} ends in a record") from None
    if position != end:
        raise CorruptRecordsError(f"batch at offset {header.base_offset} ends at {end}, its records at {position}")


def rows_in_pieces(body: bytes, header: BatchHeader, most: int) -> Iterator[list[RecordRow]]:
    """The same, up to `most` at a time: a batch may unpack to millions of records of a few bytes each.

    Raises CorruptRecordsError when it comes to what does not fit.
    """
    last = header._replace(count=header.count % most)
    position, end = 0, len(body)
    for _ in range(header.count // most):
        rows: list[RecordRow] = []
        try:
            position = _read(rows, body, position, end, header, most)
        except IndexError:
            raise CorruptRecordsError(f"batch at offset {header.base_offset} ends in a record") from None
        yield rows
    rows = []
    read_rows(rows, body, position, end, last)
    yield rows


def _read(rows: list[RecordRow], body: bytes, position: int, end: int, header: BatchHeader, count: int) -> int:
    """Where the last of the next `count` records ends; IndexError beyond the body.

    Varints of one and two bytes, nearly all there are, are decoded in place.
    """
    add = rows.append
    base_offset, last_delta = header.base_offset, header.last_offset_delta
    is_stamped = header.attributes & LOG_APPEND_TIME_BIT
    base_timestamp = header.max_timestamp_ms if is_stamped else header.base_timestamp_ms
    for _ in range(count):
        size = body[position]
        position += 1
        if size >= 0x80:
            size += (body[position] - 1) << 7
            position += 1
            if size > _TWO_BYTES:
                size, position = _longer(body, position)
        record_end = position + (size >> 1)
        delta = body[position + 1]
        position += 2
        if delta >= 0x80:
            delta, position = varlong_rest(body, position, delta)
        timestamp = base_timestamp if is_stamped else base_timestamp + (delta >> 1 ^ -(delta & 1))
        offset_delta = body[position]
        position += 1
        if offset_delta >= 0x80:
            offset_delta, position = varint_rest(body, position, offset_delta)
        if size & 1 or record_end > end or offset_delta & 1 or offset_delta >> 1 > last_delta:
            raise CorruptRecordsError(f"record of {zigzag(size)} bytes has offset delta {zigzag(offset_delta)}")
        size = body[position]
        start = position + 1
        if size >= 0x80:
            size, start = varint_rest(body, start, size)
        position = start if size & 1 else start + (size >> 1)
        key = None if size & 1 else body[start:position]
        if position >= record_end:
            raise CorruptRecordsError(f"record's key ends at {position}, the record at {record_end}")
        size = body[position]
        start = position + 1
        if size >= 0x80:
            size += (body[start] - 1) << 7
            start += 1
            if size > _TWO_BYTES:
                size, start = _longer(body, start)
        position = start if size & 1 else start + (size >> 1)
        value = None if size & 1 else body[start:position]
        headers, start = NO_HEADERS, position
        if position < record_end and body[position]:
            position = headers_end(body, start, record_end)
            headers = body[start:position]
        else:
            position += 1
        if position != record_end:
            raise CorruptRecordsError(f"record's fields end at {position}, the record at {record_end}")
        if not _LEAST <= timestamp <= _MOST:
            timestamp = wrap_i64(timestamp)
        add((base_offset + (offset_delta >> 1), timestamp, key, value, headers))
    return position


def _longer(body: bytes, position: int) -> tuple[int, int]:
    """A varint of more than two bytes, two of which lie before `position`."""
    return varint_rest(body, position - 1, body[position - 2])


_TWO_BYTES: Final = 0x3FFF
_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1
