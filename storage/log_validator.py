"""What a leader checks before a batch goes into the log, and Kafka's error codes for it.

The header and the CRC are always checked; records are walked only where the answer needs it (compacted topics, bounds
on timestamps into the past, another codec, old formats, `kavka.validate.records=all`). So a crafted batch with a right
CRC can reach the log, and every reader of records is written for that.

Pure: nothing here knows a file or a clock.
"""

from typing import Final, NamedTuple

from kavka.config.topic_config import TopicConfig
from kavka.protocol.errors import ErrorCode
from kavka.protocol.records.batch import BATCH_HEADER, HEADER_SIZE_BYTES, LOG_OVERHEAD_BYTES, BatchHeader, Codec
from kavka.protocol.records.crc import crc32c
from kavka.protocol.records.header import (
    ATTRIBUTE_BITS_POSITION,
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    CONTROL_BIT,
    LOG_APPEND_TIME_BIT,
    MAGIC_POSITION,
    TRANSACTIONAL_BIT,
    BytesLike,
)
from kavka.storage.append_result import AppendError, MalformedRequestError, Origin, TooFarAheadError

NO_BOUND: Final = (1 << 63) - 1
INVALID_TIMES: Final = "One or more records have been rejected due to invalid timestamp"

_CODECS: Final = {
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}


class CheckedBatch(NamedTuple):
    """What an append needs of a batch that passed."""

    size_bytes: int
    attributes: int
    last_offset_delta: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int


class AppendRules:
    """What a topic's configuration asks of an append, worked out once. Immutable.

    `largest_plain_bytes`: a coordinator's batch up to that size goes in as it is; `codec` is -1 where the producer's is
    kept; `walks_records` says that headers don't answer everything,
    `looks_closer` that `rewrite.fit` must see each batch; `unpacked_limit_bytes` is what a batch may unpack to.
    """

    __slots__ = (
        "after_max_ms",
        "before_max_ms",
        "codec",
        "is_compacted",
        "largest_plain_bytes",
        "level",
        "log_append_time",
        "looks_closer",
        "max_message_bytes",
        "segment_bytes",
        "unpacked_limit_bytes",
        "walks_records",
    )

    def __init__(self, config: TopicConfig, *, validate_all_records: bool) -> None:
        self.max_message_bytes = config.max_message_bytes
        self.unpacked_limit_bytes = unpacked_limit_bytes(config.max_message_bytes)
        self.segment_bytes = config.segment_bytes
        self.log_append_time = config.is_log_append_time
        self.before_max_ms = NO_BOUND if self.log_append_time else config.message_timestamp_before_max_ms
        self.after_max_ms = NO_BOUND if self.log_append_time else config.message_timestamp_after_max_ms
        self.largest_plain_bytes = 0 if self.log_append_time else min(self.max_message_bytes, self.segment_bytes)
        self.is_compacted = config.is_compacted
        self.codec: int = _CODECS.get(config.compression_type, -1)
        self.level = _level_of(config)
        self.walks_records = validate_all_records or self.is_compacted or self.before_max_ms != NO_BOUND
        self.looks_closer = self.walks_records or self.log_append_time or self.codec >= 0

    def unpacks(self, records: BytesLike) -> bool:
        """Whether `rewrite.fit` decompresses this batch, to whatever that comes to; looks at two of its bytes alone."""
        if len(records) < HEADER_SIZE_BYTES:
            return False
        codec = records[ATTRIBUTE_BITS_POSITION] & CODEC_MASK
        return codec != 0 and (self.walks_records or 0 <= self.codec != codec)


def check_batch(
    records: bytearray | memoryview | bytes, rules: AppendRules, now_ms: int, origin: Origin, zstd_allowed: bool
) -> CheckedBatch:
    """Check the header and the CRC of `records`, which must be exactly one v2 batch. Raises AppendError."""
    size = len(records)
    if size < HEADER_SIZE_BYTES:
        raise MalformedRequestError(ErrorCode.INVALID_RECORD, f"{size} bytes are too few for a record batch")
    (
        base_offset,
        length,
        _,
        magic,
        crc,
        attributes,
        last_delta,
        _,
        max_timestamp_ms,
        producer_id,
        epoch,
        sequence,
        count,
    ) = _unpack(records, 0)
    if length + LOG_OVERHEAD_BYTES != size or magic != 2:
        raise _wrong_framing(size, length, magic)
    codec = attributes & CODEC_MASK
    if codec >= _ZSTD and (codec > _ZSTD or not zstd_allowed):
        raise MalformedRequestError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"codec {codec} isn't possible in this request version"
        )
    if size > rules.max_message_bytes:
        raise message_too_large(size, rules.max_message_bytes)
    if crc32c(memoryview(records)[ATTRIBUTES_POSITION:]) != crc:
        raise AppendError(ErrorCode.CORRUPT_MESSAGE, "the record batch's CRC doesn't fit its content")
    # One chain of comparisons that a good batch passes; what exactly is wrong with another is found out later.
    if not (
        0 < count == last_delta + 1
        and base_offset == 0
        and (producer_id < 0 or (sequence >= 0 and epoch >= 0))
        and not attributes & _TRANSACTIONAL_OR_CONTROL
    ):
        _check_rare(base_offset, count, last_delta, attributes, producer_id, epoch, sequence, origin)
    if size > rules.segment_bytes:
        raise _beyond_segment(size, rules)
    if rules.log_append_time:
        if attributes & LOG_APPEND_TIME_BIT and origin == Origin.CLIENT:
            raise AppendError(
                ErrorCode.INVALID_TIMESTAMP, "a producer must not set the timestamp type to LogAppendTime"
            )
    elif max_timestamp_ms - now_ms > rules.after_max_ms and origin == Origin.CLIENT and not rules.walks_records:
        reason = f"timestamp {max_timestamp_ms} is more than {rules.after_max_ms} ms ahead of the broker's {now_ms}"
        raise TooFarAheadError(ErrorCode.INVALID_TIMESTAMP, INVALID_TIMES, ((count - 1, reason),))
    return _new_tuple(CheckedBatch, (size, attributes, last_delta, max_timestamp_ms, producer_id, epoch, sequence))


