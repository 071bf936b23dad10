"""ConsumerGroupHeartbeat: joining, staying, leaving.

A heartbeat goes three steps: the member's wishes are written down, and the group gets a new epoch if they, or the
topics, have changed; if the group's epoch is ahead of the target assignment, the target is computed; the member takes a
step towards its target. One that has nothing new writes nothing, and moves a deadline.
"""

import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from kavka.coordinator.group.classic.group import ClassicGroup
from kavka.coordinator.group.consumer import migration
from kavka.coordinator.group.consumer.assignment import Assignment, is_part_of, listed
from kavka.coordinator.group.consumer.deadlines import NEVER
from kavka.coordinator.group.consumer.group import ConsumerGroup
from kavka.coordinator.group.consumer.member import JOINING, LEFT_FOR_A_WHILE, Member, MemberState
from kavka.coordinator.group.consumer.regex import check_regex
from kavka.coordinator.group.consumer.requests import check_heartbeat, is_full
from kavka.coordinator.group.consumer.state import LoggedState
from kavka.coordinator.group.consumer.topics import what_changed
from kavka.coordinator.runtime.result import CoordinatorRecord, Reply, Result
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.consumer_group_heartbeat import (
    Assignment as AnsweredAssignment,
)
from kavka.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kavka.protocol.schema import uuid_to_text

if TYPE_CHECKING:
    from kavka.coordinator.group.consumer.change import Change
    from kavka.coordinator.group.consumer.decisions import Decisions
    from kavka.coordinator.group.consumer.resolutions import Resolutions
    from kavka.coordinator.group.group import Client, Viewer


class Entered(NamedTuple):
    """The group that a heartbeat is for, perhaps not there yet."""

    change: "Change"
    first: Sequence[CoordinatorRecord] = ()
    """Tombstones of the classic group whose place it takes."""
    replaced: ClassicGroup | None = None
    """That group, if it has members, who must be told."""


