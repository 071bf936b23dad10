"""Members of the classic protocol in a consumer group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup (KIP-848).

To such a member its own epoch is the generation, and everybody leads a group of one: JoinGroup answers at once, without
a list of members, and SyncGroup gives what the coordinator has assigned. What the member owns it says in its
subscription, so that it gives partitions up by joining again, when Heartbeat tells it to.
"""

from copy import copy
from typing import TYPE_CHECKING, Final

from kavka.coordinator.group.classic.removal import leave_answer, leaving_members
from kavka.coordinator.group.consumer import migration
from kavka.coordinator.group.consumer.assignment import NO_PARTITIONS, listed
from kavka.coordinator.group.consumer.deadlines import NEVER
from kavka.coordinator.group.consumer.group import CONSUMER_PROTOCOL_TYPE, ConsumerGroup
from kavka.coordinator.group.consumer.heartbeats import check_static, new_member_id
from kavka.coordinator.group.consumer.member import ClassicMetadata, Member, MemberState
from kavka.coordinator.group.consumer.topics import what_changed
from kavka.coordinator.runtime.result import Reply, Result
from kavka.protocol.errors import BrokerError, DecodeError, ErrorCode
from kavka.protocol.messages.consumer_group_heartbeat import TopicPartitions
from kavka.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kavka.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kavka.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity, MemberResponse
from kavka.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from kavka.coordinator.group.consumer.change import Change
    from kavka.coordinator.group.consumer.decisions import Decisions
    from kavka.coordinator.group.group import Client
    from kavka.protocol.internal.consumer_protocol import ConsumerProtocolSubscription

MEMBER_ID_REQUIRED_FROM: Final = 4
"""The JoinGroup version from which a new member is told its id first (KIP-394)."""
NULLABLE_PROTOCOL_FROM: Final = 7


