"""A batch's records against what a topic demands: compacted topics, bounds on timestamps, `kavka.validate.records=all`.

The checks on headers cost nothing per record and stand where batches are appended; these here walk every record.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from kavka.protocol.errors import ErrorCode
from kavka.protocol.records.header import NO_TIMESTAMP
from kavka.protocol.records.record import Record


class RecordError(NamedTuple):
    """One refused record: its place in the batch from 0 on, as Produce v8 reports it (KIP-467)."""

    batch_index: int
    code: ErrorCode
    reason: str


class RecordsValidation:
    """What a walk over one batch's records finds. One thread.

    `keys_required`: compacted topics take no null keys. `timestamp_bounds_ms`: the earliest and the latest allowed; a
    record without timestamp passes.
    """

    __slots__ = ("_base_offset", "_bounds_ms", "_keys_required", "errors", "max_timestamp_ms")

    def __init__(
        self, base_offset: int, *, keys_required: bool = False, timestamp_bounds_ms: tuple[int, int] | None = None
    ) -> None:
        self._base_offset = base_offset
        self._keys_required = keys_required
        self._bounds_ms = timestamp_bounds_ms or (-(2**63), 2**63)
        self.errors: list[RecordError] = []
        self.max_timestamp_ms = NO_TIMESTAMP
        """The largest there is: a header that says otherwise is put right by `restamped_head`, as Kafka does."""

    def passing(self, records: Iterable[Record]) -> Iterator[Record]:
        """Hand on each record once it was looked at; ends at the thousandth error, for the batch is refused anyway."""
        keys_required = self._keys_required
        earliest_ms, latest_ms = self._bounds_ms
        expected_offset = self._base_offset
        for record in records:
            timestamp_ms = record[_TIMESTAMP]
            if timestamp_ms > self.max_timestamp_ms:
                self.max_timestamp_ms = timestamp_ms
            if (
                record[_OFFSET] != expected_offset
                or (keys_required and record[_KEY] is None)
                or not (earliest_ms <= timestamp_ms <= latest_ms or timestamp_ms == NO_TIMESTAMP)
            ):
                self.errors.append(self._error(record, expected_offset - self._base_offset))
                if len(self.errors) == _MAX_ERRORS:
                    return
            expected_offset += 1
            yield record

    def _error(self, record: Record, index: int) -> RecordError:
        if self._keys_required and record.key is None:
            return RecordError(index, ErrorCode.INVALID_RECORD, "a compacted topic takes no message without a key")
        earliest_ms, latest_ms = self._bounds_ms
        if record.timestamp_ms != NO_TIMESTAMP and not earliest_ms <= record.timestamp_ms <= latest_ms:
            reason = f"timestamp {record.timestamp_ms} is not within {earliest_ms} and {latest_ms}"
            return RecordError(index, ErrorCode.INVALID_TIMESTAMP, reason)
        delta = record.offset - self._base_offset
        return RecordError(index, ErrorCode.INVALID_RECORD, f"offset delta {delta} instead of {index}")


_MAX_ERRORS: Final = 1000
_OFFSET: Final = 0
_TIMESTAMP: Final = 1
_KEY: Final = 2
"""Indexes into a Record, cheaper than its attributes."""
