"""What every kind of group answers, whichever protocol its members speak."""

from collections.abc import Callable, Hashable
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from kavka.coordinator.group.history import History
    from kavka.coordinator.runtime.result import CoordinatorRecord


SMALL_GROUP_MEMBERS: Final = 64
"""So many may all be answered at once by whoever runs a request: that takes two or three milliseconds."""


class GroupType(Enum):
    """How its members speak. The values are those of ListGroups' `types_filter` and `group_type`."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


class Viewer(NamedTuple):
    """A client whose rights say which topics it may be told of."""

    identity: Hashable
    """Equal for clients that have the same rights."""
    may_describe: Callable[[str], bool]
    """By the topic's name. Never waits."""


class Client(NamedTuple):
    """Who sent a request."""

    client_id: str
    host: str
    """As the protocol shows it: "/127.0.0.1"."""
    api_version: int
    viewer: Viewer | None = None
    """None for one that may be told of every topic, or asks for what shows none."""


class OffsetExpiry(NamedTuple):
    """When a group's committed offsets expire (KIP-211)."""

    base_timestamp_ms: Callable[[int], int]
    """From the offset's commit timestamp: the moment from which the retention counts."""
    spares: Callable[[str], bool]
    """Whether a topic's offsets stay, because a member is subscribed to it."""


PartitionCheck: TypeAlias = Callable[[str, bytes | None, int], None]
"""Raises BrokerError unless an offset may be committed of that topic (its name, and its id if it exists), partition."""


class Group(Protocol):
    """A group in a shard's table. Called under the shard's lock."""

    group_id: str
    type: GroupType
    history: "History"

    @property
    def state_name(self) -> str:
        """As DescribeGroups and ListGroups show it: Empty, Stable, PreparingRebalance, Assigning, ..."""

    @property
    def protocol_type(self) -> str:
        """`consumer`, `connect`, ...; empty for a group that only holds offsets."""

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""

    @property
    def member_count(self) -> int:
        """How many members it has."""

    @property
    def is_small(self) -> bool:
        """Whether whatever a member asks costs little: a rebalance as well. By any thread, without the shard's lock."""

    def validate_offset_commit(
        self, member_id: str, group_instance_id: str | None, generation: int, *, transactional: bool, api_version: int
    ) -> PartitionCheck | None:
        """Raise BrokerError unless this member, in this generation or member epoch, may commit. Renews its session.

        What is returned must be asked for each partition too; one that may not be committed refuses them all.
        """

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise BrokerError (UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH) unless this member may fetch offsets."""

    def validate_delete(self) -> None:
        """Raise BrokerError (NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND) unless the group may be deleted."""

    def validate_offset_delete(self) -> None:
        """Raise BrokerError unless offsets of it may be deleted at all; subscribed topics are refused one by one."""

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member is subscribed to that topic."""

    def offset_expiry(self, now_ms: int) -> OffsetExpiry | None:
        """How its offsets expire now; None: not at all."""

    def tombstones(self) -> "list[CoordinatorRecord]":
        """The records that delete it; its offsets apart."""
