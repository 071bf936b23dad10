"""Batch headers: reading, checking, patching in place. The layout stands at the head of `batch.py`.

Where a field lies is said here for everybody: who looks at one field of a batch without reading its header, or patches
it, takes the position from here.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple
from zlib import crc32

from kavka.protocol.records.crc import crc32c
from kavka.protocol.records.errors import CorruptRecordsError, TruncatedBatchError

BytesLike = bytes | bytearray | memoryview

BATCH_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE_BYTES: Final = 61
LOG_OVERHEAD_BYTES: Final = 12
"""Base offset and length: what stands before the bytes that `batch_length` counts."""

BATCH_LENGTH_POSITION: Final = 8
LEADER_EPOCH_POSITION: Final = 12
MAGIC_POSITION: Final = 16
CRC_POSITION: Final = 17
ATTRIBUTES_POSITION: Final = 21
"""The CRC covers all from here on."""
ATTRIBUTE_BITS_POSITION: Final = 22
"""Of the lower byte of the attributes, which has all the bits that are in use."""
LAST_OFFSET_DELTA_POSITION: Final = 23
BASE_TIMESTAMP_POSITION: Final = 27
MAX_TIMESTAMP_POSITION: Final = 35
PRODUCER_POSITION: Final = 43
"""Of the producer's id, epoch and base sequence, see `unpack_producer`."""
COUNT_POSITION: Final = 57
MESSAGE_ATTRIBUTES_POSITION: Final = 17
MESSAGE_TIMESTAMP_POSITION: Final = 18
"""In messages of magic 0 and 1 (a timestamp in magic 1 only). Up to the magic they lie where those of v2 do, but for
the CRC, which stands where v2 has the leader epoch."""

LEAST_LENGTH: Final = {0: 14, 1: 22, 2: HEADER_SIZE_BYTES - LOG_OVERHEAD_BYTES}
"""What the length field says of an empty batch or message, by magic."""
BATCH_START: Final = struct.Struct(">qi4xb")
"""Base offset, length, magic: the first 17 bytes, of messages of magic 0 and 1, too."""
PREVIEW: Final = struct.Struct(">qi4xb6xi")
"""Base offset, length, magic, last offset delta (meaningful in magic 2 only): the first 27 bytes."""
unpack_epoch_and_counts: Final = struct.Struct(">i7xi30xi").unpack_from
"""(leader epoch, last offset delta, count) at LEADER_EPOCH_POSITION."""
unpack_producer: Final = struct.Struct(">qh").unpack_from
"""(producer id, epoch) at PRODUCER_POSITION."""
unpack_producer_and_sequence: Final = struct.Struct(">qhi").unpack_from
"""(producer id, epoch, base sequence) at PRODUCER_POSITION."""
pack_timestamps: Final = struct.Struct(">qq").pack_into
"""Base and max timestamp at BASE_TIMESTAMP_POSITION."""

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_LEADER_EPOCH: Final = -1


class TimestampType(IntEnum):
    """Who set a batch's timestamps: the producer, or the broker when it appended."""

    CREATE = 0
    LOG_APPEND = 1