def recheck(
    records: bytearray | memoryview, head: bytes | None, batch: CheckedBatch, rules: AppendRules
) -> CheckedBatch:
    """The checked batch as `rewrite.fit` wants it to be. Raises AppendError if it grew too large."""
    size = len(records)
    if size > rules.max_message_bytes and size > batch.size_bytes:
        raise message_too_large(size, rules.max_message_bytes)
    if size > rules.segment_bytes:
        raise _beyond_segment(size, rules)
    header = BatchHeader(*_unpack(records if head is None else head, 0))
    return batch._replace(size_bytes=size, attributes=header.attributes, max_timestamp_ms=header.max_timestamp_ms)


def unpacked_limit_bytes(max_message_bytes: int) -> int:
    """What a batch of a topic with this `max.message.bytes` may unpack to where its records are looked at.

    Kafka has no such limit. Text packs to a tenth, and 32 times is what ordinary data does not reach; the floor leaves
    the small batches of clients alone, whatever they hold; the ceiling bounds what each I/O thread may need. A producer
    that meets the limit is told MESSAGE_TOO_LARGE, at which Java's splits the batch.
    """
    usual = min(max(_UNPACKED_FACTOR * max_message_bytes, _UNPACKED_FLOOR_BYTES), _UNPACKED_CEILING_BYTES)
    return max(usual, max_message_bytes)


def is_v2(records: bytearray | memoryview) -> bool:
    """Whether the bytes may be a v2 batch, not a message set of magic 0 or 1."""
    return len(records) > MAGIC_POSITION and records[MAGIC_POSITION] >= 2


def message_too_large(size_bytes: int, limit_bytes: int) -> AppendError:
    return AppendError(
        ErrorCode.MESSAGE_TOO_LARGE, f"the record batch has {size_bytes} bytes, the topic takes {limit_bytes}"
    )


def _beyond_segment(size_bytes: int, rules: AppendRules) -> AppendError:
    return AppendError(
        ErrorCode.RECORD_LIST_TOO_LARGE, f"the batch has {size_bytes} bytes, a segment at most {rules.segment_bytes}"
    )


def _check_rare(
    base_offset: int,
    count: int,
    last_delta: int,
    attributes: int,
    producer_id: int,
    epoch: int,
    sequence: int,
    origin: Origin,
) -> None:
    wrong = ""
    if count <= 0 or count != last_delta + 1:
        wrong = f"{count} records with a last offset delta of {last_delta}"
    elif base_offset != 0 and origin == Origin.CLIENT:
        wrong = f"the base offset is {base_offset}, not 0"
    elif attributes & CONTROL_BIT and origin == Origin.CLIENT:
        wrong = "clients may not write control records"
    elif attributes & TRANSACTIONAL_BIT and producer_id < 0:
        wrong = "a transactional batch without a producer id"
    elif producer_id >= 0 and epoch < 0:
        wrong = f"producer id {producer_id} with epoch {epoch}"
    elif producer_id >= 0 and sequence < 0 and origin == Origin.CLIENT:
        wrong = f"producer id {producer_id} with sequence {sequence}"
    if wrong:
        raise AppendError(ErrorCode.INVALID_RECORD, wrong)


def _wrong_framing(size: int, length: int, magic: int) -> AppendError:
    if not 0 <= magic <= 2 or length + LOG_OVERHEAD_BYTES < HEADER_SIZE_BYTES:
        return MalformedRequestError(ErrorCode.CORRUPT_MESSAGE, f"a batch of magic {magic} with {length} bytes")
    wrong = f"the record batch claims {length} bytes, {size} are there"
    if magic != 2:
        wrong = f"magic {magic} where only record batches of magic 2 may stand"
    elif length + LOG_OVERHEAD_BYTES < size:
        wrong = "more than the one record batch that a partition may have"
    return MalformedRequestError(ErrorCode.INVALID_RECORD, wrong)


def _level_of(config: TopicConfig) -> int | None:
    if config.compression_type == "gzip":
        return config.compression_gzip_level
    if config.compression_type == "lz4":
        return config.compression_lz4_level
    if config.compression_type == "zstd":
        return config.compression_zstd_level
    return None


_UNPACKED_FACTOR: Final = 32
_UNPACKED_FLOOR_BYTES: Final = 32 << 20
_UNPACKED_CEILING_BYTES: Final = 256 << 20
_ZSTD: Final = int(Codec.ZSTD)
"""A plain number: an enum's member costs a tenth of a microsecond each time it is named."""
_TRANSACTIONAL_OR_CONTROL: Final = TRANSACTIONAL_BIT | CONTROL_BIT
_unpack: Final = BATCH_HEADER.unpack_from
_new_tuple: Final = tuple.__new__
