"""The cluster's topics as coordinators see them: the metadata cache behind a small window."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kavka.broker.metadata.metadata_cache import MetadataCache, MetadataSnapshot


class KnownTopics:
    """Implements `kavka.coordinator.ports.Topics`.

    Threads: any; each call reads the snapshot that stands. `version` is set by the thread that applies metadata.
    """

    __slots__ = ("_metadata", "version")

    def __init__(self, metadata: "MetadataCache") -> None:
        self._metadata = metadata
        self.version = 0

    def topic_id(self, name: str) -> bytes | None:
        """See Topics."""
        topic = self._metadata.current.topics.get(name)
        return None if topic is None else topic.topic_id

    def name_of(self, topic_id: bytes) -> str | None:
        """See Topics."""
        return self._metadata.current.names_by_id.get(topic_id)

    def partition_count(self, name: str) -> int | None:
        """See Topics."""
        topic = self._metadata.current.topics.get(name)
        return None if topic is None else len(topic)

    def racks(self, name: str, partition: int) -> frozenset[str]:
        """See Topics."""
        snapshot = self._metadata.current
        known = snapshot.partition(name, partition)
        if known is None:
            return frozenset()
        brokers = (snapshot.brokers.get(replica) for replica in known.replicas)
        return frozenset(broker.rack for broker in brokers if broker is not None and broker.rack is not None)

    def names(self) -> Iterable[str]:
        """See Topics."""
        return self._metadata.current.topics.keys()

    def changed(self, old: "MetadataSnapshot", new: "MetadataSnapshot") -> bool:
        """Note a change of the metadata; whether topics came, went or grew, or moved to other replicas."""
        if _same_topics(old, new):
            return False
        self.version += 1
        return True


def _same_topics(old: "MetadataSnapshot", new: "MetadataSnapshot") -> bool:
    if old.topics is new.topics:
        return True
    if old.topics.keys() != new.topics.keys():
        return False
    for name, topic in new.topics.items():
        before = old.topics[name]
        if before is topic:
            continue
        if before.topic_id != topic.topic_id or len(before) != len(topic):
            return False
        if any(one.replicas != other.replicas for one, other in zip(before, topic, strict=True)):
            return False
    return True
