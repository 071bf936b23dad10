"""Appends whose records must be looked at: per-record checks, another codec, old message formats, timestamp types.

Off the hot path: this works record by record. Pure, like `log_validator.py`.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kavka.protocol.errors import DecodeError, ErrorCode
from kavka.protocol.records.batch import (
    BatchHeader,
    Codec,
    Record,
    TimestampType,
    build_batch,
    iter_batch_headers,
    iter_records,
    read_header,
    restamped_head,
)
from kavka.protocol.records.errors import CompressionLimitError, UnsupportedCodecError
from kavka.protocol.records.legacy import to_v2
from kavka.protocol.records.validation import RecordsValidation
from kavka.storage.append_result import AppendError
from kavka.storage.log_validator import INVALID_TIMES, NO_BOUND, AppendRules, is_v2


def convert_old_format(records: bytes | bytearray | memoryview, rules: AppendRules) -> bytearray:
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
        whole = memoryview(records)[: position + last.size_bytes]
        return bytearray(to_v2(whole, limit_bytes=rules.unpacked_limit_bytes))
    except UnsupportedCodecError as error:
        raise AppendError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, str(error)) from error
    except CompressionLimitError as error:
        raise _unpacks_to_too_much(error) from error
    except DecodeError as error:
        raise AppendError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error


class Fitted(NamedTuple):
    """A batch as the topic asks for it."""

    records: bytearray | memoryview
    """Those that came, byte for byte, or a new batch."""
    head: bytes | None
    """What has to stand in front of `records` instead of their own header, once nothing can refuse them any more."""


def fit(records: bytearray | memoryview, rules: AppendRules, now_ms: int) -> Fitted:
    """Make a checked batch what the topic asks for: walk it, recompress it, stamp it, correct its largest timestamp.

    `records` stay as they are: who is refused later may come again with them. Raises AppendError with the records at
    fault.
    """
    header = read_header(records)
    if header.is_control:
        return Fitted(records, None)
    max_timestamp_ms = header.max_timestamp_ms
    recompressed = rules.codec >= 0 and header.codec != rules.codec
    if rules.walks_records or recompressed:
        validation = RecordsValidation(
            header.base_offset,
            keys_required=rules.is_compacted,
            timestamp_bounds_ms=(now_ms - rules.before_max_ms, now_ms + rules.after_max_ms),
        )
        found = validation.passing(_records_of(records, rules))
        if recompressed:
            records = _recompress(found, header, rules)
        else:
            for _ in found:
                pass
        _refuse(validation)
        max_timestamp_ms = validation.max_timestamp_ms
    if rules.log_append_time:
        return Fitted(records, restamped_head(records, TimestampType.LOG_APPEND, now_ms))
    stamped = header.timestamp_type == TimestampType.LOG_APPEND or header.max_timestamp_ms != max_timestamp_ms
    if recompressed or not stamped:
        return Fitted(records, None)
    return Fitted(records, restamped_head(records, TimestampType.CREATE, max_timestamp_ms))


def _records_of(records: bytearray | memoryview, rules: AppendRules) -> Iterator[Record]:
    try:
        yield from iter_records(records, limit_bytes=rules.unpacked_limit_bytes)
    except CompressionLimitError as error:
        raise _unpacks_to_too_much(error) from error
    except DecodeError as error:
        raise AppendError(ErrorCode.INVALID_RECORD, str(error)) from error


def records_ahead(records: bytearray | memoryview, rules: AppendRules, now_ms: int) -> tuple[tuple[int, str], ...]:
    """The records of a batch that a TooFarAheadError refused by its header; none if they can't be read."""
    try:
        if not is_v2(records):
            records = convert_old_format(records, rules)
        validation = RecordsValidation(
            read_header(records).base_offset, timestamp_bounds_ms=(-NO_BOUND, now_ms + rules.after_max_ms)
        )
        for _ in validation.passing(_records_of(records, rules)):
            pass
    except (AppendError, DecodeError):
        return ()
    return _at_fault(validation)


def _refuse(validation: RecordsValidation) -> None:
    errors = validation.errors
    if not errors:
        return
    code, words = ErrorCode.INVALID_RECORD, f"One or more records have been rejected due to {len(errors)} record errors"
    if any(error.code is ErrorCode.INVALID_TIMESTAMP for error in errors):
        code, words = ErrorCode.INVALID_TIMESTAMP, INVALID_TIMES
    raise AppendError(code, words, _at_fault(validation))


def _at_fault(validation: RecordsValidation) -> tuple[tuple[int, str], ...]:
    return tuple((error.batch_index, error.reason) for error in validation.errors)


def _unpacks_to_too_much(error: CompressionLimitError) -> AppendError:
    """MESSAGE_TOO_LARGE: a Java producer splits the batch and sends the halves."""
    return AppendError(ErrorCode.MESSAGE_TOO_LARGE, str(error))


def _recompress(records: Iterable[Record], header: BatchHeader, rules: AppendRules) -> bytearray:
    return bytearray(
        build_batch(
            records,
            codec=rules.codec,
            level=rules.level,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            transactional=header.is_transactional,
            timestamp_type=TimestampType.CREATE,
        )
    )
