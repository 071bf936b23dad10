"""LeaveGroup: members go of their own will, or are removed by an administrator."""

from typing import TYPE_CHECKING, Final

from kavka.coordinator.group.classic import answers as respond
from kavka.coordinator.group.classic.answers import Answers
from kavka.coordinator.group.classic.group import ClassicGroup
from kavka.coordinator.group.classic.member import ClassicMember
from kavka.coordinator.group.classic.rebalance import some_of
from kavka.coordinator.group.classic.states import ClassicState
from kavka.coordinator.runtime.result import Result
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse

if TYPE_CHECKING:
    from kavka.coordinator.group.classic.rebalance import Emptied, Rebalances
    from kavka.coordinator.group.classic.sessions import Sessions
    from kavka.coordinator.group.table import GroupTable
    from kavka.coordinator.runtime.result import Reply

FIRST_BATCHED_VERSION: Final = 3
REASON_CHARACTERS: Final = 255


class Removal:
    """Decides on LeaveGroup requests, and takes members away whose session is over. Guarded by the shard's lock."""

    __slots__ = ("_rebalances", "_sessions", "_table")

    def __init__(self, table: "GroupTable", sessions: "Sessions", rebalances: "Rebalances") -> None:
        self._table = table
        self._sessions = sessions
        self._rebalances = rebalances

    def leave(self, request: LeaveGroupRequest, api_version: int, reply: "Reply") -> Result:
        """Decide on one LeaveGroup, whose group isn't a consumer group."""
        group = self._table.get(request.group_id)
        if isinstance(group, ClassicGroup) and group.state is ClassicState.DEAD:
            return Result(replies=[(reply, respond.leave_refused(ErrorCode.COORDINATOR_NOT_AVAILABLE))])
        identities = leaving_members(request, api_version)
        if not isinstance(group, ClassicGroup):
            left = [_answered(identity, ErrorCode.UNKNOWN_MEMBER_ID) for identity in identities]
            return Result(replies=[(reply, leave_answer(left, api_version))])
        answers: Answers = []
        reasons: list[str] = []
        left = [self._leave_one(group, identity, reasons, answers) for identity in identities]
        emptied = self._go_on(group, f"left: {some_of(reasons)}", answers) if reasons else None
        others = list(answers)
        answers.append((reply, leave_answer(left, api_version)))
        return self._rebalances.decided(
            answers, emptied, lambda error: [*others, (reply, respond.leave_refused(error.code))]
        )

    def expired(self, group: ClassicGroup, member_id: str) -> Result:
        """A member's session is over, or an id was not used in time."""
        answers: Answers = []
        member = group.members.get(member_id)
        if member is None:
            group.remove(member_id)
            group.note(f"id {member_id} was not used in time")
            return self._rebalances.decided(answers, self._rebalances.complete_if_all_joined(group, answers))
        what = "its first JoinGroup has waited too long" if member.is_new else "no heartbeat in time"
        self.remove(group, member, answers)
        return self._rebalances.decided(answers, self._go_on(group, f"member {member_id} is lost: {what}", answers))

    def remove(self, group: ClassicGroup, member: ClassicMember, answers: Answers) -> None:
        """Take a member out; what it waits for is answered with UNKNOWN_MEMBER_ID, so that it may join anew."""
        group.end_join(member, answers, respond.join_refused(ErrorCode.UNKNOWN_MEMBER_ID))
        respond.end_sync(member, answers, respond.sync_refused(ErrorCode.UNKNOWN_MEMBER_ID))
        self._sessions.stop(group, member)
        group.remove(member.member_id)

    def _leave_one(
        self, group: ClassicGroup, identity: MemberIdentity, reasons: list[str], answers: Answers
    ) -> MemberResponse:
        member_id, instance_id = identity.member_id, identity.group_instance_id
        if not member_id and instance_id is not None:
            # An administrator names the instance alone.
            member_id = group.static_members.get(instance_id, "")
        if member_id in group.pending:
            group.remove(member_id)
            self._sessions.stop_pending(group, member_id)
        else:
            try:
                self.remove(group, group.validate_member(member_id, instance_id), answers)
            except BrokerError as error:
                return _answered(identity, error.code)
        why = (identity.reason or "not provided")[:REASON_CHARACTERS]
        reasons.append(f"{member_id} (client reason: {why})")
        return _answered(identity, ErrorCode.NONE)

    def _go_on(self, group: ClassicGroup, reason: str, answers: Answers) -> "Emptied | None":
        if group.state in (ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE):
            return self._rebalances.prepare(group, reason, answers)
        if group.state is ClassicState.PREPARING_REBALANCE:
            group.note(reason)
            return self._rebalances.complete_if_all_joined(group, answers)
        return None


def leaving_members(request: LeaveGroupRequest, api_version: int) -> list[MemberIdentity]:
    """Who is to leave: before v3 one member, outside the list."""
    if api_version >= FIRST_BATCHED_VERSION:
        return request.members
    return [MemberIdentity(member_id=request.member_id)]


def leave_answer(left: list[MemberResponse], api_version: int) -> LeaveGroupResponse:
    """The answer about each of them: before v3 the one member's error is the request's."""
    if api_version >= FIRST_BATCHED_VERSION:
        return LeaveGroupResponse(error_code=ErrorCode.NONE, members=left)
    return LeaveGroupResponse(error_code=left[0].error_code, members=[])


def _answered(identity: MemberIdentity, code: ErrorCode) -> MemberResponse:
    return MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=code)
