"""Where each partition's reading ends: `--until-offset`, `--until-time`, `--exit-at-end`."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kavka.client.api_errors import KafkaTimeoutError
from kavka.client.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kavka.client.consumer.consumer import Consumer
    from kavka.client.consumer.records import ConsumerRecord


class Until(NamedTuple):
    """What is given of these; records before it are read."""

    offset: int | None = None
    time_ms: int | None = None
    at_end: bool = False
    """The end as it is when reading begins."""

    @property
    def is_set(self) -> bool:
        return self.offset is not None or self.time_ms is not None or self.at_end


class Stops:
    """The offsets at which partitions end. Owned by the thread that polls.

    A time to come has no offset yet: records are looked at one by one, and once it has passed the brokers are asked.
    """

    def __init__(self, consumer: "Consumer", until: Until) -> None:
        self._consumer: Final = consumer
        self._until: Final = until
        self._offsets: Final[dict[TopicPartition, int]] = {}
        self._waiting: Final[set[TopicPartition]] = set()
        self._done: Final[set[TopicPartition]] = set()

    def add(self, partitions: Collection[TopicPartition], now_ms: int) -> None:
        """Find out where these end. Raises KafkaTimeoutError."""
        until = self._until
        if until.offset is not None:
            self._limit(dict.fromkeys(partitions, until.offset))
        if until.at_end:
            self._limit(self._consumer.end_offsets(partitions))
        if until.time_ms is not None:
            self._waiting.update(partitions)
            self.tick(now_ms)

    def remove(self, partitions: Collection[TopicPartition]) -> None:
        """These are not read any more."""
        for partition in partitions:
            self._offsets.pop(partition, None)
        self._waiting.difference_update(partitions)
        self._done.difference_update(partitions)

    def tick(self, now_ms: int) -> None:
        """The time may have come."""
        time_ms = self._until.time_ms
        if time_ms is None or now_ms < time_ms or not self._waiting:
            return
        found = self._consumer.offsets_for_times(dict.fromkeys(self._waiting, time_ms))
        ends = self._consumer.end_offsets(self._waiting)
        self._limit({each: ends[each] if place is None else place.offset for each, place in found.items()})
        self._waiting.clear()

    def _limit(self, offsets: dict[TopicPartition, int]) -> None:
        for partition, offset in offsets.items():
            self._offsets[partition] = min(offset, self._offsets.get(partition, offset))

    def cut(self, partition: TopicPartition, rows: "Sequence[ConsumerRecord]") -> "Sequence[ConsumerRecord]":
        """The records that come before the partition's end."""
        if partition in self._waiting:
            time_ms = self._until.time_ms
            assert time_ms is not None
            late = next((row.offset for row in rows if row.timestamp_ms >= time_ms), None)
            if late is not None:
                self._limit({partition: late})
                self._waiting.discard(partition)
        stop = self._offsets.get(partition)
        if stop is None or rows[-1].offset < stop:
            return rows
        return [row for row in rows if row.offset < stop]

    def finish(self) -> list[TopicPartition]:
        """The partitions that have come to their end since the last call."""
        found = [each for each in self._offsets if each not in self._done and self._is_done(each)]
        self._done.update(found)
        return found

    def _is_done(self, partition: TopicPartition) -> bool:
        try:
            return self._consumer.position(partition, 0) >= self._offsets[partition]
        except KafkaTimeoutError:
            return False  # where it begins is not known yet

    def are_done(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether all of these have come to their end."""
        return self._until.is_set and self._done.issuperset(partitions)
