"""A batch's records against what a topic demands, for `kavka.validate.records = all` and compacted topics.

The checks on headers cost nothing per record and stand where batches are appended; these here walk every record.
"""

from typing import Final, NamedTuple

from kavka.protocol.errors import ErrorCode
from kavka.protocol.records.compression import DECOMPRESSED_LIMIT_BYTES
from kavka.protocol.records.header import NO_TIMESTAMP, BytesLike, read_header
from kavka.protocol.records.legacy import iter_records_of


class RecordError(NamedTuple):
    """One refused record: its place in the batch from 0 on, as Produce v8 reports it (KIP-467)."""

    batch_index: int
    code: ErrorCode
    reason: str


class Validation(NamedTuple):
    """What a walk over a batch's records found."""

    errors: list[RecordError]
    max_timestamp_ms: int
    """The largest there is: a header that says otherwise is put right by `patch_max_timestamp`, as Kafka does."""


def validate_records(
    data: BytesLike,
    position: int = 0,
    *,
    keys_required: bool = False,
    timestamp_bounds_ms: tuple[int, int] | None = None,
    limit_bytes: int = DECOMPRESSED_LIMIT_BYTES,
) -> Validation:
    """Walk the batch at `position`: it parses, offset deltas run 0, 1, 2..., keys and timestamps are as demanded.

    `keys_required`: compacted topics take no null keys. `timestamp_bounds_ms`: the earliest and the latest allowed; a
    record without timestamp passes. The walk ends at the thousandth error: the batch is refused anyway.
    Raises CorruptRecordsError for a batch that doesn't parse.
    """
    header = read_header(data, position)
    base_offset = header.base_offset
    earliest_ms, latest_ms = timestamp_bounds_ms or (-(2**63), 2**63)
    errors: list[RecordError] = []
    max_timestamp_ms = NO_TIMESTAMP
    for index, record in enumerate(iter_records_of(data, position, header, limit_bytes)):
        if len(errors) == _MAX_ERRORS:
            break
        timestamp_ms = record.timestamp_ms
        max_timestamp_ms = max(max_timestamp_ms, timestamp_ms)
        if record.offset != base_offset + index:
            delta = record.offset - base_offset
            errors.append(RecordError(index, ErrorCode.INVALID_RECORD, f"offset delta {delta} instead of {index}"))
        elif keys_required and record.key is None:
            errors.append(RecordError(index, ErrorCode.INVALID_RECORD, "no key, but the topic is compacted"))
        elif timestamp_ms != NO_TIMESTAMP and not earliest_ms <= timestamp_ms <= latest_ms:
            reason = f"timestamp {timestamp_ms} is not within {earliest_ms} and {latest_ms}"
            errors.append(RecordError(index, ErrorCode.INVALID_TIMESTAMP, reason))
    return Validation(errors, max_timestamp_ms)


_MAX_ERRORS: Final = 1000
