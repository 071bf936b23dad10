"""Records of internal topics as batches."""

from collections.abc import Sequence
from typing import Final

from kavka.coordinator.runtime.record_encoding import encoded
from kavka.coordinator.runtime.result import CoordinatorRecord, Producer
from kavka.protocol.records.batch import Codec, ControlType, build_control_batch
from kavka.protocol.records.compression import compress
from kavka.protocol.records.header import (
    BATCH_HEADER,
    HEADER_SIZE_BYTES,
    LOG_OVERHEAD_BYTES,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
    write_crc,
)
from kavka.protocol.varint import varint_bytes


def batch_of(
    records: Sequence[CoordinatorRecord], now_ms: int, *, codec: int = Codec.NONE, producer: Producer | None = None
) -> bytearray:
    """One batch of the records, transactional if they are a producer's. Raises EncodeError.

    All have the same timestamp and no headers, and their offsets follow one another, which makes this shorter than
    `build_batch`.
    """
    out = bytearray(HEADER_SIZE_BYTES)
    offset_delta = -1
    for offset_delta, record in enumerate(records):
        key, value = encoded(record)
        if value is None:
            body = b"\0\0%b%b%b\1\0" % (_varint(offset_delta), _varint(len(key)), key)
        else:
            body = b"\0\0%b%b%b%b%b\0" % (_varint(offset_delta), _varint(len(key)), key, _varint(len(value)), value)
        out += _varint(len(body))
        out += body
    if codec != Codec.NONE:
        out[HEADER_SIZE_BYTES:] = compress(codec, memoryview(out)[HEADER_SIZE_BYTES:], None)
    producer_id, producer_epoch, bits = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH, codec)
    if producer is not None:
        producer_id, producer_epoch, bits = (*producer, codec | TRANSACTIONAL_BIT)
    BATCH_HEADER.pack_into(
        out,
        0,
        0,
        len(out) - LOG_OVERHEAD_BYTES,
        NO_LEADER_EPOCH,
        2,
        0,
        bits,
        offset_delta,
        now_ms,
        now_ms,
        producer_id,
        producer_epoch,
        NO_SEQUENCE,
        offset_delta + 1,
    )
    write_crc(out, 0)
    return out


def end_marker(producer: Producer, coordinator_epoch: int, now_ms: int, *, committed: bool) -> bytearray:
    """The batch that ends a producer's transaction on the partition."""
    return bytearray(
        build_control_batch(
            ControlType.COMMIT if committed else ControlType.ABORT,
            timestamp_ms=now_ms,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            coordinator_epoch=coordinator_epoch,
        )
    )


def _varint(value: int) -> bytes:
    """A length, or the number of a record: never negative, mostly small."""
    return _SMALL_VARINTS[value] if value < _FIRST_OF_TWO_BYTES else varint_bytes(2 * value)


_FIRST_OF_TWO_BYTES: Final = 64
_SMALL_VARINTS: Final = tuple(bytes((2 * value,)) for value in range(_FIRST_OF_TWO_BYTES))