class ClassicMembers:
    """Decides on classic requests to consumer groups of one shard; guarded by its lock."""

    __slots__ = ("_decisions",)

    def __init__(self, decisions: "Decisions") -> None:
        self._decisions = decisions

    def join(self, request: JoinGroupRequest, client: "Client", reply: Reply) -> Result:
        """Refused with GROUP_MAX_SIZE_REACHED, INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_MEMBER_ID, ..."""
        try:
            return self._join(request, client, reply)
        except BrokerError as error:
            return Result(replies=((reply, _join_refused("", error.code, client.api_version)),))

    def _join(self, request: JoinGroupRequest, client: "Client", reply: Reply) -> Result:
        decisions = self._decisions
        group = decisions.group(request.group_id)
        if group.is_empty:
            return decisions.classic.join(request, client, reply)
        member_id = request.member_id or new_member_id()
        self._check_join(group, request)
        is_nameless = not request.member_id and request.group_instance_id is None
        if is_nameless and client.api_version >= MEMBER_ID_REQUIRED_FROM:
            refused = _join_refused(member_id, ErrorCode.MEMBER_ID_REQUIRED, client.api_version)
            return Result(replies=((reply, refused),))
        protocols = tuple((each.name, bytes(each.metadata)) for each in request.protocols)
        try:
            subscription = migration.subscription_of(protocols)
        except DecodeError as error:
            raise BrokerError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Malformed embedded consumer protocol: {error}."
            ) from None
        change = decisions.change(group.logged)
        before = self._member(change, member_id, request)
        wanted = _wishes(before, request, client, subscription, ClassicMetadata(request.session_timeout_ms, protocols))
        change.put_member(wanted)
        change.drop_unused_regexes()
        if not _all_classic(group) and migration.may_downgrade(change.after.members.values(), decisions.context.config):
            # The last member of the consumer protocol, a static one, comes back by the classic protocol.
            rejoining = copy(request)
            rejoining.member_id = member_id
            reason = f"static member {request.group_instance_id} came back by the classic protocol"
            return decisions.downgraded(
                change, (), reason, then=lambda: decisions.classic.join(rejoining, client, reply)
            )
        after = self._step(change, group, before, wanted, subscription)
        response = _joined(member_id, after.epoch, protocols[0][0])
        reason = f"member {member_id} joined by the classic protocol"
        return decisions.decided(change, ((reply, response),), reason, lambda group: self._joined(group, after))

    def _step(
        self,
        change: "Change",
        group: ConsumerGroup,
        before: Member,
        wanted: Member,
        subscription: "ConsumerProtocolSubscription",
    ) -> Member:
        """What a heartbeat does for members of the consumer protocol."""
        known = self._decisions.known
        bump = wanted.topics != before.topics or wanted.regex != before.regex
        if bump or group.known_topics_version != change.topics_version:
            change.look_at_topics(bump=bump)
        change.assign()
        owned = [
            TopicPartitions(topic_id=topic_id, partitions=numbers)
            for topic_id, numbers in listed(migration.partitions_by_id(subscription.owned_partitions, known))
        ]
        return change.reconcile(wanted.member_id, owned, subscription_changed=bump)

    def _joined(self, group: ConsumerGroup, member: Member) -> None:
        decisions = self._decisions
        deadlines = decisions.deadlines(group, member.member_id)
        deadlines.join_ms = deadlines.revoke_ms = NEVER
        deadlines.sync_ms = decisions.context.monotonic_ms() + member.rebalance_timeout_ms
        decisions.renew(group, member)
        decisions.arm(group.group_id, member.member_id, deadlines)
        decisions.forget_gone(group)

    def sync(self, request: SyncGroupRequest, reply: Reply) -> Result:
        """Raises BrokerError: UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS, ..."""
        decisions = self._decisions
        group = decisions.group(request.group_id)
        member, classic = self._known_member(group, request.member_id, request.group_instance_id, request.generation_id)
        if request.protocol_type is not None and request.protocol_type != CONSUMER_PROTOCOL_TYPE:
            raise BrokerError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"The protocol type {request.protocol_type} from member {member.member_id} request is not equal to the "
                f"group protocol type {CONSUMER_PROTOCOL_TYPE}.",
            )
        if request.protocol_name is not None and request.protocol_name != classic.protocol_name:
            raise BrokerError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"The protocol name {request.protocol_name} from member {member.member_id} request is not equal to the "
                f"protocol name {classic.protocol_name} returned in the join response.",
            )
        if group.logged.epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._expect_join(group, member)
            raise BrokerError(ErrorCode.REBALANCE_IN_PROGRESS)
        deadlines = decisions.deadlines(group, member.member_id)
        deadlines.sync_ms = NEVER
        decisions.renew(group, member)
        response = SyncGroupResponse(
            error_code=ErrorCode.NONE,
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=migration.encode_for(classic, member.assigned, decisions.known),
        )
        return Result(replies=((reply, response),), reads_committed=True)

    def heartbeat(self, request: HeartbeatRequest, reply: Reply) -> Result:
        """The member is told REBALANCE_IN_PROGRESS when joining again would bring it on."""
        group = self._decisions.group(request.group_id)
        member, _ = self._known_member(group, request.member_id, request.group_instance_id, request.generation_id)
        self._decisions.renew(group, member)
        change = self._decisions.change(group.logged)
        if group.known_topics_version != change.topics_version:
            change.look_at_topics(bump=False)
        code = ErrorCode.NONE
        if (
            member.epoch < change.after.epoch
            or member.state is MemberState.UNREVOKED_PARTITIONS
            or (member.state is MemberState.UNRELEASED_PARTITIONS and not _waits_for_others(group, member))
        ):
            code = ErrorCode.REBALANCE_IN_PROGRESS
            self._expect_join(group, member)
        replies = ((reply, HeartbeatResponse(error_code=code)),)
        reason = what_changed(change.before.topics, change.after.topics) if change.records else ""
        return self._decisions.decided(change, replies, reason, lambda _: None)

    def leave(self, request: LeaveGroupRequest, client: "Client", reply: Reply) -> Result:
        """Also removes members of the consumer protocol, for an administrator."""
        group = self._decisions.group(request.group_id)
        leaving: dict[str, None] = {}
        answers = []
        for identity in leaving_members(request, client.api_version):
            code = ErrorCode.NONE
            try:
                leaving[_leaving_member(group, identity).member_id] = None
            except BrokerError as error:
                code = error.code
            answers.append(
                MemberResponse(
                    member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=code
                )
            )
        replies = ((reply, leave_answer(answers, client.api_version)),)
        if not leaving:
            return Result(replies=replies, reads_committed=True)
        return self._decisions.take_out(group, list(leaving), f"left: {', '.join(leaving)}", replies)

    def _check_join(self, group: ConsumerGroup, request: JoinGroupRequest) -> None:
        members = group.logged.members
        self._decisions.check_room(group.logged, request.member_id, request.group_instance_id)
        if request.protocol_type == CONSUMER_PROTOCOL_TYPE:
            classics = [each.classic for each in members.values() if each.classic is not None]
            shared = {each.name for each in request.protocols}
            for classic in classics:
                shared.intersection_update(name for name, _ in classic.protocols)
            if shared:
                return
        raise BrokerError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Member {request.member_id}'s protocols are not supported."
        )

    def _member(self, change: "Change", member_id: str, request: JoinGroupRequest) -> Member:
        state, instance_id = change.after, request.group_instance_id
        if instance_id is None:
            return state.members.get(member_id) or Member(member_id)
        existing = state.members.get(state.static_members.get(instance_id, ""))
        if request.member_id:
            return check_static(existing, member_id, instance_id)
        return Member(member_id) if existing is None else change.replace_static(existing, member_id)

    def _known_member(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
    ) -> tuple[Member, ClassicMetadata]:
        if instance_id is None:
            member = group.member(member_id)
        else:
            member = check_static(group.static_member(instance_id), member_id, instance_id)
        if member.classic is None:
            raise BrokerError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member.member_id} does not use the classic protocol."
            )
        if generation != member.epoch:
            raise BrokerError(
                ErrorCode.ILLEGAL_GENERATION,
                f"The request generation id {generation} is not equal to the member epoch {member.epoch} of member "
                f"{member.member_id}.",
            )
        return member, member.classic

    def _expect_join(self, group: ConsumerGroup, member: Member) -> None:
        deadlines = self._decisions.deadlines(group, member.member_id)
        if deadlines.join_ms == NEVER:
            deadlines.join_ms = self._decisions.context.monotonic_ms() + member.rebalance_timeout_ms
            self._decisions.arm(group.group_id, member.member_id, deadlines)


