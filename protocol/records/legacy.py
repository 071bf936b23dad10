"""Message sets of magic 0 and 1, and conversion between them and v2 batches.

    message  0..7   offset        i64; of a compressed wrapper: that of its last inner message
             8..11  size          i32; of all that follows this field
            12..15  crc           u32; CRC-32 from the magic to the end
            16      magic         i8 = 0 or 1
            17      attributes    i8; bits 0-2 codec (never zstd), 3 timestamp type (magic 1; 1: log append)
           (18..25  timestamp     i64; magic 1 only; -1: none)
                    key length    i32 (-1: null), then the key
                    value length  i32 (-1: null), then the value

A message set is messages back to back. Compressed, it is the value of one wrapper message of the same magic; inner
offsets are absolute in magic 0 and relative to the first in magic 1 (KIP-31). Of a wrapper stamped with log append
time, the wrapper's timestamp counts for all (KIP-32). A wrapper within a wrapper is refused, as Kafka does.

Integers are big endian. A lone message reads as a batch of one by `batch.read_header`.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Final
from zlib import crc32

from kavka.protocol.records.builder import build_batch
from kavka.protocol.records.compression import DECOMPRESSED_LIMIT_BYTES, Codec, compress, decompress
from kavka.protocol.records.errors import CorruptRecordsError, UnsupportedCodecError
from kavka.protocol.records.header import (
    HEADER_SIZE_BYTES,
    LOG_APPEND_TIME_BIT,
    MESSAGE_TIMESTAMP_POSITION,
    BatchHeader,
    BytesLike,
    TimestampType,
    iter_batch_headers,
    verify_crc,
)
from kavka.protocol.records.record import Record, parse_records

ENOUGH_RECORDS: Final = 100_000
"""Converted for one partition of a fetch. Compressed, a batch of a million fits into a few hundred bytes, so that the
size of what was read says nothing of the time that its conversion takes."""
ENOUGH_BYTES: Final = 1 << 20
"""The same in bytes, as much as old consumers ask for by default: what was converted is in memory until it is sent, and
a client may never read."""


def iter_records_of(
    data: BytesLike, position: int, header: BatchHeader, limit_bytes: int = DECOMPRESSED_LIMIT_BYTES
) -> Iterator[Record]:
    """The records of the batch or message at `position`, whose `header` was read before; lazily.

    Raises CompressionLimitError if it unpacks to more than `limit_bytes`, CorruptRecordsError for whatever doesn't fit.
    """
    if header.magic == 2:
        packed = memoryview(data)[position + HEADER_SIZE_BYTES : position + header.size_bytes]
        return parse_records(decompress(header.codec, packed, limit_bytes=limit_bytes), header)
    key, value = _key_and_value(data, position, header)
    if header.codec == Codec.NONE:
        return iter((Record(header.base_offset, header.max_timestamp_ms, key, value),))
    return _iter_inner(_unpack_wrapper(value, header, limit_bytes), header)


def build_message_set(
    records: Iterable[Record],
    magic: int,
    *,
    base_offset: int = 0,
    codec: int = Codec.NONE,
    level: int | None = None,
    timestamp_type: TimestampType = TimestampType.CREATE,
    keep_offsets: bool = False,
) -> bytes:
    """`records` as messages of `magic` 0 or 1, compressed as one wrapper; headers are dropped, they have no place.

    Offsets as in `build_batch`: from `base_offset` on, or with `keep_offsets` each record's own.
    Raises UnsupportedCodecError for zstd, ValueError for another magic.
    """
    if magic not in (0, 1):
        raise ValueError(f"no message set has magic {magic}")
    type_bit = LOG_APPEND_TIME_BIT if magic == 1 and timestamp_type == TimestampType.LOG_APPEND else 0
    relative = magic == 1 and codec != Codec.NONE
    out = bytearray()
    first_offset = last_offset = base_offset
    max_timestamp_ms = -1
    for index, record in enumerate(records):
        last_offset = record.offset if keep_offsets else base_offset + index
        if index == 0:
            first_offset = last_offset
        offset = last_offset - first_offset if relative else last_offset
        max_timestamp_ms = max(max_timestamp_ms, record.timestamp_ms)
        _put_message(out, magic, type_bit, offset, record.timestamp_ms, record.key, record.value)
    if codec == Codec.NONE or not out:
        return bytes(out)
    wrapped = bytearray()
    packed = compress(codec, out, level, magic=magic)
    _put_message(wrapped, magic, codec | type_bit, last_offset, max_timestamp_ms, None, packed)
    return bytes(wrapped)


def to_v2(message_set: BytesLike, *, limit_bytes: int = DECOMPRESSED_LIMIT_BYTES, level: int | None = None) -> bytes:
    """The messages of a Produce request v0 to v2 as one v2 batch from offset 0 on: same codec, same timestamps.

    CRCs are checked, outer and inner. `limit_bytes` bounds what all wrappers together unpack to. The timestamp type is
    kept, so that the checks on a v2 batch also find a client that claims log append time.
    Raises CorruptRecordsError for anything wrong: truncated, empty, or a v2 batch among the messages.
    """
    codec: int = Codec.NONE
    timestamp_type = TimestampType.CREATE
    for position, header in iter_batch_headers(message_set):
        if header.magic >= 2:
            raise CorruptRecordsError(f"batch of magic {header.magic} in a message set")
        verify_crc(message_set, position, header)
        codec = header.codec or codec
        timestamp_type = max(timestamp_type, header.timestamp_type)
    if not message_set:
        raise CorruptRecordsError("message set is empty")
    records = _iter_produced(message_set, limit_bytes)
    return build_batch(records, codec=codec, level=level, timestamp_type=timestamp_type)


def to_legacy(
    batches: BytesLike,
    magic: int,
    *,
    first_offset: int = 0,
    limit_bytes: int = DECOMPRESSED_LIMIT_BYTES,
    enough_records: int = ENOUGH_RECORDS,
    enough_bytes: int = ENOUGH_BYTES,
) -> memoryview:
    """Batches of any magics as messages of `magic` 0 or 1 at most, for Fetch v0 to v3; offsets and codecs are kept.

    Control batches and record headers have no place there and are dropped, batches of lower magics go as they are.
    Records below `first_offset` are left out of uncompressed batches, so that a small fetch gets on. A batch cut off by
    the end of the data is dropped. `limit_bytes` bounds what each batch unpacks to. No further batch is begun once
    `enough_records` were converted or `enough_bytes` came of it: who fetches on gets the rest.
    Raises UnsupportedCodecError for a zstd batch, CorruptRecordsError for one that doesn't parse, if it is the first
    that something would come of: what comes before one is delivered, as by Kafka.
    """
    view = memoryview(batches)
    out = bytearray()
    converted = 0
    try:
        for position, header in iter_batch_headers(batches, allow_truncated_tail=True):
            if out and (converted >= enough_records or len(out) >= enough_bytes):
                break
            if header.magic <= magic:
                out += view[position : position + header.size_bytes]
                continue
            if header.is_control:
                continue
            out += _lowered(view, position, header, magic, first_offset, limit_bytes)
            converted += header.count
    except CorruptRecordsError:
        if not out:
            raise
    # A view: a fetch's worth of converted records need not be in memory twice.
    return memoryview(out)


def _lowered(
    view: memoryview, position: int, header: BatchHeader, magic: int, first_offset: int, limit_bytes: int
) -> bytes:
    """One v2 batch as messages of `magic`. Raises as `to_legacy` does."""
    if header.codec == Codec.ZSTD:
        raise UnsupportedCodecError(f"zstd batch at offset {header.base_offset} can't go into magic {magic}")
    records = iter_records_of(view, position, header, limit_bytes)
    if header.codec == Codec.NONE:
        records = (record for record in records if record.offset >= first_offset)
    return build_message_set(
        records, magic, codec=header.codec, timestamp_type=header.timestamp_type, keep_offsets=True
    )


def _iter_produced(message_set: BytesLike, limit_bytes: int) -> Iterator[Record]:
    """All records of a message set, inner CRCs checked, within one limit for all wrappers together."""
    room = limit_bytes
    for position, header in iter_batch_headers(message_set):
        key, value = _key_and_value(message_set, position, header)
        if header.codec == Codec.NONE:
            yield Record(header.base_offset, header.max_timestamp_ms, key, value)
            continue
        inner_set = _unpack_wrapper(value, header, room)
        room -= len(inner_set)
        for inner_position, inner in iter_batch_headers(inner_set):
            verify_crc(inner_set, inner_position, inner)
        yield from _iter_inner(inner_set, header)


def _unpack_wrapper(value: bytes | None, wrapper: BatchHeader, limit_bytes: int) -> bytes:
    if value is None:
        raise CorruptRecordsError(f"compressed message at offset {wrapper.base_offset} has no value")
    inner_set = decompress(wrapper.codec, value, limit_bytes=limit_bytes, magic=wrapper.magic)
    if not inner_set:
        raise CorruptRecordsError(f"compressed message at offset {wrapper.base_offset} holds no messages")
    return inner_set


def _iter_inner(inner_set: bytes, wrapper: BatchHeader) -> Iterator[Record]:
    last_inner_offset = 0
    for _, inner in iter_batch_headers(inner_set):
        if inner.magic != wrapper.magic or inner.codec != Codec.NONE:
            raise CorruptRecordsError(f"magic {inner.magic}, codec {inner.codec} in a wrapper of magic {wrapper.magic}")
        last_inner_offset = inner.base_offset
    shift = wrapper.base_offset - last_inner_offset if wrapper.magic == 1 else 0
    stamped = wrapper.timestamp_type == TimestampType.LOG_APPEND
    for position, inner in iter_batch_headers(inner_set):
        key, value = _key_and_value(inner_set, position, inner)
        timestamp_ms = wrapper.max_timestamp_ms if stamped else inner.max_timestamp_ms
        yield Record(inner.base_offset + shift, timestamp_ms, key, value)


def _key_and_value(data: BytesLike, position: int, header: BatchHeader) -> tuple[bytes | None, bytes | None]:
    end = position + header.size_bytes
    key, value_position = _nullable_bytes(data, position + _FIELDS_POSITION[header.magic], end)
    value, value_end = _nullable_bytes(data, value_position, end)
    if value_end != end:
        raise CorruptRecordsError(f"message at offset {header.base_offset} has {end - value_end} bytes too many")
    return key, value


def _nullable_bytes(data: BytesLike, position: int, end: int) -> tuple[bytes | None, int]:
    start = position + 4
    if start > end:
        raise CorruptRecordsError("message ends in a length")
    size = int.from_bytes(data[position:start], "big", signed=True)
    if size < 0:
        return None, start
    if start + size > end:
        raise CorruptRecordsError(f"field claims {size} bytes, {end - start} are left")
    return bytes(data[start : start + size]), start + size


def _put_message(
    out: bytearray, magic: int, attributes: int, offset: int, timestamp_ms: int, key: bytes | None, value: bytes | None
) -> None:
    covered = bytearray((magic, attributes))
    if magic == 1:
        covered += timestamp_ms.to_bytes(8, "big", signed=True)
    for field in (key, value):
        covered += (-1 if field is None else len(field)).to_bytes(4, "big", signed=True)
        covered += field or b""
    out += _MESSAGE_START.pack(offset, 4 + len(covered), crc32(covered))
    out += covered


_FIELDS_POSITION: Final = {0: MESSAGE_TIMESTAMP_POSITION, 1: MESSAGE_TIMESTAMP_POSITION + 8}
"""Where the key's length stands, by magic."""

_MESSAGE_START: Final = struct.Struct(">qiI")
