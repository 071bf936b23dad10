"""When the records were made that a group has not read yet: the oldest one's timestamp of each partition."""

import time
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from kavka.cli.output import complain
from kavka.client.kafka_error import KafkaError
from kavka.client.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kavka.client import Consumer

_PARTITION_BYTES: Final = 65_536
_FETCH_BYTES: Final = 4 * 1024 * 1024
"""Of all partitions of a leader at a time. A batch larger than that is still given, one at a time."""
_TIMEOUT_MS: Final = 30_000
_PATIENCE_MS: Final = 500
NOT_YET: Final = (1 << 63) - 1
"""The timestamp of a record that is still to come: only marks of transactions lie before the group."""


class Unread(NamedTuple):
    """What lies before a group in a partition."""

    partition: TopicPartition
    offset: int
    """Where it goes on."""
    end: int
    """One after the last record."""


class UnreadTimestamps:
    """Reads a record a partition, and remembers it until the group is beyond it. Owned by one thread."""

    def __init__(self, settings: Mapping[str, str], timeout_ms: int | None) -> None:
        """`timeout_ms`: how long to look at most. Nothing is connected before the first look."""
        self._settings = settings
        self._timeout_ms = _TIMEOUT_MS if timeout_ms is None else timeout_ms
        self._consumer: Consumer | None = None
        self._known: dict[Unread, int] = {}
        self._complaint = ""

    def look(self, unread: Iterable[Unread]) -> Mapping[Unread, int]:
        """The timestamps of the first records from these offsets on, in milliseconds; fewer if there is no more time.

        Where it may not read it says so on stderr, and goes on without.
        """
        asked, known = list(unread), self._known
        # A record stays the first one when others come behind it; marks do not stay alone.
        records = {
            (each.partition, each.offset): timestamp_ms
            for each, timestamp_ms in known.items()
            if timestamp_ms != NOT_YET
        }
        remembered = {each: known.get(each, records.get((each.partition, each.offset))) for each in asked}
        self._known = {each: found for each, found in remembered.items() if found is not None}
        waited = [each for each in asked if each not in self._known]
        deadline_s = time.monotonic() + self._timeout_ms / 1000
        try:
            while waited:
                # Several groups may be in one partition, where the consumer has one position.
                at_once = {each.partition: each for each in waited}
                self._read(at_once, deadline_s)
                waited = [each for each in waited if at_once.get(each.partition) is not each]
        except KafkaError as error:
            if str(error) != self._complaint:
                self._complaint = str(error)
                complain("lag in seconds is not known", error)
        return self._known

    def close(self) -> None:
        """End the client, if there was one."""
        if self._consumer is not None:
            self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read(self, unread: Mapping[TopicPartition, Unread], deadline_s: float) -> None:
        """Raises KafkaError."""
        waited = dict(unread)
        consumer = self._opened()
        consumer.assign(waited)
        for partition, each in waited.items():
            consumer.seek(partition, each.offset)
        consumer.resume(waited)
        while waited and (left_ms := (deadline_s - time.monotonic()) * 1000) > 0:
            found = consumer.poll(min(left_ms, _PATIENCE_MS)).by_partition()
            for partition, records in found.items():
                if partition in waited:
                    self._known[waited.pop(partition)] = records[0].timestamp_ms
            consumer.pause(found)
            if not found:
                # Behind the last record there may be marks of transactions alone.
                for partition in [p for p, each in waited.items() if consumer.position(p, left_ms) >= each.end]:
                    self._known[waited.pop(partition)] = NOT_YET

    def _opened(self) -> "Consumer":
        if self._consumer is None:
            from kavka.client.consumer.consumer import Consumer

            own = {
                "auto.offset.reset": "earliest",
                "enable.auto.commit": "false",
                "isolation.level": "read_uncommitted",
                "max.partition.fetch.bytes": str(_PARTITION_BYTES),
                "fetch.max.bytes": str(_FETCH_BYTES),
                "fetch.min.bytes": "1",
            }
            settings = {name: value for name, value in self._settings.items() if not name.startswith("group.")}
            self._consumer = Consumer({**settings, **own})
        return self._consumer
