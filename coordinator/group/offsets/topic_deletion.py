"""Offsets that go with their topic."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kavka.coordinator.group.offsets.records import Tombstones, offset_tombstone
from kavka.coordinator.runtime.result import NOTHING, CoordinatorRecord, Result
from kavka.protocol.errors import BrokerError

if TYPE_CHECKING:
    from kavka.coordinator.group.offsets.deletion import OffsetDeletions
    from kavka.coordinator.group.offsets.store import OffsetStore
    from kavka.coordinator.ports import ShardContext

LOOKED_AT_A_TURN: Final = 500
"""How many groups and offsets one turn looks at: a few milliseconds under the shard's lock if all of them go."""
RETRY_MS: Final = 5_000
TURN_TIMER: Final = "offsets of deleted topics"

Gone = dict[str, int]
"""Topics that were deleted, or made anew under the same name: the log offset up to which commits are of the old one."""


class TopicDeletions:
    """Deletes the offsets of topics that were deleted, a turn's worth at a time.

    `_topic_ids`: the ids under which the topics were last seen, so that a topic that is merely not known yet is told
    from one that was deleted. `_gone`: whose offsets are to go when the walk that is under way, `_walk`, is over.

    Threads: all under the shard's lock.
    """

    __slots__ = ("_context", "_deletions", "_gone", "_is_loaded", "_store", "_topic_ids", "_walk")

    def __init__(self, context: "ShardContext", store: "OffsetStore", deletions: "OffsetDeletions") -> None:
        self._context = context
        self._store = store
        self._deletions = deletions
        self._is_loaded = False
        # What is replayed was committed before now: an id that a topic has only when its offsets are read is too young.
        topics = context.topics
        self._topic_ids = {name: topic_id for name in list(topics.names()) if (topic_id := topics.topic_id(name))}
        self._gone: Gone = {}
        self._walk: tuple[Gone, Iterator[list[CoordinatorRecord]]] | None = None

    def loaded(self) -> None:
        """Everything has been replayed. A shard hears of no topics while it loads, so it looks at them now."""
        self._is_loaded = True
        self._find_gone()
        if self._gone:
            self._context.timers.schedule(TURN_TIMER, 0, self._turn)

    def topic_entered(self, topic: str) -> None:
        """The first offset of that topic has been stored."""
        if not self._is_loaded and topic in self._topic_ids:
            return
        topic_id = self._context.topics.topic_id(topic)
        if topic_id is None:
            self._topic_ids.pop(topic, None)
        else:
            self._topic_ids[topic] = topic_id

    def topics_changed(self) -> Result:
        """Begin to delete the offsets of topics that were deleted, or made anew under the same name."""
        self._find_gone()
        return self._turn() if self._gone and self._walk is None else NOTHING

    def _find_gone(self) -> None:
        topic_id_of = self._context.topics.topic_id
        for topic in self._store.topics:
            before = self._topic_ids.get(topic)
            if before is not None and topic_id_of(topic) != before:
                self._gone[topic] = self._store.log_offset
                del self._topic_ids[topic]
        self._remember_topics()

    def _remember_topics(self) -> None:
        topics = self._store.topics
        self._topic_ids = {topic: topic_id for topic, topic_id in self._topic_ids.items() if topic in topics}
        for topic in topics - self._topic_ids.keys():
            self.topic_entered(topic)

    def _turn(self) -> Result:
        """One append's worth of them; the rest when others have had their turn, unless it is committed anew by then."""
        # First of all, so that a turn that goes wrong is not the last one.
        self._context.timers.schedule(TURN_TIMER, 0, self._turn)
        if self._walk is None:
            gone, self._gone = self._gone, {}
            self._walk = gone, self._tombstones(gone)
        gone, walk = self._walk
        records = next(walk, None)
        if records is None:
            self._walk = None
            if not self._gone:
                self._context.timers.cancel(TURN_TIMER)
            return NOTHING

        def failed(_error: BrokerError) -> None:
            # What has been found gone once more meanwhile is so up to a later offset.
            self._gone = {**gone, **self._gone}
            self._walk = None
            self._context.timers.schedule(TURN_TIMER, RETRY_MS, self._turn)

        return Tombstones(records, stands=self._deletions.count_deleted, failed=failed).result()

    def _tombstones(self, gone: Gone) -> Iterator[list[CoordinatorRecord]]:
        """Turn by turn. Groups and offsets may come and go between two of them."""
        looked_at = 0
        records: list[CoordinatorRecord] = []
        for group_id in self._store.groups():
            looked_at += 1
            for topic, partition in self._store.partitions_of(group_id, gone):
                if looked_at >= LOOKED_AT_A_TURN:
                    yield records
                    looked_at, records = 0, []
                looked_at += 1
                if 0 <= self._store.log_offset_of(group_id, topic, partition) <= gone[topic]:
                    records.append(offset_tombstone(group_id, topic, partition))
            if looked_at >= LOOKED_AT_A_TURN:
                yield records
                looked_at, records = 0, []
        yield records
