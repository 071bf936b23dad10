"""Record batches of magic 2, and the one place to import them from.

    batch    0..7   base offset             i64; given by the leader, outside the CRC
             8..11  batch length            i32; of all that follows this field
            12..15  partition leader epoch  i32; given by the leader, outside the CRC
            16      magic                   i8 = 2
            17..20  crc                     u32; CRC-32C from the attributes to the end
            21..22  attributes              i16; bits 0-2 codec, 3 timestamp type (1: log append), 4 transactional,
                                            5 control, 6 delete horizon set
            23..26  last offset delta       i32
            27..34  base timestamp          i64; the delete horizon when bit 6 is set
            35..42  max timestamp           i64; every record's timestamp when bit 3 is set
            43..50  producer id             i64
            51..52  producer epoch          i16
            53..56  base sequence           i32
            57..60  count                   i32; records that are there (fewer than the offsets after compaction)
            61..    records                 packed by the codec, one after the other

    record          length                  varint; of all that follows it
                    attributes              i8, unused
                    timestamp delta         varlong; from the base timestamp
                    offset delta            varint; from the base offset
                    key length, key         varint (negative: null) and bytes
                    value length, value     varint (negative: null) and bytes
                    header count            varint; then for each: key length and UTF-8, value length and bytes

    control record  key: version i16 = 0, type i16 (0 abort, 1 commit); value: version i16 = 0, coordinator epoch i32

Integers are big endian, varints zigzag. `read_header` costs a struct call and `verify_crc` a CRC: that is all that the
way of a produced batch needs. Records are parsed where an answer needs them.
"""

from collections.abc import Iterator

from kavka.protocol.records.builder import (
    ControlType,
    build_batch,
    build_control_batch,
    control_type_of,
    coordinator_epoch_of,
)
from kavka.protocol.records.compression import DECOMPRESSED_LIMIT_BYTES, Codec
from kavka.protocol.records.header import (
    BATCH_HEADER,
    HEADER_SIZE_BYTES,
    LOG_OVERHEAD_BYTES,
    BatchHeader,
    BytesLike,
    TimestampType,
    exchange_head,
    iter_batch_headers,
    patch_offsets,
    read_header,
    restamped_head,
    verify_crc,
)
from kavka.protocol.records.legacy import iter_records_of
from kavka.protocol.records.record import Record

__all__ = [
    "BATCH_HEADER",
    "DECOMPRESSED_LIMIT_BYTES",
    "HEADER_SIZE_BYTES",
    "LOG_OVERHEAD_BYTES",
    "BatchHeader",
    "BytesLike",
    "Codec",
    "ControlType",
    "Record",
    "TimestampType",
    "build_batch",
    "build_control_batch",
    "control_type_of",
    "coordinator_epoch_of",
    "exchange_head",
    "iter_batch_headers",
    "iter_records",
    "patch_offsets",
    "read_header",
    "restamped_head",
    "verify_crc",
]


def iter_records(
    data: BytesLike, position: int = 0, *, limit_bytes: int = DECOMPRESSED_LIMIT_BYTES
) -> Iterator[Record]:
    """The records of the batch at `position`, any magic; lazily, so that errors come when reached.

    `limit_bytes` bounds what the batch may unpack to. The CRC isn't checked.
    Raises what `read_header` and `decompress` raise, and CorruptRecordsError for records that lie about themselves.
    """
    return iter_records_of(data, position, read_header(data, position), limit_bytes)
