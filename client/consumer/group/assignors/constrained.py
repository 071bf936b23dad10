"""Sticky shares where all members have the same topics: what each may hold is known beforehand, so one pass will do."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from kavka.client.consumer.group.assignors.assignor import Shares, TopicRacks, java_order
from kavka.client.consumer.group.assignors.racks import RackMatch
from kavka.client.topic_partition import TopicPartition


def share_among_equals(
    topics: TopicRacks,
    racks: RackMatch,
    owned: Mapping[str, Sequence[TopicPartition]],
    disputed: Collection[TopicPartition],
) -> Shares:
    """Everybody keeps what they have up to an even share; what is left goes to those who have less, in turns.

    Where racks matter, a member keeps and gets partitions with a replica in its own first.
    """
    if not owned:
        return {}
    quotas = _Quotas(topics, racks, owned)
    quotas.keep(owned, disputed)
    left = quotas.unassigned()
    if racks.of_member:
        left = quotas.give_by_racks(racks.hardest_first(left))
    quotas.give(left)
    return quotas.shares


class _Quotas:
    """`least` partitions for each member, and one more for `rest` of them."""

    def __init__(self, topics: TopicRacks, racks: RackMatch, members: Collection[str]) -> None:
        self.shares: Final[Shares] = {member: [] for member in members}
        self._topics: Final = topics
        self._racks: Final = racks
        total = sum(map(len, topics.values()))
        self._least, self._rest = divmod(total, len(members))
        self._below: list[str] = []
        """Have less than the least."""
        self._elsewhere: Final[dict[TopicPartition, str]] = {}
        """What members had, though it has no replica in their racks."""
        self._at: list[str] = []
        """Have the least, and might have one more."""

    def keep(self, owned: Mapping[str, Sequence[TopicPartition]], disputed: Collection[TopicPartition]) -> None:
        for member in sorted(owned, key=java_order):
            mine = []
            for partition in owned[member]:
                if partition in disputed:
                    continue
                if self._racks.mismatch(member, partition):
                    self._elsewhere[partition] = member
                else:
                    mine.append(partition)
            mine.sort(key=lambda each: (each.partition, each.topic))
            if len(mine) < self._least:
                self._below.append(member)
            elif len(mine) > self._least and self._rest:
                self._rest -= 1
                mine = mine[: self._least + 1]
            else:
                mine = mine[: self._least]
                self._at.append(member)
            self.shares[member] += mine

    def unassigned(self) -> list[TopicPartition]:
        given = {partition for partitions in self.shares.values() for partition in partitions}
        return [
            partition
            for topic in sorted(self._topics, key=java_order)
            for number in range(len(self._topics[topic]))
            if (partition := TopicPartition(topic, number)) not in given
        ]

    def give_by_racks(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """In turns to those in a partition's racks; what is left over then."""
        left = []
        turn = 0
        for partition in partitions:
            index = self._racks.next_match(partition, self._below, turn)
            if index >= 0:
                turn = self._give_below(partition, index)
                turn %= max(len(self._below), 1)
                continue
            index = self._racks.next_match(partition, self._at, 0) if self._rest else -1
            if index >= 0:
                self._give_at(partition, index)
            else:
                left.append(partition)
        return left

    def give(self, partitions: list[TopicPartition]) -> None:
        """In turns to all who have less than the least, then one each to those who have it."""
        turn = 0
        for partition in partitions:
            former = self._elsewhere.get(partition)
            if former in self._below:
                # Nobody has room who is nearer.
                self._give_below(partition, self._below.index(former))
            elif self._below:
                turn = self._give_below(partition, turn % len(self._below))
            else:
                self._give_at(partition, 0)

    def _give_below(self, partition: TopicPartition, index: int) -> int:
        """To a member that has less than the least; the index of the next one."""
        member = self._below[index]
        self.shares[member].append(partition)
        if len(self.shares[member]) < self._least:
            return index + 1
        del self._below[index]
        self._at.append(member)
        return index

    def _give_at(self, partition: TopicPartition, index: int) -> None:
        self.shares[self._at.pop(index)].append(partition)
        self._rest -= 1
