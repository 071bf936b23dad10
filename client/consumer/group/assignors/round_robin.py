"""The round robin assignor: all partitions of all topics in order, one after the other to the next member."""

from typing import ClassVar

from kavka.client.consumer.group.assignors.assignor import (
    PartitionAssignor,
    Shares,
    Subscriptions,
    TopicRacks,
    java_order,
    members_in_order,
)
from kavka.client.topic_partition import TopicPartition


class RoundRobinAssignor(PartitionAssignor):
    """Members with the same topics get as many partitions as the others, or one more.

    A member that is not subscribed to a topic is passed over: with different subscriptions shares may differ widely.
    """

    name: ClassVar[str] = "roundrobin"

    def share(self, topics: TopicRacks, subscriptions: Subscriptions) -> Shares:
        """See `PartitionAssignor.share`."""
        members = members_in_order(subscriptions)
        wanted = {member: frozenset(subscriptions[member].topics) for member in members}
        shares: Shares = {member: [] for member in subscriptions}
        turn = 0
        for topic in sorted(topics, key=java_order):
            for number in range(len(topics[topic])):
                while topic not in wanted[members[turn]]:
                    turn = (turn + 1) % len(members)
                shares[members[turn]].append(TopicPartition(topic, number))
                turn = (turn + 1) % len(members)
        return shares
