"""Who is the first of a partition's replicas, and so its leader whenever it can be."""

from collections import Counter
from collections.abc import Sequence

from kavka.cli.reassign.placement import Placement
from kavka.client.topic_partition import TopicPartition


def balance_leaders(placement: Placement, free: Sequence[TopicPartition], targets: Sequence[int]) -> None:
    """Reorder replicas of `free` until brokers are first as often as each other, as far as their replicas allow.

    Who is first too often gives one up to another replica of the same partition; where that one has no fewer, it gives
    up another, and so on to one that has two fewer at least. Order moves no bytes.
    """
    led: Counter[int] = Counter(dict.fromkeys(targets, 0))
    mine: dict[int, list[TopicPartition]] = {}
    for partition in placement.partitions:
        led[placement.replicas(partition)[0]] += 1
    for partition in sorted(free):
        mine.setdefault(placement.replicas(partition)[0], []).append(partition)
    while changes := _improvement(placement, led, mine, frozenset(targets)):
        for partition, leader in changes:
            former = placement.replicas(partition)[0]
            placement.reorder(partition, leader)
            led[former] -= 1
            led[leader] += 1
            mine[former].remove(partition)
            mine.setdefault(leader, []).append(partition)


def _improvement(
    placement: Placement, led: Counter[int], mine: dict[int, list[TopicPartition]], targets: frozenset[int]
) -> list[tuple[TopicPartition, int]]:
    """Partitions with their new leaders, after which who led most leads one less; none if there are no such."""
    fewest = min(led[each] for each in targets)
    for source in sorted(mine, key=lambda each: (-led[each], each)):
        if led[source] < fewest + 2:
            return []
        came: dict[int, tuple[TopicPartition, int]] = {}
        layer = [source]
        while layer:
            following: list[int] = []
            for broker_id in layer:
                for partition in mine.get(broker_id, ()):
                    for target in placement.replicas(partition)[1:]:
                        if target in targets and target != source and target not in came:
                            came[target] = (partition, broker_id)
                            following.append(target)
            best = min(following, key=lambda each: (led[each], each), default=source)
            if led[best] <= led[source] - 2:
                return _path(came, source, best)
            layer = following
    return []


def _path(came: dict[int, tuple[TopicPartition, int]], source: int, target: int) -> list[tuple[TopicPartition, int]]:
    changes: list[tuple[TopicPartition, int]] = []
    while target != source:
        partition, former = came[target]
        changes.append((partition, target))
        target = former
    return changes
