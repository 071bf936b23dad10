"""The range assignor: of each topic a row of consecutive partitions to each member.

Members stand in one order for all topics: static ones by instance id, then the others by member id. So topics with as
many partitions and the same subscribers are divided alike, and joins by partition number find both sides at one member.
A static member that comes back under another member id gets what it had.
"""

from collections.abc import Mapping, Sequence

from kavka.coordinator.group.consumer.assignment import Assignment
from kavka.coordinator.group.consumer.assignors.subscriber import Subscriber


def assign_ranges(subscribers: Sequence[Subscriber], partitions: Mapping[bytes, int]) -> dict[str, Assignment]:
    """Each member's assignment. The first members of a topic get one partition more where it does not come out even."""
    found: dict[str, dict[bytes, frozenset[int]]] = {each.member_id: {} for each in subscribers}
    by_topic: dict[bytes, list[str]] = {}
    for each in sorted(subscribers, key=_order):
        for topic_id in each.topics:
            by_topic.setdefault(topic_id, []).append(each.member_id)
    for topic_id, member_ids in by_topic.items():
        quota, longer = divmod(partitions[topic_id], len(member_ids))
        start = 0
        for index, member_id in enumerate(member_ids):
            end = start + quota + (index < longer)
            if end == start:
                break
            found[member_id][topic_id] = frozenset(range(start, end))
            start = end
    return {**found}


def _order(subscriber: Subscriber) -> tuple[bool, str]:
    if subscriber.instance_id is not None:
        return (False, subscriber.instance_id)
    return (True, subscriber.member_id)