class BatchHeader(NamedTuple):
    """The 61 bytes before a batch's records, and what follows from them.

    A message of magic 0 or 1 reads as a header too, so that a log of mixed formats can be walked: `base_offset` is
    then its offset field (of a compressed wrapper: the *last* inner offset), `count` is 1, absent fields are -1.
    """

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int  # type: ignore[assignment]  # Kafka's name; nobody asks a header for tuple.count()

    @property
    def size_bytes(self) -> int:
        """The whole batch, from the base offset to the last record's end."""
        return self.batch_length + LOG_OVERHEAD_BYTES

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> int:
        """A `compression.Codec` as plain number; 5 to 7 are possible in hostile data."""
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        return TimestampType.LOG_APPEND if self.attributes & LOG_APPEND_TIME_BIT else TimestampType.CREATE

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def has_delete_horizon(self) -> bool:
        """True: `base_timestamp_ms` is the time after which the cleaner drops tombstones (KIP-534)."""
        return self.attributes & DELETE_HORIZON_BIT != 0

    @property
    def last_sequence(self) -> int:
        """Of an idempotent producer; -1 without one. Sequences wrap to 0 after 2^31 - 1."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF


def read_header(data: BytesLike, position: int = 0) -> BatchHeader:
    """The header of the batch at `position`, which must lie in `data` whole; any magic, the CRC isn't checked.

    Raises TruncatedBatchError if the batch goes on beyond the data, CorruptRecordsError if its length or magic is
    impossible. `codec`, `count`, `last_offset_delta` and the producer's fields may still hold any value.
    """
    try:
        header = _new_tuple(BatchHeader, _unpack_header(data, position))
    except struct.error:
        return _read_short_header(data, position)
    if header[_MAGIC] != 2:
        return _read_short_header(data, position)
    length = header[_LENGTH]
    if length < _MIN_BATCH_LENGTH:
        raise CorruptRecordsError(f"batch at {position} claims {length} bytes, a header alone has {_MIN_BATCH_LENGTH}")
    if position + LOG_OVERHEAD_BYTES + length > len(data):
        raise TruncatedBatchError(f"batch at {position} claims {length} bytes, {len(data) - position} are there")
    return header


def iter_batch_headers(data: BytesLike, *, allow_truncated_tail: bool = False) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each batch in `data`, any mix of magics; CRCs aren't checked.

    Raises as `read_header` does, when it gets there; with `allow_truncated_tail` a batch cut off by the end of the
    data ends the walk instead, as the last one of a fetched slice may be.
    """
    position = 0
    end = len(data)
    while position < end:
        try:
            header = read_header(data, position)
        except TruncatedBatchError:
            if allow_truncated_tail:
                return
            raise
        yield position, header
        position += header[_LENGTH] + LOG_OVERHEAD_BYTES


def claimed_size_bytes(start: BytesLike) -> int:
    """What a batch says of its size whose first LOG_OVERHEAD_BYTES these are, unchecked; of fewer bytes it is nonsense.

    A negative length counts as one that fits nowhere.
    """
    return LOG_OVERHEAD_BYTES + int.from_bytes(start[BATCH_LENGTH_POSITION:LOG_OVERHEAD_BYTES], "big")


def is_transactional(records: BytesLike | None) -> bool:
    """Whether the batch that these records begin with is part of a transaction; looks at two of its bytes alone."""
    return (
        records is not None
        and len(records) >= HEADER_SIZE_BYTES
        and records[MAGIC_POSITION] == 2
        and records[ATTRIBUTE_BITS_POSITION] & TRANSACTIONAL_BIT != 0
    )


def verify_crc(data: BytesLike, position: int, header: BatchHeader) -> None:
    """Compare the CRC of the batch at `position` with that of its `header`; CorruptRecordsError if they differ."""
    end = position + LOG_OVERHEAD_BYTES + header[_LENGTH]
    if header[_MAGIC] == 2:
        actual = crc32c(memoryview(data)[position + ATTRIBUTES_POSITION : end])
    else:
        actual = crc32(memoryview(data)[position + MAGIC_POSITION : end])
    if actual != header[_CRC]:
        raise CorruptRecordsError(f"batch at {position} has CRC {actual:#010x}, its header says {header[_CRC]:#010x}")


def patch_offsets(buffer: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int) -> None:
    """Give the v2 batch at `position` its place in the log. Both fields lie outside the CRC."""
    _pack_i64(buffer, position, base_offset)
    _pack_i32(buffer, position + LEADER_EPOCH_POSITION, leader_epoch)