class Heartbeats:
    """Decides on heartbeats of one shard; guarded by its lock."""

    __slots__ = ("_config", "_decisions", "_resolutions", "_table")

    def __init__(self, decisions: "Decisions", resolutions: "Resolutions") -> None:
        self._decisions = decisions
        self._resolutions = resolutions
        self._table = decisions.table

    def heartbeat(self, request: ConsumerGroupHeartbeatRequest, client: "Client", reply: Reply) -> Result:
        """Raises BrokerError for all that is refused."""
        check_heartbeat(request, client.api_version, self._decisions.assignors)
        if request.member_epoch < JOINING:
            return self._leave(request, reply)
        entered = self._enter(request)
        change = entered.change
        self._decisions.check_room(change.after, request.member_id, request.instance_id)
        member_id = request.member_id or new_member_id()
        before = self._member(change, member_id, request)
        after = self._step(change, before, wishes(before, request, client), request.topic_partitions, client.viewer)
        response = self._response(request, change, before, after)
        afterwards = partial(self._afterwards, before, after, entered.replaced, client.viewer)
        reason = _reason(change, before, after, entered.replaced)
        return self._decisions.decided(change, ((reply, response),), reason, afterwards, first=entered.first)

    def _response(
        self, request: ConsumerGroupHeartbeatRequest, change: "Change", before: Member, after: Member
    ) -> ConsumerGroupHeartbeatResponse:
        if change.starts_over and request.member_epoch != JOINING:
            return ConsumerGroupHeartbeatResponse(
                error_code=ErrorCode.FENCED_MEMBER_EPOCH,
                error_message="The group's epochs begin anew. The member must abandon all its partitions and rejoin.",
                member_epoch=0,
                heartbeat_interval_ms=0,
            )
        told = None
        if request.member_epoch == JOINING or is_full(request) or after.assigned != before.assigned:
            told = answered(after.assigned)
        return ConsumerGroupHeartbeatResponse(
            error_code=ErrorCode.NONE,
            member_id=after.member_id,
            member_epoch=after.epoch,
            heartbeat_interval_ms=self._decisions.context.group_config(request.group_id).consumer_heartbeat_interval_ms,
            assignment=told,
        )

    def _step(
        self,
        change: "Change",
        before: Member,
        wanted: Member,
        owned: Sequence[TopicPartitions] | None,
        viewer: "Viewer | None",
    ) -> Member:
        state = change.after
        names_changed = wanted.topics != before.topics
        regex_changed = wanted.regex != before.regex
        if regex_changed and wanted.regex and wanted.regex not in state.regexes:
            check_regex(wanted.regex)
        group = self._table.get(state.group_id)
        known_version = group.known_topics_version if isinstance(group, ConsumerGroup) else None
        change.put_member(wanted)
        if regex_changed:
            change.drop_unused_regexes()
        sees_less = isinstance(group, ConsumerGroup) and change.hide_topics(wanted, viewer, group.viewers)
        # A new expression begins an epoch when it has been resolved: the target would be for nothing before.
        is_resolved = not wanted.regex or wanted.regex in change.after.resolved
        bump = change.after.epoch == 0 or names_changed or (regex_changed and is_resolved) or sees_less
        if bump or known_version != change.topics_version:
            change.look_at_topics(bump=bump)
        change.assign()
        is_new = names_changed or regex_changed or sees_less
        return change.reconcile(wanted.member_id, owned, subscription_changed=is_new)

    def _enter(self, request: ConsumerGroupHeartbeatRequest) -> Entered:
        """Where the member belongs: a consumer group, one that is made for it, or a classic group that becomes one."""
        group = self._table.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return Entered(self._decisions.change(group.logged))
        if request.member_epoch != JOINING:
            text = (
                f"Consumer group {request.group_id} not found."
                if group is None
                else f"Group {request.group_id} is not a consumer group."
            )
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, text)
        change = self._decisions.change(LoggedState(request.group_id))
        if group is None:
            return Entered(change)
        if group.is_empty:
            return Entered(change, group.tombstones())
        assert isinstance(group, ClassicGroup)
        migration.check_upgrade(group, self._decisions.context.config)
        change.write(*migration.upgraded(group, self._decisions.known))
        return Entered(change, group.tombstones(), group)

    def _member(self, change: "Change", member_id: str, request: ConsumerGroupHeartbeatRequest) -> Member:
        """The member as it is known; a new one if it joins."""
        joining, state = request.member_epoch == JOINING, change.after
        if request.instance_id is None:
            member = state.members.get(member_id)
            if member is not None:
                check_epoch(member, request)
                return member
            if joining:
                return Member(member_id)
            raise BrokerError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {state.group_id}."
            )
        existing = state.members.get(state.static_members.get(request.instance_id, ""))
        if not joining:
            member = check_static(existing, member_id, request.instance_id)
            check_epoch(member, request)
            return member
        if existing is None:
            return state.members.get(member_id) or Member(member_id)
        if existing.classic is None and existing.epoch != LEFT_FOR_A_WHILE:
            if existing.member_id == member_id:
                # It asks again: the answer to its join was lost.
                return existing
            raise BrokerError(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {member_id} with instance id {request.instance_id} cannot join the group because the "
                f"instance id is owned by {existing.member_id} member.",
            )
        return change.replace_static(existing, member_id)

    def _afterwards(
        self,
        before: Member,
        after: Member,
        replaced: ClassicGroup | None,
        viewer: "Viewer | None",
        group: ConsumerGroup,
    ) -> Result | None:
        decisions = self._decisions
        deadlines = decisions.deadlines(group, after.member_id)
        if after.classic is None:
            # Those of a classic member, which it may have been under this id.
            deadlines.join_ms = deadlines.sync_ms = NEVER
        decisions.renew(group, after)
        if after is not before and _assignment_state(after) != _assignment_state(before):
            decisions.expect_revocation(group, after, expected=after.state is MemberState.UNREVOKED_PARTITIONS)
        if len(group.deadlines) > len(group.logged.members):
            decisions.forget_gone(group)
        group.viewers.met(after, viewer)
        if group.logged.regexes:
            self._resolutions.look(group)
        if replaced is None:
            return None
        for member in group.logged.members.values():
            decisions.renew(group, member)
        return Result(replies=decisions.classic.give_up(replaced))

    def _leave(self, request: ConsumerGroupHeartbeatRequest, reply: Reply) -> Result:
        group = self._decisions.group(request.group_id)
        response = ConsumerGroupHeartbeatResponse(
            error_code=ErrorCode.NONE,
            member_id=request.member_id,
            member_epoch=request.member_epoch,
            heartbeat_interval_ms=0,
        )
        replies: list[tuple[Reply, Any]] = [(reply, response)]
        if request.instance_id is None:
            member = group.member(request.member_id)
        else:
            member = check_static(group.static_member(request.instance_id), request.member_id, request.instance_id)
            if request.member_epoch == LEFT_FOR_A_WHILE:
                change = self._decisions.change(group.logged)
                change.leave_for_a_while(member)
                reason = f"static member {request.instance_id} left for a while"
                stops_waiting = partial(self._decisions.expect_revocation, member=member, expected=False)
                return self._decisions.decided(change, replies, reason, stops_waiting)
        return self._decisions.take_out(group, [member.member_id], f"member {member.member_id} left", replies)


