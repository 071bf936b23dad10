"""The topics that a coordinator assigns by their ids, by the names that the rest of a consumer knows them by."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol

from kavka.client.cluster import Cluster
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.schema import ZERO_UUID, Uuid


class ClusterView(Protocol):
    """What of the client's `Metadata` is looked at."""

    cluster: Cluster


class AssignedTopics:
    """Names and ids, as the metadata have them or had them last.

    A broker that has just begun may not know a topic for a moment, and its answer takes nothing away from a member:
    that is the coordinator's to decide. Threads: the client's.
    """

    def __init__(self, metadata: ClusterView) -> None:
        self._metadata: Final = metadata
        self._names: dict[Uuid, str] = {}

    def partitions(
        self, target: Mapping[Uuid, Sequence[int]], current: Collection[TopicPartition]
    ) -> tuple[frozenset[TopicPartition], bool]:
        """What is assigned, as far as its topics' names are known, and whether all are.

        Of `target` and of what is owned now, the names are remembered.
        """
        owned = {partition.topic for partition in current}
        self._names = {
            topic_id: name for topic_id, name in self._known().items() if topic_id in target or name in owned
        }
        names = self._names
        found = frozenset(
            TopicPartition(names[topic_id], number)
            for topic_id, numbers in target.items()
            if topic_id in names
            for number in numbers
        )
        return found, target.keys() <= names.keys()

    def by_id(self, partitions: Iterable[TopicPartition]) -> list[tuple[Uuid, tuple[int, ...]]]:
        """Partitions by their topics' ids, in order; without topics that are not there any more."""
        ids = {name: topic_id for topic_id, name in self._known().items()}
        numbers: dict[str, list[int]] = {}
        for topic, number in sorted(partitions):
            numbers.setdefault(topic, []).append(number)
        return sorted((ids[topic], tuple(each)) for topic, each in numbers.items() if topic in ids)

    def forget(self) -> None:
        """Nothing is assigned any more."""
        self._names = {}

    def _known(self) -> dict[Uuid, str]:
        """One that is there under another id is another one, and the remembered is gone."""
        cluster = self._metadata.cluster
        kept = {
            topic_id: name
            for topic_id, name in self._names.items()
            if (now := cluster.topics.get(name)) is None or now.id in (ZERO_UUID, topic_id)
        }
        return {**kept, **cluster.names}