def restamped_head(batch: BytesLike, timestamp_type: TimestampType, max_timestamp_ms: int) -> bytes:
    """The header of a v2 batch (bytes that hold just one) as it is with these timestamps, its CRC included.

    The batch stays as it is: `exchange_head` puts the header in front of it. With LOG_APPEND readers take the max
    timestamp for every record.
    """
    head = bytearray(batch[:HEADER_SIZE_BYTES])
    (attributes,) = _I16.unpack_from(head, ATTRIBUTES_POSITION)
    attributes = attributes & ~LOG_APPEND_TIME_BIT | timestamp_type * LOG_APPEND_TIME_BIT
    _I16.pack_into(head, ATTRIBUTES_POSITION, attributes)
    _pack_i64(head, MAX_TIMESTAMP_POSITION, max_timestamp_ms)
    rest = memoryview(batch)[HEADER_SIZE_BYTES:]
    _U32.pack_into(head, CRC_POSITION, crc32c(rest, crc32c(memoryview(head)[ATTRIBUTES_POSITION:])))
    return bytes(head)


def exchange_head(buffer: bytearray | memoryview, head: bytes) -> bytes:
    """Give the batch that `buffer` begins with another header of `restamped_head`; the one that it had."""
    former = bytes(buffer[:HEADER_SIZE_BYTES])
    buffer[:HEADER_SIZE_BYTES] = head
    return former


def write_crc(buffer: bytearray | memoryview, position: int) -> None:
    """Compute the CRC of the v2 batch at `position` from what is there now."""
    (length,) = _I32.unpack_from(buffer, position + BATCH_LENGTH_POSITION)
    covered = memoryview(buffer)[position + ATTRIBUTES_POSITION : position + LOG_OVERHEAD_BYTES + length]
    _U32.pack_into(buffer, position + CRC_POSITION, crc32c(covered))


def _read_short_header(data: BytesLike, position: int) -> BatchHeader:
    """Whatever isn't a v2 header: a message of magic 0 or 1, a truncated batch, or garbage."""
    available = len(data) - position
    if available < _MESSAGE_HEADER_START.size:
        raise TruncatedBatchError(f"{available} bytes at {position} are too few for a batch")
    offset, length, crc, magic, attributes = _MESSAGE_HEADER_START.unpack_from(data, position)
    if magic == 2:
        raise TruncatedBatchError(f"{available} bytes at {position} are too few for a batch header")
    smallest = LEAST_LENGTH.get(magic)
    if smallest is None:
        raise CorruptRecordsError(f"batch at {position} has magic {magic}, known are 0 to 2")
    if length < smallest:
        raise CorruptRecordsError(f"message at {position} claims {length} bytes, the least is {smallest}")
    if LOG_OVERHEAD_BYTES + length > available:
        raise TruncatedBatchError(f"message at {position} claims {length} bytes, {available} are there")
    timestamp_ms = NO_TIMESTAMP
    attributes &= CODEC_MASK
    if magic == 1:
        (attributes,) = _I8.unpack_from(data, position + MESSAGE_ATTRIBUTES_POSITION)
        attributes &= CODEC_MASK | LOG_APPEND_TIME_BIT
        (timestamp_ms,) = _I64.unpack_from(data, position + MESSAGE_TIMESTAMP_POSITION)
    return BatchHeader(
        base_offset=offset,
        batch_length=length,
        partition_leader_epoch=NO_LEADER_EPOCH,
        magic=magic,
        crc=crc,
        attributes=attributes,
        last_offset_delta=0,
        base_timestamp_ms=timestamp_ms,
        max_timestamp_ms=timestamp_ms,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        count=1,
    )


_MIN_BATCH_LENGTH: Final = LEAST_LENGTH[2]
_LENGTH: Final = BatchHeader._fields.index("batch_length")
_MAGIC: Final = BatchHeader._fields.index("magic")
_CRC: Final = BatchHeader._fields.index("crc")
"""Indexes into a BatchHeader: a quarter of the price of its attributes, on the way of every batch."""

_I8: Final = struct.Struct(">b")
_I16: Final = struct.Struct(">h")
_I32: Final = struct.Struct(">i")
_U32: Final = struct.Struct(">I")
_I64: Final = struct.Struct(">q")
_MESSAGE_HEADER_START: Final = struct.Struct(">qiIbb")

_new_tuple: Final = tuple.__new__
_unpack_header: Final = BATCH_HEADER.unpack_from
_pack_i64: Final = _I64.pack_into
_pack_i32: Final = _I32.pack_into
