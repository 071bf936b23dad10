"""The uniform assignor: as many partitions to each member as to any other, moving as few as that takes.

Balance comes first: with one subscription for all, two members differ by one partition at most. Then stickiness: a
member keeps what it has up to its share, and those that have more than the least share are the ones who get the odd
partitions.
"""

from collections import deque
from collections.abc import Mapping, Sequence

from kavka.coordinator.group.consumer.assignment import Assignment, partition_count
from kavka.coordinator.group.consumer.assignors.kept import kept_assignments
from kavka.coordinator.group.consumer.assignors.mixed import assign_mixed
from kavka.coordinator.group.consumer.assignors.subscriber import Subscriber


def assign_uniformly(subscribers: Sequence[Subscriber], partitions: Mapping[bytes, int]) -> dict[str, Assignment]:
    """Each member's assignment."""
    if not subscribers:
        return {}
    first = subscribers[0].topics
    if all(each.topics is first or each.topics == first for each in subscribers):
        return _assign_alike(subscribers, partitions)
    return assign_mixed(subscribers, partitions)


def _assign_alike(subscribers: Sequence[Subscriber], partitions: Mapping[bytes, int]) -> dict[str, Assignment]:
    """All members are subscribed to the same topics."""
    topics = sorted(subscribers[0].topics)
    kept, taken = kept_assignments(subscribers, partitions)
    sizes = [partition_count(each) for each in kept]
    quota, odd = divmod(sum(partitions[topic_id] for topic_id in topics), len(subscribers))
    found: list[Assignment] = kept
    missing: deque[tuple[int, int]] = deque()
    for rank, index in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True)):
        share = quota + (rank < odd)
        if sizes[index] > share:
            found[index] = _without_surplus(kept[index], sizes[index] - share, taken)
        elif sizes[index] < share:
            missing.append((index, share - sizes[index]))
    given: dict[int, dict[bytes, list[int]]] = {}
    for topic_id in topics:
        owned = taken.get(topic_id, ())
        for partition in range(partitions[topic_id]):
            if partition not in owned:
                index, wanted = missing.popleft()
                given.setdefault(index, {}).setdefault(topic_id, []).append(partition)
                if wanted > 1:
                    missing.append((index, wanted - 1))
    for index, more in given.items():
        found[index] = _with_more(found[index], more)
    return {each.member_id: assignment for each, assignment in zip(subscribers, found, strict=True)}


def _without_surplus(assignment: Assignment, surplus: int, taken: dict[bytes, set[int]]) -> Assignment:
    """Gives up partitions of the topics of which it has the most, and takes them out of `taken`."""
    rest = {topic_id: sorted(partitions) for topic_id, partitions in assignment.items()}
    for _ in range(surplus):
        topic_id = max(rest, key=lambda each: (len(rest[each]), each))
        taken[topic_id].discard(rest[topic_id].pop())
    return {topic_id: frozenset(partitions) for topic_id, partitions in rest.items() if partitions}


def _with_more(assignment: Assignment, more: dict[bytes, list[int]]) -> Assignment:
    together = dict(assignment)
    for topic_id, partitions in more.items():
        together[topic_id] = together.get(topic_id, frozenset()).union(partitions)
    return together
