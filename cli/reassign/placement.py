"""Who has which partition while a plan is made: replicas, and how much of them each broker has."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from kavka.client.topic_partition import TopicPartition

Assignment: TypeAlias = Mapping[TopicPartition, Sequence[int]]
"""Broker ids by partition, the preferred leader first."""


class Placement:
    """Replicas that may be moved, with the counts that a choice goes by. Owned by one thread.

    `racks` are those of all brokers that are known, None where racks are not to be looked at. Two brokers of the same
    rack are one place; a broker without a rack is a place by itself.
    """

    def __init__(
        self, assignment: Assignment, racks: Mapping[int, str | None], sizes: Mapping[TopicPartition, int]
    ) -> None:
        self._replicas = {partition: list(replicas) for partition, replicas in assignment.items()}
        self._racks = racks
        self.has_racks: Final = any(rack is not None for rack in racks.values())
        self._sizes = sizes
        self._load: Counter[int] = Counter()
        self._topic_load: Counter[tuple[str, int]] = Counter()
        self._bytes: Counter[int] = Counter()
        self._on: dict[int, dict[str, set[TopicPartition]]] = {}
        for partition, replicas in self._replicas.items():
            for broker_id in replicas:
                self._count(partition, broker_id, 1)

    @property
    def partitions(self) -> list[TopicPartition]:
        return list(self._replicas)

    @property
    def assignment(self) -> dict[TopicPartition, tuple[int, ...]]:
        return {partition: tuple(replicas) for partition, replicas in self._replicas.items()}

    def replicas(self, partition: TopicPartition) -> Sequence[int]:
        return self._replicas[partition]

    def load(self, broker_id: int) -> int:
        """How many replicas it has."""
        return self._load[broker_id]

    def size_bytes(self, partition: TopicPartition) -> int:
        """What one replica takes; 0 where nobody said."""
        return self._sizes.get(partition, 0)

    def on(self, broker_id: int) -> Mapping[str, Iterable[TopicPartition]]:
        """The partitions that it has by topic, in no order; a topic may have none."""
        return self._on.get(broker_id, {})

    def rack(self, broker_id: int) -> object:
        """Its rack; a broker without one is its own."""
        name = self._racks.get(broker_id)
        return broker_id if name is None else name

    def rack_count(self, replicas: Iterable[int]) -> int:
        """On how many racks these brokers are."""
        return len({self.rack(each) for each in replicas})

    def preference(self, partition: TopicPartition, broker_id: int) -> tuple[int, int, int, int]:
        """The lower, the better is this broker for one more replica of the partition: fewest replicas, in all and of
        the topic, then fewest bytes; the id so that equal choices are always the same."""
        topic = self._topic_load[partition.topic, broker_id]
        return self._load[broker_id], topic, self._bytes[broker_id], broker_id

    def topic_surplus(self, topic: str, source: int, target: int) -> int:
        """How many more replicas of the topic `source` has than `target`."""
        return self._topic_load[topic, source] - self._topic_load[topic, target]

    def add(self, partition: TopicPartition, broker_id: int) -> None:
        self._replicas[partition].append(broker_id)
        self._count(partition, broker_id, 1)

    def remove(self, partition: TopicPartition, broker_id: int) -> None:
        self._replicas[partition].remove(broker_id)
        self._count(partition, broker_id, -1)

    def move(self, partition: TopicPartition, source: int, target: int) -> None:
        """The new broker takes the old one's place in the order."""
        replicas = self._replicas[partition]
        replicas[replicas.index(source)] = target
        self._count(partition, source, -1)
        self._count(partition, target, 1)

    def reorder(self, partition: TopicPartition, leader: int) -> None:
        """Put one of the replicas first."""
        replicas = self._replicas[partition]
        replicas.remove(leader)
        replicas.insert(0, leader)

    def _count(self, partition: TopicPartition, broker_id: int, difference: int) -> None:
        self._load[broker_id] += difference
        self._topic_load[partition.topic, broker_id] += difference
        self._bytes[broker_id] += difference * self.size_bytes(partition)
        on = self._on.setdefault(broker_id, {}).setdefault(partition.topic, set())
        if difference > 0:
            on.add(partition)
        else:
            on.discard(partition)
