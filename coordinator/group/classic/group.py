"""A classic group: its members, its generation, its state, and what others may ask of it.

It knows what may follow what (`states.py`) and keeps its counts; when to do what is decided elsewhere: `joining.py`,
`syncing.py`, `removal.py`, `rebalance.py`.
"""

import logging
from collections.abc import Iterable
from typing import Any, Final

from kavka.coordinator.group.classic.member import ClassicMember, Protocols
from kavka.coordinator.group.classic.states import VALID_PREVIOUS, ClassicState
from kavka.coordinator.group.classic.subscriptions import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from kavka.coordinator.group.group import SMALL_GROUP_MEMBERS, GroupType, OffsetExpiry
from kavka.coordinator.group.history import History, Transition
from kavka.coordinator.ports import Clock
from kavka.coordinator.runtime.result import CoordinatorRecord, Reply
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.internal.group_records import GroupMetadataKey

NO_TIMESTAMP: Final = -1
LAST_GENERATION: Final = (1 << 31) - 1
_WITH_MEMBERS: Final = (ClassicState.PREPARING_REBALANCE, ClassicState.COMPLETING_REBALANCE, ClassicState.STABLE)

log = logging.getLogger(__name__)


class ClassicGroup:
    """One group.

    `members`: by member id, in the order in which they came. `static_members`: member ids by instance id (KIP-345).
    `pending`: ids that were given out and have not joined yet (KIP-394). `pending_sync`: members of this generation
    that have not sent SyncGroup yet. `awaiting_join_count`: members whose JoinGroup waits. `new_member_added`: someone
    came during the initial rebalance delay, so it may be extended. `state_timestamp_ms`: when this state began, -1 if
    the log does not say.

    Threads: guarded by the shard's lock.
    """

    __slots__ = (
        "_clock",
        "_subscribed",
        "_subscriptions",
        "_supported",
        "_type",
        "awaiting_join_count",
        "generation",
        "group_id",
        "history",
        "leader_id",
        "members",
        "new_member_added",
        "pending",
        "pending_sync",
        "previous_state",
        "protocol_name",
        "state",
        "state_timestamp_ms",
        "static_members",
        "type",
    )

    def __init__(self, group_id: str, clock: Clock) -> None:
        self.group_id = group_id
        self.type = GroupType.CLASSIC
        self.history = History()
        self.state = self.previous_state = ClassicState.EMPTY
        self.state_timestamp_ms = clock.now_ms()
        self.generation = 0
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}
        self.pending: set[str] = set()
        self.pending_sync: set[str] = set()
        self.awaiting_join_count = 0
        self.new_member_added = False
        self._clock = clock
        self._type: str | None = None
        self._supported: dict[str, int] = {}
        self._subscriptions: list[bytes] | None = None
        self._subscribed: frozenset[str] | None = None

    @classmethod
    def of_members(
        cls,
        group_id: str,
        members: Iterable[ClassicMember],
        clock: Clock,
        *,
        generation: int,
        protocol_type: str,
        protocol_name: str | None = None,
        leader_id: str | None = None,
        state_timestamp_ms: int | None = None,
    ) -> "ClassicGroup":
        """A group that stands already: Stable with `members` and their assignments, or Empty without.

        Without a `protocol_name` the members' vote decides, without a `leader_id` the first one leads.
        """
        group = cls(group_id, clock)
        group._type = protocol_type or None
        for member in members:
            group.add(member)
        group.generation = generation
        group.leader_id = leader_id if leader_id in group.members else group.leader_id
        group.protocol_name = protocol_name
        if group.members:
            group.state = group.previous_state = ClassicState.STABLE
            if protocol_name is None:
                group.protocol_name = group.select_protocol()
        if state_timestamp_ms is not None:
            group.state_timestamp_ms = state_timestamp_ms
        group._remember_subscriptions()
        return group

    # What every kind of group answers.

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def protocol_type(self) -> str:
        """`consumer`, `connect`, ...; empty for a group that only holds offsets."""
        return self._type or ""

    @property
    def is_empty(self) -> bool:
        """Whether it is Empty; ids that were given out and have not joined don't count."""
        return self.state is ClassicState.EMPTY

    @property
    def member_count(self) -> int:
        return len(self.members)

    @property
    def is_small(self) -> bool:
        return len(self.members) <= SMALL_GROUP_MEMBERS

    def validate_offset_commit(
        self, member_id: str, group_instance_id: str | None, generation: int, *, transactional: bool, api_version: int
    ) -> None:
        """Raise BrokerError unless this member may commit. Renews its session.

        COORDINATOR_NOT_AVAILABLE, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS.
        """
        if self.state is ClassicState.DEAD:
            raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if generation < 0 and self.state is ClassicState.EMPTY:
            return
        if generation >= 0 or member_id or group_instance_id is not None:
            member = self.validate_member(member_id, group_instance_id)
            if generation != self.generation:
                raise BrokerError(ErrorCode.ILLEGAL_GENERATION)
        elif transactional:
            # Producers older than KIP-447 don't say which member they commit for.
            return
        else:
            raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)
        if transactional:
            return
        if self.state is ClassicState.COMPLETING_REBALANCE:
            raise BrokerError(ErrorCode.REBALANCE_IN_PROGRESS)
        member.deadline_ms = self._clock.monotonic_ms() + member.session_timeout_ms

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise BrokerError (GROUP_ID_NOT_FOUND) if the group is dead. Classic members don't say who they are."""
        self._require_alive()

    def validate_delete(self) -> None:
        """Raise BrokerError (NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND) unless the group may be deleted."""
        self._require_alive()
        if self.state in _WITH_MEMBERS:
            raise BrokerError(ErrorCode.NON_EMPTY_GROUP)

    def validate_offset_delete(self) -> None:
        """Raise BrokerError (NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND) unless it's empty or has consumers."""
        self._require_alive()
        if self.state in _WITH_MEMBERS and not self.uses_consumer_protocol:
            raise BrokerError(ErrorCode.NON_EMPTY_GROUP)

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member is; for consumers whose subscriptions can't be read: yes, to be safe."""
        topics = self.subscribed_topics()
        return topic in topics if topics is not None else self.uses_consumer_protocol

    def offset_expiry(self, now_ms: int) -> OffsetExpiry | None:
        """KIP-211: an Empty group's offsets expire since it's empty, a standalone consumer's since each was committed;
        with consumers, those of topics that nobody is subscribed to, when that is known; else none.
        """
        if self._type is None:
            return OffsetExpiry(lambda commit_timestamp_ms: commit_timestamp_ms, self.is_subscribed_to)
        if self.state is ClassicState.EMPTY:
            since_ms = self.state_timestamp_ms
            if since_ms == NO_TIMESTAMP:
                return OffsetExpiry(lambda commit_timestamp_ms: commit_timestamp_ms, self.is_subscribed_to)
            return OffsetExpiry(lambda _: since_ms, self.is_subscribed_to)
        if self.state is ClassicState.STABLE and self.uses_consumer_protocol and self.subscribed_topics() is not None:
            return OffsetExpiry(lambda commit_timestamp_ms: commit_timestamp_ms, self.is_subscribed_to)
        return None

    def tombstones(self) -> list[CoordinatorRecord]:
        """The record that deletes it; its offsets apart."""
        return [CoordinatorRecord(GroupMetadataKey(group=self.group_id), None)]

    # What requests need to know.

    @property
    def uses_consumer_protocol(self) -> bool:
        return self._type == CONSUMER_PROTOCOL_TYPE

    @property
    def following_generation(self) -> int:
        """What the next generation is called; after the last int it is 1 again, for they are only told apart."""
        return self.generation % LAST_GENERATION + 1

    @property
    def has_all_joined(self) -> bool:
        """Whether every member's JoinGroup waits, and nobody is still to come with an id that was given out."""
        return self.awaiting_join_count == len(self.members) and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest of all members'; takes a pass over them."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def subscribed_topics(self) -> frozenset[str] | None:
        """The topics of all members of this generation; None where the coordinator doesn't know them."""
        if self._subscriptions is not None:
            self._subscribed = subscribed_topics(self._subscriptions)
            self._subscriptions = None
        return self._subscribed

    def validate_member(self, member_id: str, instance_id: str | None) -> ClassicMember:
        """The member; raises BrokerError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
        if instance_id is not None:
            known = self.static_members.get(instance_id)
            if known is None:
                raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)
            if known != member_id:
                log.info(
                    "static member is fenced",
                    extra={"fields": {"group": self.group_id, "instance": instance_id, "by": known, "old": member_id}},
                )
                raise BrokerError(ErrorCode.FENCED_INSTANCE_ID)
        member = self.members.get(member_id)
        if member is None:
            raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member that offers these could join: all members have to have one protocol in common."""
        if self.state is ClassicState.EMPTY:
            return bool(protocol_type and protocols)
        count = len(self.members)
        return self._type == protocol_type and any(self._supported.get(name, 0) == count for name, _ in protocols)

    def select_protocol(self, replacing: tuple[ClassicMember, ClassicMember] | None = None) -> str | None:
        """The protocol with most votes, of those that all members have; also as if one were replaced by another."""
        members = list(self.members.values())
        supported = self._supported
        if replacing is not None:
            old, new = replacing
            members = [new if member is old else member for member in members]
            supported = supported.copy()
            _count(supported, old, -1)
            _count(supported, new, +1)
        candidates = {name for name, count in supported.items() if count == len(members)}
        votes: dict[str | None, int] = {}
        for member in members:
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__, default=None)

    # What changes it.

    def move_to(self, state: ClassicState, reason: str) -> None:
        """Enter a state. The reason goes to the history and, in one line, to the log."""
        if self.state not in VALID_PREVIOUS[state]:
            raise AssertionError(f"{state} may not follow {self.state}")
        self.previous_state, self.state = self.state, state
        self.state_timestamp_ms = self._clock.now_ms()
        self._remember(self.state_timestamp_ms, self.previous_state, reason)
        level = logging.DEBUG if state is ClassicState.DEAD else logging.INFO
        if log.isEnabledFor(level):
            fields = {"group": self.group_id, "generation": self.generation}
            fields |= {"members": len(self.members), "reason": reason}
            log.log(level, "group goes from %s to %s", self.previous_state.value, state.value, extra={"fields": fields})

    def note(self, reason: str) -> None:
        """Remember something that changes no state."""
        self._remember(self._clock.now_ms(), self.state, reason)

    def next_generation(self, reason: str) -> None:
        """Count the generation up and let the members vote: CompletingRebalance, or Empty if nobody is there."""
        self.generation = self.following_generation
        self.protocol_name = self.select_protocol() if self.members else None
        self._remember_subscriptions()
        self.pending_sync.clear()
        self.move_to(ClassicState.COMPLETING_REBALANCE if self.members else ClassicState.EMPTY, reason)

    def elect_joined_leader(self) -> bool:
        """Keep the leader if it has joined, else take the first member that has; False if nobody has."""
        if self.leader_id is None:
            return False
        if self.members[self.leader_id].awaiting_join is not None:
            return True
        for member in self.members.values():
            if member.awaiting_join is not None:
                self.leader_id = member.member_id
                return True
        return False

    def add(self, member: ClassicMember) -> None:
        """A member comes; the first one gives the group its protocol type and leads."""
        if not self.members:
            self._type = member.protocol_type or None
        if self.leader_id is None:
            self.leader_id = member.member_id
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self.members[member.member_id] = member
        _count(self._supported, member, +1)
        self.pending.discard(member.member_id)

    def remove(self, member_id: str) -> ClassicMember | None:
        """A member, or an id that was given out, goes; the member must not wait for anything any more."""
        self.pending.discard(member_id)
        self.pending_sync.discard(member_id)
        member = self.members.pop(member_id, None)
        if member is None:
            return None
        _count(self._supported, member, -1)
        if member.instance_id is not None:
            self.static_members.pop(member.instance_id, None)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        return member

    def update(self, member: ClassicMember, protocols: Protocols, rebalance_timeout_ms: int, timeout_ms: int) -> None:
        """A member says anew what it can and how long it may take."""
        _count(self._supported, member, -1)
        member.protocols = protocols
        _count(self._supported, member, +1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = timeout_ms

    def replace(self, old: ClassicMember, new: ClassicMember) -> None:
        """A static member comes back under a new id, and takes the old one's place, also as leader."""
        _count(self._supported, old, -1)
        _count(self._supported, new, +1)
        self.members = {
            (new.member_id if member is old else member_id): (new if member is old else member)
            for member_id, member in self.members.items()
        }
        self.pending_sync.discard(old.member_id)
        if self.leader_id == old.member_id:
            self.leader_id = new.member_id
        assert new.instance_id is not None
        self.static_members[new.instance_id] = new.member_id

    def await_join(self, member: ClassicMember, reply: Reply) -> Reply | None:
        """The member's JoinGroup waits now; the reply of an earlier one that it takes the place of."""
        earlier, member.awaiting_join = member.awaiting_join, reply
        self.awaiting_join_count += earlier is None
        return earlier

    def end_join(self, member: ClassicMember, answers: list[tuple[Reply, Any]], response: Any) -> None:
        """Answer the member's JoinGroup, if it waits."""
        if member.awaiting_join is not None:
            answers.append((member.awaiting_join, response))
            member.awaiting_join = None
            self.awaiting_join_count -= 1

    def _remember(self, timestamp_ms: int, old_state: ClassicState, reason: str) -> None:
        begins = self.state is ClassicState.PREPARING_REBALANCE and old_state is not self.state
        now = Transition(
            timestamp_ms, old_state.value, self.state.value, reason, self.generation, len(self.members), begins
        )
        self.history.note(now)

    def _remember_subscriptions(self) -> None:
        """Keep what `subscribed_topics` is to be read from, once somebody asks."""
        self._subscribed = None
        self._subscriptions = None
        if self.uses_consumer_protocol and (self.protocol_name is not None or not self.members):
            self._subscriptions = [member.metadata(self.protocol_name) for member in self.members.values()]

    def _require_alive(self) -> None:
        if self.state is ClassicState.DEAD:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND)


def _count(supported: dict[str, int], member: ClassicMember, change: int) -> None:
    for name, _ in member.protocols:
        supported[name] = supported.get(name, 0) + change
        if not supported[name]:
            del supported[name]