def _wishes(
    member: Member,
    request: JoinGroupRequest,
    client: "Client",
    subscription: "ConsumerProtocolSubscription",
    classic: ClassicMetadata,
) -> Member:
    timeout_ms = request.rebalance_timeout_ms
    return member._replace(
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        client_id=client.client_id,
        client_host=client.host,
        topics=frozenset(subscription.topics),
        regex="",
        rebalance_timeout_ms=request.session_timeout_ms if timeout_ms == -1 else timeout_ms,
        classic=classic,
    )


def _leaving_member(group: ConsumerGroup, identity: MemberIdentity) -> Member:
    if identity.group_instance_id is None:
        return group.member(identity.member_id)
    member = group.static_member(identity.group_instance_id)
    # An administrator names the instance alone.
    return check_static(
        member, identity.member_id or (member.member_id if member is not None else ""), identity.group_instance_id
    )


def _waits_for_others(group: ConsumerGroup, member: Member) -> bool:
    owner = group.logged.owner
    return any(
        number not in member.assigned.get(topic_id, NO_PARTITIONS) and owner(topic_id, number) is not None
        for topic_id, numbers in group.logged.target(member.member_id).items()
        for number in numbers
    )


def _all_classic(group: ConsumerGroup) -> bool:
    return group.logged.classic_members == len(group.logged.members)


def _joined(member_id: str, epoch: int, protocol: str) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=ErrorCode.NONE,
        generation_id=epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=protocol,
        leader="",
        member_id=member_id,
        members=[],
    )


def _join_refused(member_id: str, code: ErrorCode, api_version: int) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=code,
        protocol_name=None if api_version >= NULLABLE_PROTOCOL_FROM else "",
        leader="",
        member_id=member_id,
        members=[],
    )
