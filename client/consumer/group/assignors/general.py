"""Sticky shares where members have different topics: as even as their subscriptions allow, found step by step."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from kavka.client.consumer.group.assignors.assignor import Shares, TopicRacks, java_order
from kavka.client.consumer.group.assignors.movements import Movements
from kavka.client.consumer.group.assignors.racks import RackMatch
from kavka.client.topic_partition import TopicPartition


class Former(NamedTuple):
    """Who held a partition before its present owner, and in which generation."""

    member: str
    generation: int


def share_among_different(
    topics: TopicRacks,
    racks: RackMatch,
    owned: Mapping[str, Sequence[TopicPartition]],
    wanted: Mapping[str, frozenset[str]],
    former: Mapping[TopicPartition, Former],
    *,
    keeps_far: bool = False,
) -> Shares:
    """Everybody keeps what they still want; what is left goes to whoever has least; then partitions move to even out.

    `keeps_far`: also what has no replica in their racks.

    Moves that do not make it more even in the end are taken back. Where all have an owner already, the shares change
    only to be more even, or as even and nearer: so rebalances of a group that stays the same come to rest.
    """
    shares = _shares_of_different(topics, racks, owned, wanted, former, keeps_far=keeps_far)
    if racks.of_member and _is_whole(topics, owned, wanted):
        now, then = ((_unevenness(each), racks.mismatches(each)) for each in (owned, shares))
        if then >= now:
            return {member: list(partitions) for member, partitions in owned.items()}
    return shares


def _shares_of_different(
    topics: TopicRacks,
    racks: RackMatch,
    owned: Mapping[str, Sequence[TopicPartition]],
    wanted: Mapping[str, frozenset[str]],
    former: Mapping[TopicPartition, Former],
    *,
    keeps_far: bool,
) -> Shares:
    balancing = _Balancing(topics, racks, wanted, former)
    has_dropped = balancing.keep(owned, keeps_far=keeps_far)
    was_empty = not any(balancing.shares.values())
    new = balancing.give_the_rest()
    before = {member: dict(partitions) for member, partitions in balancing.shares.items()}
    if not has_dropped:
        # What is new may go anywhere at no cost.
        balancing.even_out(new)
    has_moved = balancing.even_out(balancing.movable)
    while balancing.move_along():
        has_moved = True
        balancing.even_out(balancing.movable)
    balancing.take_back()
    if not was_empty and has_moved and _unevenness(balancing.shares) >= _unevenness(before):
        return {member: list(partitions) for member, partitions in before.items()}
    return {member: list(partitions) for member, partitions in balancing.shares.items()}


class _Balancing:
    """The shares on their way to being even. `shares` holds dicts without values: sets that keep their order."""

    def __init__(
        self,
        topics: TopicRacks,
        racks: RackMatch,
        wanted: Mapping[str, frozenset[str]],
        former: Mapping[TopicPartition, Former],
    ) -> None:
        self.shares: Final[dict[str, dict[TopicPartition, None]]] = {member: {} for member in wanted}
        self._racks: Final = racks
        self._former: Final = former
        self._movements: Final = Movements()
        self._wanted: Final = {member: wanted[member] & topics.keys() for member in wanted}
        self._takers: Final[dict[str, list[str]]] = {topic: [] for topic in topics}
        for member in sorted(wanted, key=java_order):
            for topic in self._wanted[member]:
                self._takers[topic].append(member)
        self._owner: Final[dict[TopicPartition, str]] = {}
        self._holders: dict[TopicPartition, str] = {}
        """Whose each was when it began."""
        self._elsewhere: Final[dict[TopicPartition, str]] = {}
        """What members have, though it has no replica in their racks."""
        self._by_load: list[tuple[int, bytes, str]] = []
        # Those that few want come first: later ones can still even out what these had to do.
        order = sorted(topics, key=lambda topic: (len(self._takers[topic]), java_order(topic)))
        self._all: Final = [TopicPartition(topic, number) for topic in order for number in range(len(topics[topic]))]
        self.movable: Final = [each for each in self._all if len(self._takers[each.topic]) > 1]

    def keep(self, owned: Mapping[str, Sequence[TopicPartition]], *, keeps_far: bool) -> bool:
        """Leave with members what they want; whether there was something that they have but do not want, or may not."""
        has_dropped = False
        for member, partitions in owned.items():
            for partition in partitions:
                is_far = not keeps_far and self._racks.mismatch(member, partition)
                if partition.topic in self._wanted[member] and not is_far:
                    self.shares[member][partition] = None
                    self._owner[partition] = member
                else:
                    has_dropped = True
                    if partition.topic in self._wanted[member]:
                        self._elsewhere[partition] = member
        self._holders = self._owner.copy()
        self._by_load = sorted((len(mine), java_order(member), member) for member, mine in self.shares.items())
        return has_dropped

    def give_the_rest(self) -> list[TopicPartition]:
        """Give each partition without an owner to the least loaded; those of them that may move on."""
        new = [each for each in self._all if each not in self._owner]
        left = new
        if self._racks.of_member:
            left = [each for each in new if not self._give(each, by_racks=True)]
        for partition in left:
            if partition in self._elsewhere:
                # Nobody is in a rack of its replicas: who had it goes on, for the others would be no nearer.
                self._change(self._elsewhere[partition], partition, adds=True)
                self._owner[partition] = self._elsewhere[partition]
            else:
                self._give(partition, by_racks=False)
        return [each for each in new if len(self._takers[each.topic]) > 1]

    def even_out(self, movable: Sequence[TopicPartition]) -> bool:
        """Move these from members to others with at least two fewer, until nothing is left to move; whether any was."""
        has_moved = False
        while True:
            moved_now = False
            for partition in movable:
                target = self._target(partition)
                if target is not None:
                    self._move(partition, target)
                    moved_now = has_moved = True
            if not moved_now:
                return has_moved

    def move_along(self) -> bool:
        """Even out what no single move does: one gives to a second, who gives to a third, with at least two fewer.

        Within racks if that can be; being even counts for more than being near, as for Java.
        """
        for by_racks in (True, False) if self._racks.of_member else (False,):
            for load, _, member in reversed(self._by_load):
                if load <= self._by_load[0][0] + 1:
                    break
                way = self._way_down(member, load, by_racks=by_racks)
                if way:
                    for partition, target in reversed(way):
                        self._transfer(partition, target)
                    return True
        return False

    def _way_down(self, first: str, load: int, *, by_racks: bool) -> list[tuple[TopicPartition, str]]:
        """The shortest chain of moves from a member to one with at least two fewer; nothing where there is none."""
        came: dict[str, tuple[str, TopicPartition]] = {}
        turn = [first]
        for giver in turn:
            for topic, partition in {each.topic: each for each in self.shares[giver]}.items():
                for taker in self._takers[topic]:
                    if taker == first or taker in came or (by_racks and self._racks.mismatch(taker, partition)):
                        continue
                    came[taker] = giver, partition
                    if self._load(taker) + 1 < load:
                        return self._way(first, taker, came)
                    turn.append(taker)
        return []

    def _way(
        self, first: str, last: str, came: Mapping[str, tuple[str, TopicPartition]]
    ) -> list[tuple[TopicPartition, str]]:
        way = []
        while last != first:
            giver, partition = came[last]
            way.append((partition, last))
            last = giver
        return way[::-1]

    def take_back(self) -> None:
        """Give partitions back to whose they were, alone or for another, where that leaves all as even as it is."""
        if self._racks.of_member:
            return
        is_done = False
        while not is_done:
            is_done = True
            for partition, holder in self._holders.items():
                owner = self._owner[partition]
                if owner == holder:
                    continue
                if self._load(owner) > self._load(holder):
                    self._transfer(partition, holder)
                    is_done = False
                    continue
                other = self._exchangeable(holder, owner)
                if other is not None:
                    self._transfer(partition, holder)
                    self._transfer(other, owner)
                    is_done = False

    def _exchangeable(self, giver: str, taker: str) -> TopicPartition | None:
        """Something that the giver had not, and the taker may have."""
        for partition in self.shares[giver]:
            if self._holders.get(partition) != giver and partition.topic in self._wanted[taker]:
                return partition
        return None

    def _give(self, partition: TopicPartition, *, by_racks: bool) -> bool:
        for _, _, member in self._by_load:
            if partition.topic in self._wanted[member] and not (by_racks and self._racks.mismatch(member, partition)):
                self._change(member, partition, adds=True)
                self._owner[partition] = member
                return True
        return False

    def _target(self, partition: TopicPartition) -> str | None:
        """Who should have it rather than its owner: who had it before, or the least loaded."""
        load = len(self.shares[self._owner[partition]])
        former = self._former.get(partition)
        if former is not None and self._may_take(former.member, partition) and load > self._load(former.member) + 1:
            return former.member
        racks = self._racks
        least: str | None = None
        for _, _, member in self._by_load:
            if partition.topic not in self._wanted[member]:
                continue
            if load <= self._load(member) + 1:
                break
            least = member if least is None else least
            if not racks.of_member or not racks.mismatch(member, partition):
                return member
        return least

    def _may_take(self, member: str, partition: TopicPartition) -> bool:
        return partition.topic in self._wanted.get(member, ()) and not self._racks.mismatch(member, partition)

    def _load(self, member: str) -> int:
        return len(self.shares[member])

    def _move(self, partition: TopicPartition, target: str) -> None:
        better = self._movements.better(partition, self._owner[partition], target)
        # It may be another member's; a move that evens nothing out could go on for ever.
        if self._load(self._owner[better]) > self._load(target) + 1:
            partition = better
        self._movements.note(partition, self._owner[partition], target)
        self._transfer(partition, target)

    def _transfer(self, partition: TopicPartition, target: str) -> None:
        self._change(self._owner[partition], partition, adds=False)
        self._change(target, partition, adds=True)
        self._owner[partition] = target

    def _change(self, member: str, partition: TopicPartition, *, adds: bool) -> None:
        mine = self.shares[member]
        rank = java_order(member)
        del self._by_load[bisect_left(self._by_load, (len(mine), rank, member))]
        if adds:
            mine[partition] = None
        else:
            del mine[partition]
        insort(self._by_load, (len(mine), rank, member))


def _is_whole(
    topics: TopicRacks, owned: Mapping[str, Sequence[TopicPartition]], wanted: Mapping[str, frozenset[str]]
) -> bool:
    """Whether each partition has an owner, who wants it."""
    return sum(map(len, owned.values())) == sum(map(len, topics.values())) and all(
        each.topic in wanted[member] for member, partitions in owned.items() for each in partitions
    )


def _unevenness(shares: Mapping[str, Iterable[TopicPartition]]) -> int:
    """The sum of the differences between all pairs of members; 0 where all have as many."""
    sizes = sorted(sum(1 for _ in each) for each in shares.values())
    return sum(size * (2 * index - len(sizes) + 1) for index, size in enumerate(sizes))
