"""The records inside a v2 batch, read one after the other. The layout stands at the head of `batch.py`."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, overload

from kavka.protocol.records.errors import CorruptRecordsError
from kavka.protocol.records.header import LOG_APPEND_TIME_BIT, NO_TIMESTAMP, BatchHeader

RecordHeader = tuple[str, bytes | None]
"""(key, value)"""


class PackedHeaders(Sequence[RecordHeader]):
    """A record's headers as they lie in its batch, checked, and taken apart anew whenever somebody looks. Immutable.

    Equal to a tuple of the same headers. Two bytes make a header, and a compressed batch holds a thousand for each of
    its bytes: built at once, those of one request of 1.5 KB took 650 MB. Who checks, stamps, compresses anew or cleans
    never looks.
    """

    __slots__ = ("packed",)

    def __init__(self, packed: bytes) -> None:
        """`packed`: their number and what follows it, to the record's end. It must have passed `headers_end`."""
        self.packed: Final = packed

    def __iter__(self) -> Iterator[RecordHeader]:
        packed = self.packed
        count, position = _varint(packed, 0)
        for _ in range(count >> 1):
            key, position = _nullable_bytes(packed, position)
            value, position = _nullable_bytes(packed, position)
            yield (key or b"").decode("utf-8", "surrogateescape"), value

    def __len__(self) -> int:
        return _varint(self.packed, 0)[0] >> 1

    @overload
    def __getitem__(self, index: int) -> RecordHeader: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[RecordHeader, ...]: ...
    def __getitem__(self, index: int | slice) -> RecordHeader | tuple[RecordHeader, ...]:
        return tuple(self)[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PackedHeaders | tuple) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


class Record(NamedTuple):
    """One record. `headers` may repeat a key; key bytes that aren't UTF-8 survive as surrogates."""

    offset: int = 0
    timestamp_ms: int = NO_TIMESTAMP
    key: bytes | None = None
    value: bytes | None = None
    headers: Sequence[RecordHeader] = ()
    """Of a record that was read: packed."""


def parse_records(body: bytes, header: BatchHeader) -> Iterator[Record]:
    """The records of `body`, the unpacked bytes after `header`; lazily, so that errors come when reached.

    Raises CorruptRecordsError if a length, a delta or the header's count doesn't fit what is there.
    """
    if header.count < 0:
        raise CorruptRecordsError(f"batch at offset {header.base_offset} claims {header.count} records")
    position = 0
    try:
        for _ in range(header.count):
            record, position = _parse_record(body, position, header)
            yield record
    except IndexError:
        raise CorruptRecordsError(f"batch at offset {header.base_offset} ends in a record") from None
    if position != len(body):
        behind = len(body) - position
        raise CorruptRecordsError(f"batch at offset {header.base_offset} has {behind} bytes behind its records")


def wrap_i64(value: int) -> int:
    """`value` as Java's long holds it: timestamps may be negative (Go's zero time), so that a delta may overflow."""
    return value if _MIN_I64 <= value <= _MAX_I64 else (value - _MIN_I64) % 2**64 + _MIN_I64


def _parse_record(body: bytes, position: int, header: BatchHeader) -> tuple[Record, int]:
    """One-byte varints, nearly all there are, are decoded in place: a call each would double the price."""
    length = body[position]
    position += 1
    if length >= 0x80:
        length, position = varint_rest(body, position, length)
    record_end = position + (length >> 1)
    if length & 1 or record_end > len(body):
        raise CorruptRecordsError(f"record claims {zigzag(length)} bytes, {len(body) - position} are left")
    timestamp_delta = body[position + 1]
    position += 2
    if timestamp_delta >= 0x80:
        timestamp_delta, position = varlong_rest(body, position, timestamp_delta)
    offset_delta = body[position]
    position += 1
    if offset_delta >= 0x80:
        offset_delta, position = varint_rest(body, position, offset_delta)

    size = body[position]
    position += 1
    if size >= 0x80:
        size, position = varint_rest(body, position, size)
    key = None
    if not size & 1:
        start = position
        position += size >> 1
        key = body[start:position]
    if position >= record_end:
        raise CorruptRecordsError(f"record's key ends at {position}, the record at {record_end}")
    size = body[position]
    position += 1
    if size >= 0x80:
        size, position = varint_rest(body, position, size)
    value = None
    if not size & 1:
        start = position
        position += size >> 1
        value = body[start:position]
    headers: Sequence[RecordHeader] = ()
    if position < record_end and body[position]:
        start = position
        position = headers_end(body, start, record_end)
        headers = PackedHeaders(body[start:position])
    else:
        position += 1
    if position != record_end:
        raise CorruptRecordsError(f"record's fields end at {position}, the record at {record_end}")
    offset, timestamp_ms = _place(header, zigzag(offset_delta), zigzag(timestamp_delta))
    return _new_tuple(Record, (offset, timestamp_ms, key, value, headers)), position


