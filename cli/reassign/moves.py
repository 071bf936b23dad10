"""What moves in a reassignment: from whom to whom, which throttles that takes, and how many bytes it is."""

from collections.abc import Mapping
from typing import NamedTuple

from kavka.cli.reassign.placement import Assignment
from kavka.client.admin import PartitionReassignment
from kavka.client.topic_partition import TopicPartition


class Move(NamedTuple):
    """The brokers that have a partition, and those that are to get it."""

    sources: frozenset[int]
    destinations: frozenset[int]


def moves(
    proposed: Assignment, current: Assignment, ongoing: Mapping[TopicPartition, PartitionReassignment]
) -> dict[TopicPartition, Move]:
    """All that will move: what is proposed, and what moves already. Of what moves already the sources are who had it.

    That is what Kafka's tool throttles, too: a throttle is a broker's, for all that moves there.
    """
    found = {
        partition: Move(frozenset(each.replicas) - {*each.adding_replicas}, frozenset(each.adding_replicas))
        for partition, each in ongoing.items()
    }
    for partition, replicas in proposed.items():
        sources = found[partition].sources if partition in found else frozenset(current[partition])
        found[partition] = Move(sources, frozenset(replicas) - sources)
    return found


def leader_throttles(found: Mapping[TopicPartition, Move]) -> dict[str, str]:
    """By topic, what `leader.replication.throttled.replicas` is to be: `partition:broker` of all who may be copied."""
    return _throttles({partition: move.sources for partition, move in found.items()})


def follower_throttles(found: Mapping[TopicPartition, Move]) -> dict[str, str]:
    """By topic, what `follower.replication.throttled.replicas` is to be."""
    return _throttles({partition: move.destinations for partition, move in found.items()})


def brokers_of(found: Mapping[TopicPartition, Move]) -> list[int]:
    """Who takes part."""
    return sorted({broker_id for move in found.values() for broker_id in move.sources | move.destinations})


def bytes_to_move(
    proposed: Assignment, current: Assignment, sizes: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """By partition: its size for each broker that has it not yet. `sizes` are of one replica."""
    return {
        partition: len(set(replicas) - set(current.get(partition, ()))) * sizes.get(partition, 0)
        for partition, replicas in proposed.items()
    }


def _throttles(brokers: Mapping[TopicPartition, frozenset[int]]) -> dict[str, str]:
    rows: dict[str, list[str]] = {}
    for (topic, partition), ids in sorted(brokers.items()):
        rows.setdefault(topic, []).extend(f"{partition}:{each}" for each in sorted(ids))
    return {topic: ",".join(texts) for topic, texts in rows.items()}
