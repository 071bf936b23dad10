"""What must never be: a partition that two members of a group have."""

from collections.abc import Iterable

from kavka.coordinator.group.consumer.assignment import NO_PARTITIONS, Assignment
from kavka.coordinator.group.consumer.member import Member


def shared_partitions(members: Iterable[Member]) -> Assignment:
    """Partitions that more than one member has: none, unless something is wrong."""
    seen: dict[bytes, frozenset[int]] = {}
    twice: dict[bytes, frozenset[int]] = {}
    for member in members:
        for assignment in (member.assigned, member.revoking):
            for topic_id, partitions in assignment.items():
                if common := seen.get(topic_id, NO_PARTITIONS) & partitions:
                    twice[topic_id] = twice.get(topic_id, NO_PARTITIONS) | common
                seen[topic_id] = seen.get(topic_id, NO_PARTITIONS) | partitions
    return twice
