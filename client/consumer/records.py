"""What a consumer gives to its user: records, and the sequence of them that a poll returns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, Protocol, Self, overload

from kavka.client.topic_partition import TopicPartition
from kavka.protocol.records.header import TimestampType
from kavka.protocol.records.record import PackedHeaders, RecordHeader


class Piece(Protocol):
    """Records of one partition that are made when they are looked at."""

    def __len__(self) -> int: ...

    def records(self) -> list[ConsumerRecord]:
        """Made now."""


class _Fields(NamedTuple):
    """What a record has, and how it is got at. Its own constructor is a function of Python's: dearer than the rest."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: Any
    value: Any
    packed_headers: bytes
    timestamp_type: TimestampType
    leader_epoch: int | None


class ConsumerRecord(tuple[Any, ...]):
    """A record as it was read. Immutable: a tuple, made with many others at once, of all its fields in their order.

    `timestamp_ms` is what the producer said, or the broker's clock where `timestamp_type` is LOG_APPEND; -1: none.
    `key` and `value` are bytes, or what the deserializers made of them; None: there was none. `leader_epoch` is that of
    the batch, None in formats that have none.

    >>> from kavka.client.consumer.records import ConsumerRecord
    >>> record = ConsumerRecord(("visits", 3, 42, 1_700_000_000_000, b"key", b"value", b"\\0", 0, None))
    >>> record.offset, record.value, record.headers
    (42, b'value', ())
    """

    __slots__ = ()
    __match_args__ = (
        "topic",
        "partition",
        "offset",
        "timestamp_ms",
        "key",
        "value",
        "packed_headers",
        "timestamp_type",
        "leader_epoch",
    )

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: Any
    value: Any
    packed_headers: bytes
    timestamp_type: TimestampType
    leader_epoch: int | None

    @property
    def headers(self) -> tuple[RecordHeader, ...]:
        """(name, value) of each, in their order; a name may come twice. They are taken apart at each call."""
        packed = self.packed_headers
        return tuple(PackedHeaders(packed)) if packed != b"\0" else ()

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def serialized_key_size(self) -> int:
        """In bytes; -1: there was no key."""
        return -1 if self.key is None else len(self.key)

    @property
    def serialized_value_size(self) -> int:
        """In bytes; -1: there was no value."""
        return -1 if self.value is None else len(self.value)

    def _replace(self, **changes: Any) -> Self:
        """The same with other fields, as named tuples have it; for interceptors. Raises TypeError for what is none."""
        names = self.__match_args__
        fields = [changes.pop(name, value) for name, value in zip(names, self, strict=False)]
        if changes:
            raise TypeError(f"a record has no {sorted(changes)}")
        return type(self)((*fields, *self[len(names) :]))

    def header(self, name: str) -> bytes | None:
        """The value of the last header of that name; None when there is none."""
        return next((value for key, value in reversed(self.headers) if key == name), None)

    def __repr__(self) -> str:
        return (
            f"ConsumerRecord(topic={self.topic!r}, partition={self.partition}, offset={self.offset}, "
            f"timestamp_ms={self.timestamp_ms}, key={self.key!r}, value={self.value!r}, headers={self.headers!r})"
        )


for _name in _Fields._fields:
    setattr(ConsumerRecord, _name, getattr(_Fields, _name))


class DeserializedRecord(ConsumerRecord):
    """One whose key or value is no bytes any more: behind the fields it has their sizes."""

    __slots__ = ()

    @property
    def serialized_key_size(self) -> int:
        return _sizes(self)[0]

    @property
    def serialized_value_size(self) -> int:
        return _sizes(self)[1]


def _sizes(record: tuple[Any, ...]) -> tuple[int, int]:
    return record[-2], record[-1]


class ConsumerRecords(Sequence[ConsumerRecord]):
    """What a poll returns: the records of one or more partitions, those of a partition together and in order.

    They are made of the bytes that came when the first is looked at, all at once. Immutable to its user; one thread at
    a time, as the consumer itself.

    >>> from kavka.client.consumer.records import ConsumerRecords
    >>> records = ConsumerRecords([])
    >>> len(records), bool(records), list(records)
    (0, False, [])
    """

    __slots__ = ("_made", "_pieces", "_size")

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = pieces
        self._size = sum(map(len, pieces))
        self._made: Sequence[ConsumerRecord] | None = None

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[ConsumerRecord]:
        return iter(self._records())

    @overload
    def __getitem__(self, index: int) -> ConsumerRecord: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ConsumerRecord]: ...
    def __getitem__(self, index: int | slice) -> ConsumerRecord | Sequence[ConsumerRecord]:
        return self._records()[index]

    def by_partition(self) -> Mapping[TopicPartition, Sequence[ConsumerRecord]]:
        """The records of each partition that has some."""
        found: dict[TopicPartition, list[ConsumerRecord]] = {}
        last: TopicPartition | None = None
        for record in self._records():
            if last is None or (record.topic, record.partition) != last:
                last = record.topic_partition
                rows = found.setdefault(last, [])
            rows.append(record)
        return found

    def __repr__(self) -> str:
        return f"<ConsumerRecords of {self._size}>"

    def _records(self) -> Sequence[ConsumerRecord]:
        made = self._made
        if made is None:
            pieces = self._pieces
            if len(pieces) == 1:
                made = pieces[0].records()
            else:
                made = list(chain.from_iterable([piece.records() for piece in pieces]))
            self._made = made
            # What was received is needed no more.
            self._pieces = ()
        return made
