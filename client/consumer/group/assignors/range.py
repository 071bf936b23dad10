"""The range assignor: each topic by itself, its partitions in order, a range of them for each member."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import ClassVar, Final

from kavka.client.consumer.group.assignors.assignor import (
    PartitionAssignor,
    Racks,
    Shares,
    Subscriptions,
    TopicRacks,
    members_in_order,
)
from kavka.client.consumer.group.assignors.racks import is_of_use, member_racks
from kavka.client.topic_partition import TopicPartition


class RangeAssignor(PartitionAssignor):
    """Topics with as many partitions go to members alike: partition n of each to the same one.

        members A, B; topics t, u of 3 partitions        A: t-0 t-1 u-0 u-1    B: t-2 u-2

    Where members name their racks, each gets partitions with a replica there first, as far as its range's size allows,
    and topics of the same members and sizes stay alike (KIP-881).
    """

    name: ClassVar[str] = "range"

    def share(self, topics: TopicRacks, subscriptions: Subscriptions) -> Shares:
        """See `PartitionAssignor.share`."""
        order = members_in_order(subscriptions)
        racks = member_racks(subscriptions)
        subscribed: dict[str, list[str]] = {topic: [] for topic in topics}
        for member in order:
            for topic in dict.fromkeys(subscriptions[member].topics):
                if topic in subscribed:
                    subscribed[topic].append(member)
        shares: Shares = {member: [] for member in subscriptions}
        states = [_Topic(topic, topics[topic], members, racks, shares) for topic, members in subscribed.items()]
        by_racks = any(state.looks_at_racks for state in states)
        if by_racks:
            _match_racks(states)
        for state in states:
            state.give_ranges(lambda _member, _number: True)
        if by_racks:
            for partitions in shares.values():
                partitions.sort()
        return shares


class _Topic:
    """What of one topic is not given away yet, and how much of it each member may still get."""

    def __init__(
        self, topic: str, partitions: Sequence[Racks], members: list[str], racks: dict[str, str], shares: Shares
    ) -> None:
        self.members: Final = members
        self.rack_of: Final = {member: racks[member] for member in members if member in racks}
        self.partitions: Final = partitions
        self.looks_at_racks: Final = is_of_use(self.rack_of.values(), partitions)
        self._topic: Final = topic
        self._shares: Final = shares
        self._left = dict.fromkeys(range(len(partitions)))
        self._given = dict.fromkeys(members, 0)
        self._each, self._with_one_more = divmod(len(partitions), len(members)) if members else (0, 0)

    @property
    def alike(self) -> tuple[object, ...]:
        """Topics of which this is equal are shared out alike: the same members, as many partitions."""
        return tuple(self.members), len(self.partitions) if self.rack_of else 0

    def room(self, member: str) -> int:
        return max(self._each + (self._with_one_more > 0) - self._given[member], 0)

    def matches(self, member: str, number: int) -> bool:
        rack = self.rack_of.get(member)
        return rack is None or rack in self.partitions[number]

    def give(self, member: str, numbers: Sequence[int]) -> None:
        self._shares[member] += [TopicPartition(self._topic, number) for number in numbers]
        self._given[member] += len(numbers)
        if self._given[member] > self._each:
            self._with_one_more -= 1
        for number in numbers:
            del self._left[number]

    def give_ranges(self, may_have: Callable[[str, int], bool]) -> None:
        for member in self.members:
            fitting = list(islice((number for number in self._left if may_have(member, number)), self.room(member)))
            if fitting:
                self.give(member, fitting)


def _match_racks(states: list[_Topic]) -> None:
    groups: dict[tuple[object, ...], list[_Topic]] = {}
    for state in states:
        groups.setdefault(state.alike, []).append(state)
    for group in groups.values():
        first = group[0]
        if len(group) > 1:
            if first.rack_of:
                _match_alike(group)
        elif first.looks_at_racks:
            first.give_ranges(first.matches)


def _match_alike(group: list[_Topic]) -> None:
    """Each partition number of all these topics to the first member that matches it in all of them."""
    waiting = dict.fromkeys(group[0].members)
    for number in range(len(group[0].partitions)):
        for member in waiting:
            if all(state.matches(member, number) and state.room(member) for state in group):
                break
        else:
            continue
        for state in group:
            state.give(member, [number])
        if not any(state.room(member) for state in group):
            del waiting[member]
            if not waiting:
                return
