"""What a membership wants done on the polling thread: its listener, its assignors, and what it has assigned.

    classic       Prepare -> (JoinGroup) -> Lead, if this member leads -> (SyncGroup) -> Complete
    consumer      Reconcile ...                 lost, either: Lose

One step at a time; a step that is replaced before it is done is done for nothing, and nobody hears of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from kavka.client.consumer.group.identity import Identity
from kavka.client.topic_partition import TopicPartition


class Prepare:
    """The group rebalances: give up what has to be given up before joining. Its result is `Protocols`."""


class Lose:
    """This consumer is no member any more: what it has is lost. Without a result."""


class Lead:
    """Share out the partitions. Its result is a blob by member id, or the KafkaError that prevented it.

    `is_done`: what the coordinator has still holds (a static leader is back, KIP-814), so there are no blobs. From then
    on it is this member that looks whether the topics change.
    """

    def __init__(self, protocol: str, members: Sequence[LedMember], *, is_done: bool) -> None:
        self.protocol = protocol
        self.members = members
        self.is_done = is_done


class Complete:
    """The coordinator's assignment. Its result is a Completed."""

    def __init__(self, protocol: str, assignment: bytes, identity: Identity) -> None:
        self.protocol = protocol
        self.assignment = assignment
        self.identity = identity


class Reconcile:
    """These are to be assigned, as the coordinator says (KIP-848). Its result is what is assigned then."""

    def __init__(self, target: frozenset[TopicPartition]) -> None:
        self.target = target


Step: TypeAlias = Prepare | Lose | Lead | Complete | Reconcile
"""Compared by identity: each is new."""


class LedMember(NamedTuple):
    """A member as the leader hears of it."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class Protocols(NamedTuple):
    """What this member joins with: each assignor's name and subscription, the dearest first."""

    protocols: Sequence[tuple[str, bytes]]


class Completed(NamedTuple):
    """An assignment was taken, or not."""

    rejoin_reason: str | None = None
    """Why the group has to rebalance once more."""
    is_unusable: bool = False
    """Whether nothing of it was taken."""
