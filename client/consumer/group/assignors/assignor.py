"""What shares a classic group's partitions out: the contract of every assignor, and a base for those that go by counts.

The member that leads a group calls `assign` for all of them; every member tells the leader what it wants, and hears
what it got, through `subscription_user_data` and `on_assignment`. All run on the polling thread.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, NamedTuple, TypeAlias

from kavka.client.cluster import Cluster
from kavka.client.consumer.group.port import ConsumerGroupMetadata
from kavka.client.topic_partition import TopicPartition

NO_GENERATION: Final = -1


class RebalanceProtocol(enum.IntEnum):
    """What members do with what they own when their group rebalances (KIP-429)."""

    EAGER = 0
    """Give everything up before they join."""
    COOPERATIVE = 1
    """Keep it, and give up what the assignment has for others; these get it by a second rebalance."""


class MemberSubscription(NamedTuple):
    """What one member told the leader. Immutable.

    MemberSubscription(("visits",), owned=(TopicPartition("visits", 0),))
    """

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned: tuple[TopicPartition, ...] = ()
    """What it holds while it joins; none under the eager protocol."""
    generation: int = NO_GENERATION
    """Of the assignment that `owned` comes from."""
    rack: str | None = None
    instance_id: str | None = None


class MemberAssignment(NamedTuple):
    """What the leader has for one member. Immutable.

    MemberAssignment((TopicPartition("visits", 0), TopicPartition("visits", 1)))
    """

    partitions: tuple[TopicPartition, ...]
    user_data: bytes | None = None


Subscriptions: TypeAlias = Mapping[str, MemberSubscription]
"""By member id."""

Racks: TypeAlias = frozenset[str]
TopicRacks: TypeAlias = Mapping[str, Sequence[Racks]]
"""Each topic's partitions from 0 on: the racks in which each has a replica. Topics that are not there are left out."""

Shares: TypeAlias = dict[str, list[TopicPartition]]


class Assignor(ABC):
    """Shares partitions out among the members of a classic group; derive from it for `partition.assignment.strategy`.

        from kavka.client.consumer import Assignor, MemberAssignment, TopicPartition

        class ToTheFirst(Assignor):
            name = "to-the-first"

            def assign(self, cluster, subscriptions):
                first, *others = sorted(subscriptions)
                topics = {topic for each in subscriptions.values() for topic in each.topics}
                everything = tuple(TopicPartition(topic, number)
                                   for topic in sorted(topics & cluster.topics.keys())
                                   for number in cluster.topics[topic].partitions)
                return {first: MemberAssignment(everything), **{other: MemberAssignment(()) for other in others}}

    All members of a group need one assignor in common, by its name.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 0
    protocols: ClassVar[tuple[RebalanceProtocol, ...]] = (RebalanceProtocol.EAGER,)
    """What it can be used with; members use the highest that all their assignors have."""

    @abstractmethod
    def assign(self, cluster: Cluster, subscriptions: Subscriptions) -> dict[str, MemberAssignment]:
        """What each member gets. Called where this member leads; the topics of all are in `cluster` if they exist."""

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:
        """What the leader's assignor is to know of this member besides its topics."""
        return None

    def on_assignment(self, assignment: MemberAssignment, metadata: ConsumerGroupMetadata) -> None:
        """This member got that, in that generation."""
        return


class PartitionAssignor(Assignor):
    """An assignor that goes by the number of each topic's partitions, and the racks of their replicas.

    class ByTopic(PartitionAssignor):
        name = "by-topic"

        def share(self, topics, subscriptions):
            shares = {member: [] for member in subscriptions}
            for topic, racks in topics.items():
                readers = [member for member, each in subscriptions.items() if topic in each.topics]
                shares[min(readers)] += [TopicPartition(topic, number) for number in range(len(racks))]
            return shares

    settings = {"bootstrap.servers": "localhost:9092", "partition.assignment.strategy": [ByTopic]}
    with Consumer(settings, group_id="by-topic") as consumer:
        consumer.subscribe(["visits"])
        print(len(consumer.poll(1_000)))
    """

    @abstractmethod
    def share(self, topics: TopicRacks, subscriptions: Subscriptions) -> Shares:
        """A list for each member. Topics in `topics` have a partition at least, and somebody who is subscribed."""

    def assign(self, cluster: Cluster, subscriptions: Subscriptions) -> dict[str, MemberAssignment]:
        """See `Assignor.assign`."""
        wanted = {topic for subscription in subscriptions.values() for topic in subscription.topics}
        topics = {topic: racks for topic in sorted(wanted) if (racks := replica_racks(cluster, topic))}
        shares = self.share(topics, subscriptions)
        return {member: MemberAssignment(tuple(partitions)) for member, partitions in shares.items()}


def replica_racks(cluster: Cluster, topic: str) -> list[Racks]:
    """For each partition of the topic the racks of its replicas, as far as known; empty for an unknown topic."""
    info = cluster.topics.get(topic)
    if info is None:
        return []
    rack_of = {number: node.rack for number, node in cluster.nodes.items() if node.rack is not None}
    if not rack_of:
        return [_NO_RACKS] * len(info.partitions)
    return [
        frozenset(rack_of[replica] for replica in partition.replicas if replica in rack_of)
        for _, partition in sorted(info.partitions.items())
    ]


def members_in_order(subscriptions: Subscriptions) -> list[str]:
    """Static members by their instance ids, then dynamic ones by their member ids, in Java's order of strings."""
    return sorted(subscriptions, key=lambda member: _rank(member, subscriptions[member].instance_id))


def java_order(text: str) -> bytes:
    """A key by which texts sort as in Java: by UTF-16 code units, where Python goes by code points."""
    return text.encode("utf-16-be", "surrogatepass")


def _rank(member: str, instance_id: str | None) -> tuple[bool, bytes]:
    return (True, java_order(member)) if instance_id is None else (False, java_order(instance_id))


_NO_RACKS: Final[Racks] = frozenset()
