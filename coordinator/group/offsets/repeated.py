"""A commit that a member makes again and again, each time with other offsets.

Its records and their batch are built once; a repetition sets offsets and times in them. That is most of what a commit
costs a coordinator.
"""

from struct import Struct
from typing import TYPE_CHECKING, Final

from kavka.coordinator.group.offsets.records import NO_EXPIRE_TIMESTAMP, offset_record
from kavka.coordinator.runtime.batches import batch_of
from kavka.coordinator.runtime.result import Result
from kavka.protocol.internal.group_records import OffsetCommitValue
from kavka.protocol.records.header import BASE_TIMESTAMP_POSITION, pack_timestamps, write_crc

if TYPE_CHECKING:
    from kavka.coordinator.runtime.result import CoordinatorRecord
    from kavka.protocol.messages.offset_commit import OffsetCommitRequest

OFFSET_MARK: Final = 0x4B61766B61204F00
TIME_MARK: Final = 0x4B61766B61205400

_NUMBER: Final = Struct(">q")
_put: Final = _NUMBER.pack_into


class RepeatedCommit:
    """The commit of one request; all its offsets are without metadata and expiry of their own.

    Threads: set and run by one thread at a time; run under the shard's lock.
    """

    __slots__ = ("_batch", "_places", "_result", "api_version", "request", "values")

    def __init__(self, request: "OffsetCommitRequest", api_version: int) -> None:
        """Raises ValueError for a request that holds the marks by which places are found."""
        self.request = request
        self.api_version = api_version
        records: list[CoordinatorRecord] = []
        self.values: list[OffsetCommitValue] = []
        """Of the records, in the request's order: set their `offset` before each repetition."""
        for topic in request.topics:
            for each in topic.partitions:
                number = len(records)
                record = offset_record(
                    request.group_id,
                    topic.name,
                    each.partition_index,
                    OFFSET_MARK + number,
                    each.committed_leader_epoch,
                    "",
                    TIME_MARK + number,
                    NO_EXPIRE_TIMESTAMP,
                )
                assert isinstance(record.value, OffsetCommitValue)
                records.append(record)
                self.values.append(record.value)
        self._result = Result(records)
        self._batch = batch_of(records, 0)
        self._places = [
            (value, self._place_of(value.offset), self._place_of(value.commit_timestamp)) for value in self.values
        ]

    def result(self, now_ms: int) -> Result:
        """The records and their batch, with the offsets that were set, committed at `now_ms`: always the same one."""
        result = self._result
        result.batch = batch = bytearray(self._batch)
        result.batch_timestamp_ms = now_ms
        for value, offset_position, time_position in self._places:
            value.commit_timestamp = now_ms
            _put(batch, offset_position, value.offset)
            _put(batch, time_position, now_ms)
        pack_timestamps(batch, BASE_TIMESTAMP_POSITION, now_ms, now_ms)
        write_crc(batch, 0)
        return result

    def _place_of(self, mark: int) -> int:
        packed = _NUMBER.pack(mark)
        if self._batch.count(packed) != 1:
            raise ValueError("a name holds a mark")
        return self._batch.index(packed)
