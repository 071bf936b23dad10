"""The topics that groups are subscribed to, as the cluster knows them now."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from kavka.coordinator.ports import Topics


_NAMED_TOPICS: Final = 4


class TopicInfo(NamedTuple):
    """What of a topic matters to assignments: when it changes, the group gets a new epoch."""

    name: str
    topic_id: bytes
    partitions: int
    racks: tuple[tuple[int, frozenset[str]], ...] = ()
    """The racks of the partitions' replicas; partitions without a known rack are left out."""


def what_changed(before: Mapping[str, TopicInfo], after: Mapping[str, TopicInfo]) -> str:
    """How topics differ, for a reason: those that come first in the alphabet, and how many more there are."""
    changes = [
        text
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name) and (text := _change(name, before.get(name), after.get(name)))
    ]
    more = f" and {len(changes) - _NAMED_TOPICS} more" if len(changes) > _NAMED_TOPICS else ""
    return f"topics have changed: {', '.join(changes[:_NAMED_TOPICS])}{more}"


def _change(name: str, before: TopicInfo | None, after: TopicInfo | None) -> str:
    if before is None or after is None:
        return f"{name} is new" if before is None else f"{name} is gone"
    if before.topic_id != after.topic_id:
        return f"{name} was created anew"
    if before.partitions != after.partitions:
        return f"{name} has {after.partitions} partitions instead of {before.partitions}"
    return f"{name} has replicas on other racks"


class KnownTopics:
    """A cache before `Topics`, emptied when its version moves: groups ask for the same topics again and again.

    Owned by a shard, guarded by its lock.
    """

    __slots__ = ("_infos", "_topics", "_version")

    def __init__(self, topics: "Topics") -> None:
        self._topics = topics
        self._version = topics.version
        self._infos: dict[str, TopicInfo] = {}

    @property
    def version(self) -> int:
        """The version of what the answers are taken from; it grows."""
        return self._topics.version

    def existing(self, names: Iterable[str]) -> dict[str, TopicInfo]:
        """Those of the names that are topics, by name."""
        self._forget_old_ones()
        found = {}
        for name in names:
            info = self._infos.get(name) or self._look_up(name)
            if info is not None:
                found[name] = info
        return found

    def name_of(self, topic_id: bytes) -> str | None:
        """The topic of that id, None if there is no such topic."""
        return self._topics.name_of(topic_id)

    def names(self) -> Iterable[str]:
        """All topics."""
        return self._topics.names()

    def _forget_old_ones(self) -> None:
        version = self._topics.version
        if version != self._version:
            self._version = version
            self._infos.clear()

    def _look_up(self, name: str) -> TopicInfo | None:
        """What is no topic is not remembered: clients may name whatever they like."""
        topic_id, partitions = self._topics.topic_id(name), self._topics.partition_count(name)
        if topic_id is None or partitions is None:
            return None
        racks = ((number, self._topics.racks(name, number)) for number in range(partitions))
        info = self._infos[name] = TopicInfo(name, topic_id, partitions, tuple(each for each in racks if each[1]))
        return info
