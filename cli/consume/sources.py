"""What is read: partitions that stand alone, or those that a group gives."""

import re
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from kavka.cli.consume.places import EARLIEST, Place
from kavka.cli.consume.stops import Stops
from kavka.cli.failing import Failure
from kavka.client.api_errors import KafkaError
from kavka.client.consumer.group.port import OffsetAndMetadata, RebalanceListener
from kavka.client.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kavka.client.consumer.consumer import Consumer

REFRESH_MS: Final = 30_000
"""How often it is looked whether there are new partitions."""
COMMIT_MS: Final = 5_000
BREAK_OFF_MS: Final = 5_000.0
"""Who interrupts does not wait for brokers that are gone."""


class Topics(NamedTuple):
    """Which ones: by name, or all that a pattern matches as a whole, and of these all partitions or some."""

    names: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    partitions: tuple[int, ...] | None = None


class Source(Protocol):
    """Gives a consumer what it reads. Owned by the thread that polls."""

    def start(self, now_ms: int) -> None:
        """Raises Failure where there is nothing to read."""

    def tick(self, now_ms: int) -> None:
        """After each poll, before its records are looked at."""

    def shown(self, partition: TopicPartition, following: OffsetAndMetadata) -> None:
        """All records before this one have been shown."""

    def finish(self) -> None:
        """At the end: commit what was shown. Raises KafkaError."""

    def break_off(self) -> None:
        """At an early end, in place of `finish`: the same, not for long; what keeps it from that is only told."""


class Alone:
    """Reads partitions that nobody else shares, from a place on; partitions that come later from their beginning."""

    def __init__(self, consumer: "Consumer", topics: Topics, begin: Place, stops: Stops, *, follows: bool) -> None:
        """`follows`: new partitions are looked for."""
        self._consumer: Final = consumer
        self._topics: Final = topics
        self._begin: Final = begin
        self._stops: Final = stops
        self._follows: Final = follows
        self._known: set[TopicPartition] = set()
        self._looked_ms = 0

    def start(self, now_ms: int) -> None:
        found = self._partitions()
        if self._topics.pattern is None:
            self._check(found)
        if not found and not self._follows:
            raise Failure(f"no topic matches {self._topics.pattern.pattern if self._topics.pattern else ''}")
        self._looked_ms = now_ms
        self._read(found, self._begin, now_ms)

    def tick(self, now_ms: int) -> None:
        if self._follows and now_ms - self._looked_ms >= REFRESH_MS:
            self._looked_ms = now_ms
            self._read(self._partitions(), Place(name=EARLIEST), now_ms)

    def shown(self, partition: TopicPartition, following: OffsetAndMetadata) -> None:
        """Nobody wants to know."""

    def finish(self) -> None:
        """Nothing is left to do."""

    def break_off(self) -> None:
        """Nothing is left to do."""

    def _partitions(self) -> set[TopicPartition]:
        listed = self._consumer.list_topics() if self._topics.pattern is not None else {}
        pattern, wanted = self._topics.pattern, self._topics.partitions
        names = [
            name for name, topic in listed.items() if pattern and pattern.fullmatch(name) and not topic.is_internal
        ]
        return {
            TopicPartition(name, number)
            for name in (*names, *self._topics.names)
            for number in self._consumer.partitions_for(name)
            if wanted is None or number in wanted
        }

    def _check(self, found: Collection[TopicPartition]) -> None:
        """Raises Failure for a topic or partition that is not there."""
        for name in self._topics.names:
            numbers = {each.partition for each in found if each.topic == name}
            if missing := sorted(set(self._topics.partitions or ()) - numbers):
                if not numbers and not self._consumer.partitions_for(name):
                    raise no_topic(name)
                raise Failure(f"topic {name} has no partition {missing[0]}")
            if not numbers:
                raise no_topic(name)

    def _read(self, found: set[TopicPartition], begin: Place, now_ms: int) -> None:
        new = found - self._known
        if not new:
            return
        self._known |= new
        self._consumer.assign(sorted(self._known))
        for partition, offset in self._offsets(new, begin).items():
            self._consumer.seek(partition, offset)
        self._stops.add(new, now_ms)

    def _offsets(self, partitions: set[TopicPartition], begin: Place) -> dict[TopicPartition, int]:
        consumer = self._consumer
        if begin.name == EARLIEST:
            return consumer.beginning_offsets(partitions)
        ends = consumer.end_offsets(partitions)
        if begin.time_ms is not None:
            found = consumer.offsets_for_times(dict.fromkeys(partitions, begin.time_ms))
            return {each: ends[each] if place is None else place.offset for each, place in found.items()}
        if begin.name is not None:
            return ends
        first = consumer.beginning_offsets(partitions)
        wanted = {
            each: begin.offset if begin.offset is not None else ends[each] - (begin.before_end or 0)
            for each in partitions
        }
        return {each: min(max(offset, first[each]), ends[each]) for each, offset in wanted.items()}


class Member(RebalanceListener):
    """Reads what a group gives, and commits what was shown: every five seconds, before partitions go, at the end."""

    def __init__(self, consumer: "Consumer", topics: Topics, stops: Stops, complain: Callable[[str], object]) -> None:
        self._consumer: Final = consumer
        self._topics: Final = topics
        self._stops: Final = stops
        self._complain: Final = complain
        self._new: set[TopicPartition] = set()
        self._shown: dict[TopicPartition, OffsetAndMetadata] = {}
        self._committed_ms = 0

    def start(self, now_ms: int) -> None:
        self._committed_ms = now_ms
        if self._topics.pattern is not None:
            self._consumer.subscribe(self._topics.pattern, self)
            return
        for name in self._topics.names:
            if not self._consumer.partitions_for(name):
                raise no_topic(name)
        self._consumer.subscribe(self._topics.names, self)

    def tick(self, now_ms: int) -> None:
        if self._new:
            new, self._new = self._new, set()
            self._stops.add(new, now_ms)
        if self._shown and now_ms - self._committed_ms >= COMMIT_MS:
            self._committed_ms = now_ms
            shown, self._shown = self._shown, {}
            self._consumer.commit_async(shown, self._told)

    def shown(self, partition: TopicPartition, following: OffsetAndMetadata) -> None:
        self._shown[partition] = following

    def finish(self) -> None:
        shown, self._shown = self._shown, {}
        if shown:
            self._consumer.commit_sync(shown)

    def break_off(self) -> None:
        shown, self._shown = self._shown, {}
        if not shown:
            return
        try:
            self._consumer.commit_sync(shown, BREAK_OFF_MS)
        except KafkaError as error:
            self._told(shown, error)

    def on_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self._new.update(partitions)

    def on_revoked(self, partitions: Collection[TopicPartition]) -> None:
        going = {each: self._shown.pop(each) for each in partitions if each in self._shown}
        if going:
            self._consumer.commit_sync(going)
        self.on_lost(partitions)

    def on_lost(self, partitions: Collection[TopicPartition]) -> None:
        for each in partitions:
            self._shown.pop(each, None)
        self._new.difference_update(partitions)
        self._stops.remove(partitions)

    def _told(self, offsets: object, error: Exception | None) -> None:
        if error is not None:
            self._complain(f"what was shown could not be committed: {error}")


def no_topic(name: str) -> Failure:
    """A topic that is not there."""
    return Failure(f"there is no topic {name}", "kavka topics list shows those that are there")
