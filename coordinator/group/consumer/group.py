"""A group of the consumer protocol (KIP-848)."""

from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from kavka.coordinator.group.consumer.deadlines import Deadlines
from kavka.coordinator.group.consumer.member import Member
from kavka.coordinator.group.consumer.state import LoggedState
from kavka.coordinator.group.consumer.viewers import Viewers
from kavka.coordinator.group.group import SMALL_GROUP_MEMBERS, GroupType, OffsetExpiry, PartitionCheck
from kavka.coordinator.group.history import History
from kavka.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from kavka.coordinator.group.consumer.regex import Resolution
    from kavka.coordinator.runtime.result import CoordinatorRecord

CONSUMER_PROTOCOL_TYPE: Final = "consumer"
FIRST_COMMIT_VERSION_WITH_EPOCH: Final = 9
SMALL_GROUP_TOPICS: Final = 16
SMALL_GROUP_PARTITIONS: Final = 512
"""So many are assigned in a few milliseconds."""


class GroupState(Enum):
    """Where a consumer group stands; it follows from epochs and members, no record says it."""

    EMPTY = "Empty"
    """No members. Joining -> ASSIGNING, and on at once; deleted, or its last offset expired -> DEAD."""

    ASSIGNING = "Assigning"
    """The group's epoch is ahead of the target assignment; the next member that is heard of has it computed."""

    RECONCILING = "Reconciling"
    """There is a target, and members are on their way to it, each at its own pace."""

    STABLE = "Stable"
    """Every member has what the target gives it."""

    DEAD = "Dead"
    """The group is deleted."""


class Watched(NamedTuple):
    """What decides a group's state, to see whether it must be looked at again."""

    state: GroupState
    epoch: int


class ConsumerGroup:
    """A consumer group in its shard's table. All of it is guarded by the shard's lock.

    `logged`: what the log says; changed by replay alone. The rest is this broker's own and lost with it.
    """

    __slots__ = (
        "deadlines",
        "group_id",
        "history",
        "is_dead",
        "known_topics_version",
        "logged",
        "regex_looked_at_ms",
        "regex_resolution",
        "seen",
        "type",
        "viewers",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.type = GroupType.CONSUMER
        self.history = History()
        self.logged = LoggedState(group_id)
        self.deadlines: dict[str, Deadlines] = {}
        self.known_topics_version = -1
        """The version of the cluster's topics with which `logged.topics` was last compared."""
        self.regex_resolution: Resolution | None = None
        """The one that is under way."""
        self.regex_looked_at_ms: int | None = None
        """When the last one was begun (monotonic); None: not since the group was loaded."""
        self.viewers = Viewers()
        self.is_dead = False
        self.seen = Watched(GroupState.EMPTY, 0)
        """State and epoch as the history last heard of them."""

    @property
    def state(self) -> GroupState:
        """Where it stands. Looks at every member, until one is not reconciled."""
        logged = self.logged
        if self.is_dead:
            return GroupState.DEAD
        if not logged.members:
            return GroupState.EMPTY
        if logged.epoch > logged.target_epoch:
            return GroupState.ASSIGNING
        target_epoch = logged.target_epoch
        if all(member.is_reconciled_to(target_epoch) for member in logged.members.values()):
            return GroupState.STABLE
        return GroupState.RECONCILING

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def protocol_type(self) -> str:
        return CONSUMER_PROTOCOL_TYPE

    @property
    def is_empty(self) -> bool:
        return not self.logged.members

    @property
    def member_count(self) -> int:
        return len(self.logged.members)

    @property
    def is_small(self) -> bool:
        logged = self.logged
        if len(logged.members) > SMALL_GROUP_MEMBERS or len(logged.topics) > SMALL_GROUP_TOPICS:
            return False
        return sum([topic.partitions for topic in logged.topics.values()]) <= SMALL_GROUP_PARTITIONS

    def member(self, member_id: str) -> Member:
        """The member of that id. Raises BrokerError (UNKNOWN_MEMBER_ID)."""
        member = self.logged.members.get(member_id)
        if member is None:
            raise BrokerError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return member

    def static_member(self, instance_id: str | None) -> Member | None:
        """The member of that instance id."""
        return None if instance_id is None else self.logged.members.get(self.logged.static_members.get(instance_id, ""))

    def validate_offset_commit(
        self, member_id: str, group_instance_id: str | None, generation: int, *, transactional: bool, api_version: int
    ) -> PartitionCheck | None:
        """Raises UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH, or ILLEGAL_GENERATION for a member of the classic protocol.

        A group without members takes commits of consumers that assign partitions themselves, and of administrators. An
        epoch before the member's own will do for the partitions that it has since then (KIP-1251): the member commits
        while its heartbeat is answered. It does not renew the member's session: heartbeats do.
        """
        if generation < 0 and not self.logged.members:
            return None
        if transactional and generation == -1 and not member_id and group_instance_id is None:
            return None
        member = self.member(member_id)
        if not transactional and member.classic is None and api_version < FIRST_COMMIT_VERSION_WITH_EPOCH:
            raise BrokerError(
                ErrorCode.UNSUPPORTED_VERSION,
                "OffsetCommit version 9 or above must be used by members using the modern group protocol",
            )
        if generation >= member.epoch:
            _check_epoch(member, generation)
            return None
        return partial(_check_partition, member, generation)

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raises UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH or ILLEGAL_GENERATION; a client that names no member may."""
        if member_id is None and member_epoch < 0:
            return
        _check_epoch(self.member(member_id or ""), member_epoch)

    def validate_delete(self) -> None:
        if self.logged.members:
            raise BrokerError(ErrorCode.NON_EMPTY_GROUP)

    def validate_offset_delete(self) -> None:
        """Offsets may always be deleted; those of subscribed topics are refused one by one."""

    def is_subscribed_to(self, topic: str) -> bool:
        return self.logged.is_subscribed_to(topic)

    def offset_expiry(self, now_ms: int) -> OffsetExpiry | None:
        """The retention counts from the commit; a subscribed topic's offsets stay (KIP-211)."""
        return OffsetExpiry(base_timestamp_ms=lambda committed_ms: committed_ms, spares=self.logged.is_subscribed_to)

    def tombstones(self) -> "list[CoordinatorRecord]":
        return self.logged.tombstones()


def _check_partition(member: Member, received: int, topic: str, topic_id: bytes | None, partition: int) -> None:
    epoch = None if topic_id is None else member.assignment_epoch(topic_id, partition)
    if epoch is not None and received >= epoch:
        return
    if epoch is None:
        text = f"Partition {topic}-{partition} is not assigned or pending revocation for member."
    else:
        which = "member epoch" if member.classic is None else "generation id"
        text = f"Received {which} {received} is older than assignment epoch {epoch} for partition {topic}-{partition}."
    raise BrokerError(ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION, text)


def _check_epoch(member: Member, received: int) -> None:
    if received == member.epoch:
        return
    if member.classic is not None:
        raise BrokerError(
            ErrorCode.ILLEGAL_GENERATION,
            f"The received generation id {received} does not match the expected member epoch {member.epoch}.",
        )
    raise BrokerError(
        ErrorCode.STALE_MEMBER_EPOCH,
        f"The received member epoch {received} does not match the expected member epoch {member.epoch}.",
    )
