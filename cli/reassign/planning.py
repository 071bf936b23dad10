"""Plans: which brokers are to have which partitions so that brokers come, go or are balanced, with few moves.

A plan is made in steps, each of which changes as little as it can:

1. replicas leave the brokers that are drained, and those that are one too many
2. replicas that are missing go to the broker with the fewest, on a rack that the partition is not on yet
3. to balance: replicas that share a rack without need go to another
4. to add or balance: replicas go from who has most to who has least, until counts differ by one at most
5. leaders: of the partitions that have changed, or to balance of all, the order is changed until each broker is the
   preferred leader of as many as the others

No step puts a partition on fewer racks than it could be on.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from kavka.cli.failing import Failure
from kavka.cli.reassign.leading import balance_leaders
from kavka.cli.reassign.placement import Assignment, Placement
from kavka.client.topic_partition import TopicPartition


class PlanError(Failure):
    """No plan can be made of this; the message says why."""


class Wish(NamedTuple):
    """What a plan is to bring about. With nothing but the defaults it changes nothing.

    `added` get their share, `drained` lose all; `is_balanced` has all brokers get theirs. `targets` are the brokers
    that may have replicas, all by default: from others replicas move away only if the plan balances.
    """

    added: Collection[int] = ()
    drained: Collection[int] = ()
    is_balanced: bool = False
    replication_factor: int | None = None
    targets: Collection[int] | None = None


def planned(
    current: Assignment,
    racks: Mapping[int, str | None],
    wish: Wish,
    *,
    sizes: Mapping[TopicPartition, int] | None = None,
) -> dict[TopicPartition, tuple[int, ...]]:
    """The partitions that are to change, and their new replicas.

    `racks` has the brokers that live. `sizes` are bytes of one replica: of equal moves that of fewer bytes is taken.
    Raises PlanError for brokers that are not there, too few of them, or racks that only some have.
    """
    targets = _targets(racks, wish)
    placement = Placement(current, racks, sizes or {})
    for partition in placement.partitions:
        _replace(placement, partition, targets, _leaving(placement, partition, targets, wish), wish)
    if wish.is_balanced:
        for partition in placement.partitions:
            _spread(placement, partition, targets)
    if wish.is_balanced or wish.added:
        takers = targets if wish.is_balanced else [each for each in targets if each in wish.added]
        _level(placement, targets, takers)
    free = [
        partition
        for partition in placement.partitions
        if wish.is_balanced or set(placement.replicas(partition)) != set(current[partition])
    ]
    balance_leaders(placement, free, targets)
    return {
        partition: replicas
        for partition, replicas in placement.assignment.items()
        if replicas != tuple(current[partition])
    }


def _targets(racks: Mapping[int, str | None], wish: Wish) -> list[int]:
    named = {*wish.added, *(wish.targets or ())}
    if unknown := sorted(named - racks.keys()):
        raise PlanError(f"no broker {', '.join(map(str, unknown))}; there are {', '.join(map(str, sorted(racks)))}")
    if both := sorted({*wish.added} & {*wish.drained}):
        raise PlanError(f"broker {', '.join(map(str, both))} cannot be added and drained at once")
    wanted = racks.keys() if wish.targets is None else {*wish.targets, *wish.added}
    targets = sorted(set(wanted) - {*wish.drained})
    if not targets:
        raise PlanError("no broker is left that could have replicas")
    without = [each for each in targets if racks[each] is None]
    if without and len(without) < len(targets):
        names = ", ".join(map(str, without))
        raise PlanError(f"brokers {names} have no rack, others have: --disable-rack-aware leaves racks aside")
    return targets


def _leaving(placement: Placement, partition: TopicPartition, targets: Sequence[int], wish: Wish) -> list[int]:
    """The brokers that are to lose the partition."""
    is_closed = wish.is_balanced and wish.targets is not None
    return [
        each for each in placement.replicas(partition) if each in wish.drained or (is_closed and each not in targets)
    ]


def _replace(
    placement: Placement, partition: TopicPartition, targets: Sequence[int], leaving: Sequence[int], wish: Wish
) -> None:
    """Have others take the places of those that leave, and as many as the replication factor says."""
    wanted = wish.replication_factor or len(placement.replicas(partition))
    staying = [each for each in placement.replicas(partition) if each not in leaving]
    while len(staying) > wanted:
        surplus = _least_needed(placement, partition, staying)
        staying.remove(surplus)
        placement.remove(partition, surplus)
    for old in leaving:
        if len(staying) == wanted:
            placement.remove(partition, old)
            continue
        taker = _taker(placement, partition, staying, targets, wanted)
        placement.move(partition, old, taker)
        staying.append(taker)
    while len(staying) < wanted:
        taker = _taker(placement, partition, staying, targets, wanted)
        placement.add(partition, taker)
        staying.append(taker)


def _taker(
    placement: Placement, partition: TopicPartition, staying: Sequence[int], targets: Sequence[int], wanted: int
) -> int:
    """Who is best for one more replica: on another rack than those that stay, then who has least."""
    used = {placement.rack(each) for each in staying}
    able = [each for each in targets if each not in staying]
    if not able:
        raise PlanError(f"{partition} needs {wanted} brokers, and {len(targets)} may have it")
    return min(able, key=lambda each: (placement.rack(each) in used, *placement.preference(partition, each)))


def _least_needed(placement: Placement, partition: TopicPartition, staying: Sequence[int]) -> int:
    """Who is to lose the partition when there are too many: never the first, who leads."""
    racks = placement.rack_count(staying)

    def cost(broker_id: int) -> tuple[int, int, int]:
        rest = placement.rack_count([each for each in staying if each != broker_id])
        return racks - rest, -placement.load(broker_id), -broker_id

    return min(staying[1:], key=cost)


def _spread(placement: Placement, partition: TopicPartition, targets: Sequence[int]) -> None:
    """Have replicas that share a rack go to racks that have none, as long as there are such racks."""
    while True:
        replicas = placement.replicas(partition)
        used = [placement.rack(each) for each in replicas]
        free = [each for each in targets if placement.rack(each) not in used]
        doubled = [each for each in replicas if used.count(placement.rack(each)) > 1]
        if not free or not doubled:
            return
        source = max(doubled, key=lambda each: (placement.load(each), each))
        placement.move(partition, source, min(free, key=lambda each: placement.preference(partition, each)))


class _Step(NamedTuple):
    partition: TopicPartition
    source: int
    target: int


def _level(placement: Placement, givers: Sequence[int], takers: Sequence[int]) -> None:
    """Move replicas from who has most to who has least of `takers`, as long as that makes them more equal."""
    while steps := _improvement(placement, givers, takers):
        for step in steps:
            placement.move(*step)


def _improvement(placement: Placement, givers: Sequence[int], takers: Sequence[int]) -> list[_Step]:
    """The moves that take one replica from a broker and give one to a broker with two fewer or more; none is done yet.

    One move, or where racks are in its way several: the brokers between have as many before as after.
    """
    by_load = sorted(takers, key=lambda each: (placement.load(each), each))
    for source in sorted(givers, key=lambda each: (-placement.load(each), each)):
        for target in by_load:
            if placement.load(source) < placement.load(target) + 2:
                break
            if step := _step(placement, source, target, ()):
                return [step]
    for source in sorted(givers, key=lambda each: (-placement.load(each), each)):
        if steps := _detour(placement, source, takers):
            return steps
    return []


def _step(placement: Placement, source: int, target: int, taken: Collection[TopicPartition]) -> _Step | None:
    """The best move between two brokers: of the topic that they share worst, onto more racks, of fewest bytes."""

    def cost(partition: TopicPartition) -> tuple[int, int, TopicPartition]:
        return (
            -_racks_gained(placement, partition, source, target),
            placement.size_bytes(partition),
            partition,
        )

    topics = placement.on(source)
    # Most steps find one in the first topic: this runs once for each replica that moves.
    for topic in sorted(topics, key=lambda each: (-placement.topic_surplus(each, source, target), each)):
        able = [each for each in topics[topic] if each not in taken and _may_move(placement, each, source, target)]
        if able:
            return _Step(min(able, key=cost), source, target)
    return None


def _may_move(placement: Placement, partition: TopicPartition, source: int, target: int) -> bool:
    return target not in placement.replicas(partition) and _racks_gained(placement, partition, source, target) >= 0


def _racks_gained(placement: Placement, partition: TopicPartition, source: int, target: int) -> int:
    """On how many more racks the partition is after the move; below 0, on fewer."""
    if not placement.has_racks:
        return 0
    others = {placement.rack(each) for each in placement.replicas(partition) if each != source}
    return (placement.rack(target) not in others) - (placement.rack(source) not in others)


def _detour(placement: Placement, source: int, takers: Sequence[int]) -> list[_Step]:
    """Moves by way of other takers, each of another partition, to one who has two fewer or more."""
    low = placement.load(source) - 2
    if all(placement.load(each) > low for each in takers):
        return []
    paths: list[list[_Step]] = [[]]
    reached = {source}
    while paths:
        paths = list(_longer(placement, source, paths, takers, reached))
        for path in paths:
            if placement.load(path[-1].target) <= low:
                return path
    return []


def _longer(
    placement: Placement, source: int, paths: Sequence[list[_Step]], takers: Sequence[int], reached: set[int]
) -> Iterator[list[_Step]]:
    for path in paths:
        at = path[-1].target if path else source
        taken = {step.partition for step in path}
        for target in takers:
            if target not in reached and (step := _step(placement, at, target, taken)):
                reached.add(target)
                yield [*path, step]