def _place(header: BatchHeader, offset_delta: int, timestamp_delta: int) -> tuple[int, int]:
    """A record's offset and timestamp."""
    if not 0 <= offset_delta <= header[_LAST_OFFSET_DELTA]:
        raise CorruptRecordsError(f"record has offset delta {offset_delta} of {header[_LAST_OFFSET_DELTA]}")
    if header[_ATTRIBUTES] & LOG_APPEND_TIME_BIT:
        return header[_BASE_OFFSET] + offset_delta, header[_MAX_TIMESTAMP]
    return header[_BASE_OFFSET] + offset_delta, wrap_i64(header[_BASE_TIMESTAMP] + timestamp_delta)


def headers_end(body: bytes, position: int, end: int) -> int:
    """Where the headers end whose number stands at `position`. Builds none of them: there may be millions."""
    count, position = _varint(body, position)
    if count & 1 or count >> 1 > end - position:
        raise CorruptRecordsError(f"record claims {zigzag(count)} headers")
    for _ in range(count >> 1):
        size = body[position]
        position += 1
        if size >= 0x80:
            size, position = varint_rest(body, position, size)
        if size & 1:
            raise CorruptRecordsError("header without a key")
        position += size >> 1
        if position >= end:
            raise CorruptRecordsError(f"header's key ends at {position}, the record at {end}")
        size = body[position]
        position += 1
        if size >= 0x80:
            size, position = varint_rest(body, position, size)
        if not size & 1:
            position += size >> 1
        if position > end:
            raise CorruptRecordsError(f"header's value ends at {position}, the record at {end}")
    return position


def _nullable_bytes(packed: bytes, position: int) -> tuple[bytes | None, int]:
    """Of headers that have been checked."""
    size, position = _varint(packed, position)
    if size & 1:
        return None, position
    end = position + (size >> 1)
    return packed[position:end], end


def zigzag(value: int) -> int:
    """The signed value of an unsigned one."""
    return (value >> 1) ^ -(value & 1)


def _varint(body: bytes, position: int) -> tuple[int, int]:
    """The unsigned value of a varint, and the position behind it."""
    first = body[position]
    return (first, position + 1) if first < 0x80 else varint_rest(body, position + 1, first)


def varint_rest(body: bytes, position: int, first: int) -> tuple[int, int]:
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


def varlong_rest(body: bytes, position: int, first: int) -> tuple[int, int]:
    """As `varint_rest`, of up to 64 bits."""
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


_BASE_OFFSET: Final = BatchHeader._fields.index("base_offset")
_ATTRIBUTES: Final = BatchHeader._fields.index("attributes")
_LAST_OFFSET_DELTA: Final = BatchHeader._fields.index("last_offset_delta")
_BASE_TIMESTAMP: Final = BatchHeader._fields.index("base_timestamp_ms")
_MAX_TIMESTAMP: Final = BatchHeader._fields.index("max_timestamp_ms")
"""Indexes into a BatchHeader, cheaper than its attributes."""

_MIN_I64: Final = -(2**63)
_MAX_I64: Final = 2**63 - 1

_new_tuple: Final = tuple.__new__
