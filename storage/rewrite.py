"""Appends whose records must be looked at: per-record checks, another codec, old message formats, timestamp types.

Off the hot path: this works record by record. Pure, like `validate`.
"""

import struct
from collections.abc import Iterable
from typing import Final

from kavka.protocol.errors import DecodeError, ErrorCode
from kavka.protocol.records.batch import (
    BatchHeader,
    Codec,
    Record,
    TimestampType,
    build_batch,
    iter_batch_headers,
    iter_records,
    patch_log_append_time,
    read_header,
)
from kavka.protocol.records.errors import UnsupportedCodecError
from kavka.protocol.records.header import LOG_APPEND_TIME_BIT, write_crc
from kavka.protocol.records.legacy import to_v2
from kavka.storage.appending import AppendError
from kavka.storage.validate import NO_BOUND, AppendRules

MAX_RECORD_ERRORS: Final = 100
_I16: Final = struct.Struct(">h")
_ATTRIBUTES_POSITION: Final = 21


def convert_old_format(records: bytes | bytearray | memoryview) -> bytearray:
    """A message set of magic 0 or 1 (Produce v0 to v2) as one v2 batch; nothing of nothing. Raises AppendError.

    What is cut off at the end is left out. Compressed messages come as one wrapper, and all have the same magic.
    """
    try:
        headers = list(iter_batch_headers(records, allow_truncated_tail=True))
        if not headers:
            return bytearray()
        if len(headers) > 1 and any(header.codec != Codec.NONE for _, header in headers):
            raise AppendError(ErrorCode.INVALID_RECORD, "more than one message where one is compressed")
        if len({header.magic for _, header in headers}) > 1:
            raise AppendError(ErrorCode.INVALID_RECORD, "messages of different magics")
        position, last = headers[-1]
        return bytearray(to_v2(memoryview(records)[: position + last.size_bytes]))
    except UnsupportedCodecError as error:
        raise AppendError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, str(error)) from error
    except DecodeError as error:
        raise AppendError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error


def fit(records: bytearray | memoryview, rules: AppendRules, now_ms: int) -> bytearray | memoryview:
    """Make a checked batch what the topic asks for: walk it, recompress it, stamp it.

    Returns `records`, patched where needed, or a new batch. Raises AppendError with the records at fault.
    """
    header = read_header(records)
    if header.is_control:
        return records
    if rules.walks_records:
        _check_records(_records_of(records), rules, now_ms)
    if rules.codec >= 0 and header.codec != rules.codec:
        records = _recompress(records, header, rules)
    if rules.log_append_time:
        patch_log_append_time(records, 0, now_ms)
    elif header.timestamp_type == TimestampType.LOG_APPEND:
        _I16.pack_into(records, _ATTRIBUTES_POSITION, read_header(records).attributes & ~LOG_APPEND_TIME_BIT)
        write_crc(records, 0)
    return records


def _records_of(records: bytearray | memoryview) -> Iterable[Record]:
    try:
        yield from iter_records(records)
    except DecodeError as error:
        raise AppendError(ErrorCode.INVALID_RECORD, str(error)) from error


def _check_records(records: Iterable[Record], rules: AppendRules, now_ms: int) -> None:
    latest = now_ms + rules.after_max_ms
    earliest = now_ms - rules.before_max_ms if rules.before_max_ms != NO_BOUND else -NO_BOUND
    errors: list[tuple[int, str]] = []
    code = ErrorCode.INVALID_RECORD
    for index, record in enumerate(records):
        if rules.is_compacted and record.key is None:
            errors.append((index, "a compacted topic takes no message without a key"))
        elif record.timestamp_ms >= 0 and not earliest <= record.timestamp_ms <= latest:
            if not errors:
                code = ErrorCode.INVALID_TIMESTAMP
            errors.append((index, f"timestamp {record.timestamp_ms} is out of bounds, the broker's is {now_ms}"))
        if len(errors) == MAX_RECORD_ERRORS:
            break
    if errors:
        raise AppendError(code, "one or more records have been rejected", tuple(errors))


def _recompress(records: bytearray | memoryview, header: BatchHeader, rules: AppendRules) -> bytearray:
    return bytearray(
        build_batch(
            _records_of(records),
            codec=rules.codec,
            level=rules.level,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            transactional=header.is_transactional,
            timestamp_type=TimestampType.CREATE,
        )
    )
