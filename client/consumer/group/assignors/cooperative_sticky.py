"""The cooperative sticky assignor: sticky, and what moves stops nobody who keeps what they have (KIP-429)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from kavka.client.consumer.group.assignors.assignor import (
    NO_GENERATION,
    MemberAssignment,
    MemberSubscription,
    RebalanceProtocol,
    Shares,
    Subscriptions,
    TopicRacks,
)
from kavka.client.consumer.group.assignors.sticky import AbstractStickyAssignor, Owned
from kavka.client.consumer.group.assignors.user_data import decode_generation, encode_generation
from kavka.client.consumer.group.port import ConsumerGroupMetadata


class CooperativeStickyAssignor(AbstractStickyAssignor):
    """Members hold on to their partitions through a rebalance.

    What is to go from one to another is given to nobody at first; who gives it up joins anew, and the rebalance after
    that gives it to its new owner. So no partition has two.
    """

    name: ClassVar[str] = "cooperative-sticky"
    protocols: ClassVar[tuple[RebalanceProtocol, ...]] = (RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE)
    # Else what one rebalance gives to even out, the next takes away for a nearer rack, without end.
    keeps_far: ClassVar[bool] = True

    def __init__(self) -> None:
        self._generation = NO_GENERATION

    def owned_by(self, subscription: MemberSubscription) -> Owned:
        """What it says itself; the generation is in the user data where the subscription's version has none."""
        generation: int | None = subscription.generation
        if generation == NO_GENERATION:
            generation = decode_generation(subscription.user_data)
        return Owned(subscription.owned, generation)

    def share(self, topics: TopicRacks, subscriptions: Subscriptions) -> Shares:
        """See `PartitionAssignor.share`: without what others must give up before."""
        shares = super().share(topics, subscriptions)
        wanted = {member: set(partitions) for member, partitions in shares.items()}
        owned = {member: set(each.owned) for member, each in subscriptions.items()}
        given_up = {partition for member, mine in owned.items() for partition in mine - wanted[member]}
        return {
            member: [each for each in partitions if each in owned[member] or each not in given_up]
            for member, partitions in shares.items()
        }

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:
        """The generation, for leaders that know of no field for it."""
        return encode_generation(self._generation)

    def on_assignment(self, assignment: MemberAssignment, metadata: ConsumerGroupMetadata) -> None:
        """Remember the generation."""
        self._generation = metadata.generation_id
