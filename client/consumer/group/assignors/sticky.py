"""The sticky assignor: as even as can be, and as little moved as can be (KIP-54)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Final, NamedTuple

from kavka.client.consumer.group.assignors.assignor import (
    NO_GENERATION,
    MemberAssignment,
    MemberSubscription,
    PartitionAssignor,
    Shares,
    Subscriptions,
    TopicRacks,
)
from kavka.client.consumer.group.assignors.constrained import share_among_equals
from kavka.client.consumer.group.assignors.general import Former, share_among_different
from kavka.client.consumer.group.assignors.racks import RackMatch
from kavka.client.consumer.group.assignors.user_data import decode_owned, encode_owned
from kavka.client.consumer.group.port import ConsumerGroupMetadata
from kavka.client.topic_partition import TopicPartition


class Owned(NamedTuple):
    """What a member holds, and since which generation; `generation` is None where it cannot be told."""

    partitions: Sequence[TopicPartition]
    generation: int | None


class AbstractStickyAssignor(PartitionAssignor):
    """What both sticky assignors have in common: what differs is where they learn what members hold."""

    keeps_far: ClassVar[bool] = False
    """Whether members with different topics keep what has no replica in their racks, though others are nearer to it."""

    @abstractmethod
    def owned_by(self, subscription: MemberSubscription) -> Owned:
        """What this member held before."""

    def share(self, topics: TopicRacks, subscriptions: Subscriptions) -> Shares:
        """See `PartitionAssignor.share`."""
        owned = {member: self.owned_by(subscription) for member, subscription in subscriptions.items()}
        claims = Claims(topics, owned)
        racks = RackMatch(topics, subscriptions)
        wanted = {member: frozenset(subscription.topics) for member, subscription in subscriptions.items()}
        if len(set(wanted.values())) <= 1:
            return share_among_equals(topics, racks, claims.owned, claims.disputed)
        return share_among_different(topics, racks, claims.owned, wanted, claims.former, keeps_far=self.keeps_far)


class Claims:
    """Who holds what, where several members may say that they hold the same.

    The one of the higher generation is right: the other was away for a while. Of two in the same generation neither is,
    as one of them could still be working on it.
    """

    __slots__ = ("disputed", "former", "owned")

    def __init__(self, topics: TopicRacks, members: dict[str, Owned]) -> None:
        self.owned: Final[dict[str, list[TopicPartition]]] = {}
        self.disputed: Final[set[TopicPartition]] = set()
        """Claimed twice in one generation."""
        self.former: Final[dict[TopicPartition, Former]] = {}
        """Who held it before, by generations older than the newest."""
        newest = max([_known(each.generation) for each in members.values()], default=NO_GENERATION)
        owner_of: dict[TopicPartition, tuple[str, int]] = {}
        kept: dict[str, dict[TopicPartition, None]] = {member: {} for member in members}
        for member, (partitions, known_generation) in members.items():
            generation = _known(known_generation)
            for partition in partitions:
                if not 0 <= partition.partition < len(topics.get(partition.topic, ())):
                    continue
                if generation < newest:
                    self._note_former(partition, Former(member, generation))
                other, other_generation = owner_of.get(partition, (None, NO_GENERATION))
                if other is None or generation > other_generation:
                    kept[member][partition] = None
                elif generation < other_generation or other == member:
                    continue
                else:
                    self.disputed.add(partition)
                if other is not None:
                    kept[other].pop(partition, None)
                owner_of[partition] = member, generation
        for member, each in kept.items():
            self.owned[member] = list(each)

    def _note_former(self, partition: TopicPartition, former: Former) -> None:
        known = self.former.get(partition)
        if known is None or former.generation > known.generation:
            self.former[partition] = former


def _known(generation: int | None) -> int:
    return NO_GENERATION if generation is None else generation


class StickyAssignor(AbstractStickyAssignor):
    """Sticky under the eager protocol: members give everything up, and mostly get the same back.

    What a member had travels in the user data of its subscription, in the format of Java's.
    """

    name: ClassVar[str] = "sticky"

    def __init__(self) -> None:
        self._assigned: tuple[TopicPartition, ...] | None = None
        self._generation = NO_GENERATION

    def owned_by(self, subscription: MemberSubscription) -> Owned:
        """See `AbstractStickyAssignor.owned_by`."""
        return Owned(*decode_owned(subscription.user_data))

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:
        """What was assigned last, and in which generation."""
        return None if self._assigned is None else encode_owned(self._assigned, self._generation)

    def on_assignment(self, assignment: MemberAssignment, metadata: ConsumerGroupMetadata) -> None:
        """Remember it for the next subscription."""
        self._assigned = assignment.partitions
        self._generation = metadata.generation_id