def wishes(member: Member, request: ConsumerGroupHeartbeatRequest, client: "Client") -> Member:
    """The member with what a heartbeat says of it; the same one if that is nothing new."""
    topics, names = member.topics, request.subscribed_topic_names
    if names is not None and (len(names) != len(topics) or not topics.issuperset(names)):
        topics = frozenset(names)
    timeout_ms = request.rebalance_timeout_ms
    new = (
        member.instance_id if request.instance_id is None else request.instance_id,
        member.rack_id if request.rack_id is None else request.rack_id,
        client.client_id,
        client.host,
        topics,
        member.regex if request.subscribed_topic_regex is None else request.subscribed_topic_regex,
        member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        member.server_assignor if request.server_assignor is None else request.server_assignor,
        None,
    )
    return member if new == member.wishes else Member(member.member_id, *new, *member.standing)


def check_epoch(member: Member, request: ConsumerGroupHeartbeatRequest) -> None:
    """Raise BrokerError (FENCED_MEMBER_EPOCH) unless that is the member's epoch, or it joins anew.

    The epoch before is the member's, too, as long as it owns nothing but what it should: an answer may get lost.
    """
    epoch, owned = request.member_epoch, request.topic_partitions
    if epoch in (member.epoch, JOINING):
        return
    is_previous = epoch < member.epoch and epoch == member.previous_epoch
    if is_previous and owned is not None and is_part_of(owned, member.assigned):
        return
    raise BrokerError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {'greater' if epoch > member.epoch else 'smaller'} member epoch ({epoch}) "
        f"than the one known by the group coordinator ({member.epoch}). "
        "The member must abandon all its partitions and rejoin.",
    )


def check_static(member: Member | None, member_id: str, instance_id: str) -> Member:
    """The static member, unless another one is known by that instance id: FENCED_INSTANCE_ID, UNKNOWN_MEMBER_ID."""
    if member is None:
        raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise BrokerError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {member.member_id}.",
        )
    return member


def answered(assignment: Assignment) -> AnsweredAssignment:
    """An assignment as the answer carries it."""
    return AnsweredAssignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=numbers) for topic_id, numbers in listed(assignment)
        ]
    )


def new_member_id() -> str:
    """An id for a member that does not bring one; like Kafka's, it never begins with a dash."""
    while (member_id := uuid_to_text(os.urandom(16))).startswith("-"):
        continue
    return member_id


def _assignment_state(member: Member) -> tuple[Any, ...]:
    return (member.epoch, member.state, member.revoking)


def _reason(change: "Change", before: Member, after: Member, replaced: ClassicGroup | None) -> str:
    if replaced is not None:
        return f"member {after.member_id} joined a classic group by the consumer protocol"
    if before.epoch == JOINING:
        if before.instance_id is not None:
            return f"instance {before.instance_id} is back as member {after.member_id}"
        return f"member {after.member_id} joined"
    if before.wishes != after.wishes:
        return f"member {after.member_id} changed its subscription"
    if change.after.topics is not change.before.topics:
        return what_changed(change.before.topics, change.after.topics)
    if before.epoch != after.epoch:
        return f"member {after.member_id} reached epoch {after.epoch}"
    if after.revoking:
        return f"member {after.member_id} must give partitions up"
    return f"member {after.member_id} got partitions that others gave up"
