"""When an assignment looks at racks, and which members and partitions match (KIP-881)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kavka.client.consumer.group.assignors.assignor import Racks, Subscriptions, TopicRacks
from kavka.client.topic_partition import TopicPartition


def member_racks(subscriptions: Subscriptions) -> dict[str, str]:
    """The racks of those members that have one."""
    return {member: subscription.rack for member, subscription in subscriptions.items() if subscription.rack}


def is_of_use(members: Iterable[str], partitions: Iterable[Racks]) -> bool:
    """Whether looking at racks changes anything: some rack is on both sides, and not every partition is everywhere."""
    of_members = set(members)
    of_partitions = set(partitions)
    everywhere = frozenset().union(*of_partitions)
    return not of_members.isdisjoint(everywhere) and of_partitions != {everywhere}


class RackMatch:
    """Members' and partitions' racks for the sticky assignors; empty where looking at them is of no use."""

    __slots__ = ("consumers_of", "of_member", "of_partition")

    def __init__(self, topics: TopicRacks, subscriptions: Subscriptions) -> None:
        of_member = member_racks(subscriptions)
        of_partition = {
            TopicPartition(topic, number): racks
            for topic, each in topics.items()
            for number, racks in enumerate(each)
            if of_member
        }
        is_used = is_of_use(of_member.values(), of_partition.values())
        self.of_member: Final[Mapping[str, str]] = of_member if is_used else {}
        self.of_partition: Final[Mapping[TopicPartition, Racks]] = of_partition if is_used else {}
        members_in: dict[str, int] = {}
        for rack in self.of_member.values():
            members_in[rack] = members_in.get(rack, 0) + 1
        self.consumers_of: Final[Mapping[TopicPartition, int]] = {
            partition: sum(members_in.get(rack, 0) for rack in racks) for partition, racks in self.of_partition.items()
        }
        """How many members are in a rack with a replica of the partition."""

    def mismatch(self, member: str, partition: TopicPartition) -> bool:
        """Whether the member has a rack, and the partition no replica in it."""
        rack = self.of_member.get(member)
        return rack is not None and rack not in self.of_partition.get(partition, ())

    def mismatches(self, shares: Mapping[str, Iterable[TopicPartition]]) -> int:
        """How many partitions have no replica in the racks of whose they are."""
        return sum(self.mismatch(member, each) for member, partitions in shares.items() for each in partitions)

    def hardest_first(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """In the order of how many members match; those that are equal stay in their order."""
        return sorted(partitions, key=lambda each: self.consumers_of.get(each, 0)) if self.consumers_of else partitions

    def next_match(self, partition: TopicPartition, members: Sequence[str], first: int) -> int:
        """The index of the first member from `first` on, round the end, with a rack of the partition's; or -1."""
        racks = self.of_partition.get(partition)
        for step in range(len(members)) if racks else ():
            index = (first + step) % len(members)
            if self.of_member.get(members[index]) in (racks or ()):
                return index
        return -1
