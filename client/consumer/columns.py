"""Records of one partition as columns: for whoever works on all of them at once, with numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kavka.client.topic_partition import TopicPartition
from kavka.protocol.records.header import TimestampType
from kavka.protocol.records.record import PackedHeaders, RecordHeader

if TYPE_CHECKING:
    from kavka.protocol.records.record_lengths import Integers


class RecordColumns:
    """Records of one partition side by side; each array has one number (int64) a record. `len()` counts the records.

    Keys and values are slices of `body`: record i's value has `value_sizes[i]` bytes from `value_starts[i]` on. A size
    of -1 stands for no key or no value. `body` (bytes, or a view of what was received) has other bytes between them,
    and offsets may have gaps. `numpy.frombuffer(columns.body, numpy.uint8)` is its array.
    Immutable, for any thread.

        for columns in consumer.poll_columns(timeout_ms=1000):
            print(columns.topic, columns.offsets[-1], columns.value_sizes.sum())
    """

    __slots__ = (
        "_starts",
        "body",
        "ends",
        "has_headers",
        "header_starts",
        "key_sizes",
        "key_starts",
        "leader_epoch",
        "offsets",
        "timestamp_type",
        "timestamps_ms",
        "topic_partition",
        "value_sizes",
        "value_starts",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        leader_epoch: int | None,
        timestamp_type: TimestampType,
        body: bytes | memoryview,
        arrays: Sequence[Integers],
        *,
        starts: Integers | None = None,
        has_headers: bool = True,
    ) -> None:
        """`arrays`: offsets, timestamps, key starts and sizes, value starts and sizes, header starts, record ends.

        `starts` are where the records begin, if `body` has them whole.
        """
        self.has_headers: Final = has_headers
        """Whether any record may have some."""
        self.topic_partition: Final = topic_partition
        self.leader_epoch: Final = leader_epoch
        self.timestamp_type: Final = timestamp_type
        self.body: Final = body
        self._starts: Final = starts
        self.offsets, self.timestamps_ms, self.key_starts, self.key_sizes = arrays[:4]
        self.value_starts, self.value_sizes, self.header_starts, self.ends = arrays[4:]

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def topic(self) -> str:
        return self.topic_partition.topic

    @property
    def partition(self) -> int:
        return self.topic_partition.partition

    def part(self, first: int, end: int) -> RecordColumns:
        """The records from number `first` on, before number `end`. Nothing is copied."""
        if first == 0 and end >= len(self):
            return self
        keys_and_values = (self.key_starts, self.key_sizes, self.value_starts, self.value_sizes)
        arrays = (self.offsets, self.timestamps_ms, *keys_and_values, self.header_starts, self.ends)
        cut = [array[first:end] for array in arrays]
        return RecordColumns(
            self.topic_partition,
            self.leader_epoch,
            self.timestamp_type,
            self.body,
            cut,
            starts=None if self._starts is None else self._starts[first:end],
            has_headers=self.has_headers,
        )

    def keys(self) -> list[bytes | None]:
        """Each record's key."""
        from kavka.client.consumer.cutting import slices

        return slices(self.body, self.key_starts, self.key_sizes)

    def values(self) -> list[bytes | None]:
        """Each record's value."""
        from kavka.client.consumer.cutting import slices

        return slices(self.body, self.value_starts, self.value_sizes)

    def keys_and_values(self) -> tuple[list[bytes | None], list[bytes | None]]:
        """Both, which costs less than one after the other."""
        from kavka.client.consumer.cutting import Places, keys_and_values

        places = Places(self.key_starts, self.key_sizes, self.value_starts, self.value_sizes, self.ends)
        return keys_and_values(self.body, self._starts, places)

    def packed_headers(self) -> list[bytes] | None:
        """Each record's headers as they lie there; None when no record has any."""
        if not self.has_headers:
            return None
        places = zip(self.header_starts.tolist(), self.ends.tolist(), strict=True)
        return [bytes(self.body[start:end]) for start, end in places]

    def headers(self, number: int) -> tuple[RecordHeader, ...]:
        """The headers of one record."""
        return tuple(PackedHeaders(bytes(self.body[int(self.header_starts[number]) : int(self.ends[number])])))
