"""Which partitions somebody has: by topic id, the partitions' numbers.

An assignment is never changed once made, so that group, member, draft and answer may share one. A topic without
partitions has no entry.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Protocol, TypeAlias

Assignment: TypeAlias = Mapping[bytes, frozenset[int]]

AssignmentEpochs: TypeAlias = Mapping[bytes, Mapping[int, int]]
"""By topic id and partition: the epoch in which it was assigned (KIP-1251)."""

NO_PARTITIONS: Final[frozenset[int]] = frozenset()
NOTHING_ASSIGNED: Final[Assignment] = {}
NO_EPOCHS: Final[AssignmentEpochs] = {}


class _TopicPartitions(Protocol):
    """As requests, answers and records hold it."""

    topic_id: bytes
    partitions: list[int]


def assignment_of(listed: Iterable[_TopicPartitions]) -> Assignment:
    """What a request or a record lists. A topic that is listed twice has the partitions of both."""
    found: dict[bytes, frozenset[int]] = {}
    for each in listed:
        if each.partitions:
            found[each.topic_id] = found.get(each.topic_id, NO_PARTITIONS).union(each.partitions)
    return found


def listed(assignment: Assignment) -> list[tuple[bytes, list[int]]]:
    """Topics and their partitions, both in order: equal assignments give equal bytes."""
    return [(topic_id, sorted(assignment[topic_id])) for topic_id in sorted(assignment)]


def is_part_of(owned: Iterable[_TopicPartitions], assignment: Assignment) -> bool:
    """Whether the assignment has all partitions that the list names."""
    return all(assignment.get(each.topic_id, NO_PARTITIONS).issuperset(each.partitions) for each in owned)


def have_common(owned: Iterable[_TopicPartitions], assignment: Assignment) -> bool:
    """Whether the list names a partition that the assignment has."""
    return any(not assignment.get(each.topic_id, NO_PARTITIONS).isdisjoint(each.partitions) for each in owned)


def together(one: Assignment, other: Assignment) -> Assignment:
    """The partitions of both."""
    if not other:
        return one
    found = dict(one)
    for topic_id, numbers in other.items():
        found[topic_id] = found.get(topic_id, NO_PARTITIONS) | numbers
    return found


def without(one: Assignment, other: Assignment) -> Assignment:
    """The partitions that only the one has."""
    left = ((topic_id, numbers - other.get(topic_id, NO_PARTITIONS)) for topic_id, numbers in one.items())
    return {topic_id: numbers for topic_id, numbers in left if numbers}


def partition_count(assignment: Assignment) -> int:
    """How many partitions it has, over all topics."""
    return sum(map(len, assignment.values()))
