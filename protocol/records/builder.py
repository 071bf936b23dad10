"""Building v2 batches. The layout stands at the head of `batch.py`."""

import struct
from collections.abc import Iterable
from enum import IntEnum
from typing import Final, NamedTuple

from kavka.protocol.records.compression import Codec, compress
from kavka.protocol.records.header import (
    BATCH_HEADER,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER_SIZE_BYTES,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD_BYTES,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    TimestampType,
    write_crc,
)
from kavka.protocol.records.record import PackedHeaders, Record, wrap_i64


class ControlType(IntEnum):
    """What a control record says; types above 1 belong to KRaft."""

    ABORT = 0
    COMMIT = 1


def build_batch(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    codec: int = Codec.NONE,
    level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    leader_epoch: int = NO_LEADER_EPOCH,
    timestamp_type: TimestampType = TimestampType.CREATE,
    keep_offsets: bool = False,
    last_offset: int | None = None,
    delete_horizon_ms: int | None = None,
) -> bytes:
    """One v2 batch with `records`, which get the offsets from `base_offset` on, one after the other.

    With `keep_offsets` each record keeps its own offset instead, ascending from `base_offset` or later; `last_offset`
    then says where the batch ends if records are missing at its end, and `records` may be empty (the cleaner's work).
    With LOG_APPEND every record reads with the largest of their timestamps. `delete_horizon_ms`: see BatchHeader.

    `records` may be a generator: only their encoded bytes are held.
    Raises ValueError for offsets that don't ascend or don't fit, and for an empty batch without `last_offset`.
    """
    out = bytearray(HEADER_SIZE_BYTES)
    extent = _put_records(out, records, base_offset if keep_offsets else None, delete_horizon_ms)
    last_offset_delta = extent.last_offset_delta if last_offset is None else last_offset - base_offset
    if not max(extent.last_offset_delta, 0) <= last_offset_delta <= _MAX_I32:
        raise ValueError(f"batch ends at offset delta {last_offset_delta}, its records at {extent.last_offset_delta}")
    if extent.record_count == 0:
        codec = Codec.NONE
    if codec != Codec.NONE:
        out[HEADER_SIZE_BYTES:] = compress(codec, memoryview(out)[HEADER_SIZE_BYTES:], level)
    BATCH_HEADER.pack_into(
        out,
        0,
        base_offset,
        len(out) - LOG_OVERHEAD_BYTES,
        leader_epoch,
        2,
        0,
        codec
        | LOG_APPEND_TIME_BIT * (timestamp_type == TimestampType.LOG_APPEND)
        | TRANSACTIONAL_BIT * transactional
        | CONTROL_BIT * control
        | DELETE_HORIZON_BIT * (delete_horizon_ms is not None),
        last_offset_delta,
        extent.base_timestamp_ms,
        extent.max_timestamp_ms,
        producer_id,
        producer_epoch,
        base_sequence,
        extent.record_count,
    )
    write_crc(out, 0)
    return bytes(out)


def build_control_batch(
    control_type: ControlType,
    *,
    base_offset: int = 0,
    timestamp_ms: int,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytes:
    """The marker that ends a transaction of (producer_id, producer_epoch) on a partition (KIP-98)."""
    record = Record(
        timestamp_ms=timestamp_ms,
        key=CONTROL_KEY.pack(_CONTROL_VERSION, control_type),
        value=_END_TRANSACTION.pack(_CONTROL_VERSION, coordinator_epoch),
    )
    return build_batch(
        [record],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
        leader_epoch=leader_epoch,
    )


def control_type_of(record: Record) -> ControlType | None:
    """What a control batch's record says; None for the types of KRaft and for keys too short to say."""
    if record.key is None or len(record.key) < CONTROL_KEY.size:
        return None
    _, number = CONTROL_KEY.unpack_from(record.key)
    return ControlType(number) if number in (ControlType.ABORT, ControlType.COMMIT) else None


def coordinator_epoch_of(record: Record) -> int:
    """The coordinator epoch in the value of an ABORT or COMMIT; -1 if it is too short to hold one."""
    if record.value is None or len(record.value) < _END_TRANSACTION.size:
        return -1
    _, coordinator_epoch = _END_TRANSACTION.unpack_from(record.value)
    return int(coordinator_epoch)


class _Extent(NamedTuple):
    """What a header says about its records."""

    record_count: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int


def _put_records(
    out: bytearray, records: Iterable[Record], kept_from: int | None, delete_horizon_ms: int | None
) -> _Extent:
    """Append `records` to `out`, with their own offsets from `kept_from` on, or counted from 0 if that is None."""
    base_timestamp_ms = delete_horizon_ms
    max_timestamp_ms = NO_TIMESTAMP
    delta = -1
    count = 0
    for record in records:
        if base_timestamp_ms is None:
            base_timestamp_ms = record.timestamp_ms
        max_timestamp_ms = max(max_timestamp_ms, record.timestamp_ms)
        previous_delta = delta
        delta = count if kept_from is None else record.offset - kept_from
        if delta <= previous_delta:
            raise ValueError(f"record {count} has offset delta {delta} after {previous_delta}")
        _put_record(out, record, wrap_i64(record.timestamp_ms - base_timestamp_ms), delta)
        count += 1
    return _Extent(count, delta, NO_TIMESTAMP if base_timestamp_ms is None else base_timestamp_ms, max_timestamp_ms)


def _put_record(out: bytearray, record: Record, timestamp_delta: int, offset_delta: int) -> None:
    body = bytearray(1)
    _put_varint(body, timestamp_delta)
    _put_varint(body, offset_delta)
    _put_nullable_bytes(body, record.key)
    _put_nullable_bytes(body, record.value)
    headers = record.headers
    if isinstance(headers, PackedHeaders):
        body += headers.packed
    else:
        _put_varint(body, len(headers))
        for key, value in headers:
            _put_nullable_bytes(body, key.encode("utf-8", "surrogateescape"))
            _put_nullable_bytes(body, value)
    _put_varint(out, len(body))
    out += body


def _put_nullable_bytes(out: bytearray, value: bytes | None) -> None:
    if value is None:
        out.append(1)
    else:
        _put_varint(out, len(value))
        out += value


def _put_varint(out: bytearray, value: int) -> None:
    """Zigzag: the same code serves 32 and 64 bits, as Python's integers have no width."""
    unsigned = value << 1 if value >= 0 else (-value << 1) - 1
    while unsigned >= 0x80:
        out.append(unsigned & 0x7F | 0x80)
        unsigned >>= 7
    out.append(unsigned)


_MAX_I32: Final = 2**31 - 1
_CONTROL_VERSION: Final = 0
CONTROL_KEY: Final = struct.Struct(">hh")
"""(version, type) of a control record's key."""
_END_TRANSACTION: Final = struct.Struct(">hi")
