"""Decoded records of one partition that wait to be given out, in either of two forms.

A stretch's records have one leader epoch and one kind of timestamp. What `poll` gives out of it is a piece.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

from kavka.client.consumer.columns import RecordColumns
from kavka.client.consumer.records import ConsumerRecord, DeserializedRecord
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.records.header import TimestampType
from kavka.protocol.records.reading import NO_HEADERS, RecordRow
from kavka.protocol.records.record import PackedHeaders

if TYPE_CHECKING:
    from kavka.protocol.records.record_lengths import Integers

Deserialize: TypeAlias = Callable[[str, Any, bytes | None], Any]
"""Takes topic, headers, and the bytes."""


class Deserializers(NamedTuple):
    """What makes objects of keys and values; None leaves the bytes."""

    key: Deserialize | None = None
    value: Deserialize | None = None


class Stretch(Protocol):
    """Records of a partition in the order of their offsets. Immutable."""

    @property
    def next_offset(self) -> int:
        """Where to read on after all of it."""

    @property
    def leader_epoch(self) -> int | None: ...

    @property
    def timestamp_type(self) -> TimestampType: ...

    def __len__(self) -> int: ...

    def offset_after(self, end: int) -> int:
        """Where to read on after the first `end` records."""

    def fields(self, first: int, end: int) -> Fields:
        """The fields of some of the records."""

    def columns(self, first: int, end: int) -> RecordColumns:
        """The same as arrays."""


class Fields(NamedTuple):
    """Fields of some records, each in the records' order; of headers, None stands for none anywhere."""

    offsets: Sequence[int]
    timestamps: Sequence[int]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Sequence[bytes] | None


class ColumnStretch:
    """Records that were decoded all at once."""

    __slots__ = ("_columns", "leader_epoch", "next_offset", "timestamp_type")

    def __init__(self, columns: RecordColumns, next_offset: int) -> None:
        self._columns: Final = columns
        self.next_offset: Final = next_offset
        self.leader_epoch: Final = columns.leader_epoch
        self.timestamp_type: Final = columns.timestamp_type

    def __len__(self) -> int:
        return len(self._columns)

    def offset_after(self, end: int) -> int:
        return self.next_offset if end >= len(self._columns) else int(self._columns.offsets[end - 1]) + 1

    def fields(self, first: int, end: int) -> Fields:
        part = self._columns.part(first, end)
        keys, values = part.keys_and_values()
        return Fields(part.offsets.tolist(), part.timestamps_ms.tolist(), keys, values, part.packed_headers())

    def columns(self, first: int, end: int) -> RecordColumns:
        return self._columns.part(first, end)


class RowStretch:
    """Records that were decoded one by one."""

    __slots__ = ("_partition", "_rows", "leader_epoch", "next_offset", "timestamp_type")

    def __init__(
        self,
        partition: TopicPartition,
        rows: Sequence[RecordRow],
        leader_epoch: int | None,
        timestamp_type: TimestampType,
        next_offset: int,
    ) -> None:
        self._partition: Final = partition
        self._rows: Final = rows
        self.timestamp_type: Final = timestamp_type
        self.leader_epoch: Final = leader_epoch
        self.next_offset: Final = next_offset

    def __len__(self) -> int:
        return len(self._rows)

    def offset_after(self, end: int) -> int:
        return self.next_offset if end >= len(self._rows) else self._rows[end - 1][0] + 1

    def fields(self, first: int, end: int) -> Fields:
        rows = self._rows if first == 0 and end >= len(self._rows) else self._rows[first:end]
        return Fields(*zip(*rows, strict=True))

    def columns(self, first: int, end: int) -> RecordColumns:
        import numpy as np

        fields = self.fields(first, end)
        headers = fields.headers or ()
        parts: list[bytes] = []
        starts: list[list[int]] = [[], [], [], []]
        position = 0
        for three in zip(fields.keys, fields.values, headers, strict=True):
            for places, part in zip(starts, three, strict=False):
                places.append(position)
                parts.append(part or b"")
                position += len(part or b"")
            starts[3].append(position)
        key_starts, value_starts, header_starts, ends = starts
        key_sizes, value_sizes = (list(map(_size, data)) for data in (fields.keys, fields.values))
        keys_and_values = (key_starts, key_sizes, value_starts, value_sizes)
        numbers: Iterable[Sequence[int]] = (fields.offsets, fields.timestamps, *keys_and_values, header_starts, ends)
        arrays: list[Integers] = [np.array(column, np.int64) for column in numbers]
        body = b"".join(parts)
        return RecordColumns(self._partition, self.leader_epoch, self.timestamp_type, body, arrays)


class DeserializationError(Exception):
    """A deserializer raised: `number` counts the records of the piece, the cause is what it raised."""

    def __init__(self, number: int, *, of_key: bool) -> None:
        super().__init__(f"record {number}'s {'key' if of_key else 'value'}")
        self.number: Final = number
        self.of_key: Final = of_key


class Piece:
    """Some records of a stretch, as one `poll` gives them out. One thread at a time."""

    __slots__ = ("_deserializers", "_made", "end", "first", "partition", "stretch")

    def __init__(
        self, partition: TopicPartition, stretch: Stretch, first: int, end: int, deserializers: Deserializers
    ) -> None:
        self.partition: Final = partition
        self.stretch: Final = stretch
        self.first: Final = first
        self.end: Final = end
        self._deserializers: Final = deserializers
        self._made: list[ConsumerRecord] | None = None

    def __len__(self) -> int:
        return self.end - self.first

    def records(self) -> list[ConsumerRecord]:
        """All made at once, by C's loops alone; deserializers are called once. Raises DeserializationError."""
        if self._made is not None:
            return self._made
        topic, partition = self.partition
        stretch = self.stretch
        offsets, timestamps, keys, values, headers = stretch.fields(self.first, self.end)
        constants = repeat(stretch.timestamp_type), repeat(stretch.leader_epoch)
        packed = repeat(NO_HEADERS) if headers is None else headers
        if self._deserializers == _NONE:
            rows = zip(
                repeat(topic), repeat(partition), offsets, timestamps, keys, values, packed, *constants, strict=False
            )
            return list(map(ConsumerRecord, rows))
        sizes = [list(map(_size, data)) for data in (keys, values)]
        keys, values = self._deserialized(topic, headers, keys, values)
        rows = zip(
            repeat(topic),
            repeat(partition),
            offsets,
            timestamps,
            keys,
            values,
            packed,
            *constants,
            *sizes,
            strict=False,
        )
        self._made = list(map(DeserializedRecord, rows))
        return self._made

    def _deserialized(
        self,
        topic: str,
        headers: Sequence[bytes] | None,
        keys: Sequence[bytes | None],
        values: Sequence[bytes | None],
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Keys first, then values, each all at once."""
        of_key, of_value = self._deserializers
        if of_key is not None:
            keys = _applied(of_key, topic, headers, keys, of_key=True)
        if of_value is not None:
            values = _applied(of_value, topic, headers, values, of_key=False)
        return keys, values


def _applied(
    deserialize: Deserialize,
    topic: str,
    headers: Sequence[bytes] | None,
    data: Sequence[bytes | None],
    *,
    of_key: bool,
) -> list[Any]:
    unpacked = repeat(()) if headers is None else map(PackedHeaders, headers)
    done: list[Any] = []
    try:
        # What was done before an exception is kept: so the failed one is known.
        done.extend(map(deserialize, repeat(topic), unpacked, data))
    except Exception as failure:
        raise DeserializationError(len(done), of_key=of_key) from failure
    return done


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


_NONE: Final = Deserializers()
