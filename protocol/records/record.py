"""The records inside a v2 batch, read one after the other. The layout stands at the head of `batch.py`."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from kavka.protocol.records.errors import CorruptRecordsError
from kavka.protocol.records.header import LOG_APPEND_TIME_BIT, NO_TIMESTAMP, BatchHeader

Headers = tuple[tuple[str, bytes | None], ...]


class Record(NamedTuple):
    """One record. `headers` may repeat a key; key bytes that aren't UTF-8 survive as surrogates."""

    offset: int = 0
    timestamp_ms: int = NO_TIMESTAMP
    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()


def parse_records(body: bytes, header: BatchHeader) -> Iterator[Record]:
    """The records of `body`, the unpacked bytes after `header`; lazily, so that errors come when reached.

    Raises CorruptRecordsError if a length, a delta or the header's count doesn't fit what is there.
    """
    count = header.count
    if count < 0:
        raise CorruptRecordsError(f"batch at offset {header.base_offset} claims {count} records")
    position = 0
    end = len(body)
    try:
        for _ in range(count):
            record, position = _parse_record(body, position, end, header)
            yield record
    except IndexError:
        raise CorruptRecordsError(f"batch at offset {header.base_offset} ends in a record") from None
    if position != end:
        raise CorruptRecordsError(
            f"batch at offset {header.base_offset} has {end - position} bytes behind its {count} records"
        )


def _parse_record(body: bytes, position: int, end: int, header: BatchHeader) -> tuple[Record, int]:
    length = body[position]
    position += 1
    if length >= 0x80:
        length, position = _varint_rest(body, position, length)
    length = (length >> 1) ^ -(length & 1)
    record_end = position + length
    if length < _MIN_RECORD_LENGTH or record_end > end:
        raise CorruptRecordsError(f"record claims {length} bytes, {end - position} are left")
    position += 1

    timestamp_delta = body[position]
    position += 1
    if timestamp_delta >= 0x80:
        timestamp_delta, position = _varlong_rest(body, position, timestamp_delta)
    offset_delta = body[position]
    position += 1
    if offset_delta >= 0x80:
        offset_delta, position = _varint_rest(body, position, offset_delta)
    offset_delta = (offset_delta >> 1) ^ -(offset_delta & 1)
    if not 0 <= offset_delta <= header[_LAST_OFFSET_DELTA]:
        raise CorruptRecordsError(f"record has offset delta {offset_delta} of {header[_LAST_OFFSET_DELTA]}")
    if header[_ATTRIBUTES] & LOG_APPEND_TIME_BIT:
        timestamp_ms = header[_MAX_TIMESTAMP]
    else:
        timestamp_ms = header[_BASE_TIMESTAMP] + ((timestamp_delta >> 1) ^ -(timestamp_delta & 1))
        if not _MIN_I64 <= timestamp_ms <= _MAX_I64:
            raise CorruptRecordsError(f"record has timestamp {timestamp_ms}")

    key, position = _nullable_bytes(body, position, record_end)
    value, position = _nullable_bytes(body, position, record_end)
    headers: Headers = ()
    header_count = body[position]
    position += 1
    if header_count:
        headers, position = _headers(body, position, record_end, header_count)
    if position != record_end:
        raise CorruptRecordsError(f"record claims {length} bytes, its fields take {length + position - record_end}")
    return _new_tuple(Record, (header[0] + offset_delta, timestamp_ms, key, value, headers)), position


def _nullable_bytes(body: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    size = body[position]
    position += 1
    if size >= 0x80:
        size, position = _varint_rest(body, position, size)
    if size & 1:
        return None, position
    field_end = position + (size >> 1)
    if field_end > end:
        raise CorruptRecordsError(f"field claims {size >> 1} bytes, {end - position} are left")
    return body[position:field_end], field_end


def _headers(body: bytes, position: int, end: int, count: int) -> tuple[Headers, int]:
    if count >= 0x80:
        count, position = _varint_rest(body, position, count)
    count = (count >> 1) ^ -(count & 1)
    if not 0 <= count <= end - position:
        raise CorruptRecordsError(f"record claims {count} headers")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        key, position = _nullable_bytes(body, position, end)
        if key is None:
            raise CorruptRecordsError("header without a key")
        value, position = _nullable_bytes(body, position, end)
        headers.append((key.decode("utf-8", "surrogateescape"), value))
    return tuple(headers), position


def _varint_rest(body: bytes, position: int, first: int) -> tuple[int, int]:
    """The unsigned value of a varint of more than one byte, whose first is `first`, and the position behind it."""
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = body[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                break
            return value, position
    raise CorruptRecordsError("varint of more than 32 bits")


def _varlong_rest(body: bytes, position: int, first: int) -> tuple[int, int]:
    value = first & 0x7F
    for shift in range(7, 70, 7):
        byte = body[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFFFFFFFFFF:
                break
            return value, position
    raise CorruptRecordsError("varint of more than 64 bits")


_MIN_RECORD_LENGTH: Final = 6
"""Attributes, two deltas, key and value lengths, header count: a byte each."""

_ATTRIBUTES: Final = 5
_LAST_OFFSET_DELTA: Final = 6
_BASE_TIMESTAMP: Final = 7
_MAX_TIMESTAMP: Final = 8
"""Indexes into a BatchHeader, cheaper than its attributes."""

_MIN_I64: Final = -(2**63)
_MAX_I64: Final = 2**63 - 1

_new_tuple: Final = tuple.__new__
