"""The answers to JoinGroup, SyncGroup and LeaveGroup, made in one place each."""

from typing import Any, Final, TypeAlias

from kavka.coordinator.group.classic.group import ClassicGroup
from kavka.coordinator.group.classic.member import ClassicMember
from kavka.coordinator.runtime.result import Reply
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from kavka.protocol.messages.leave_group import LeaveGroupResponse
from kavka.protocol.messages.sync_group import SyncGroupResponse

Answers: TypeAlias = list[tuple[Reply, Any]]
"""Replies with what to say; gathered while a decision is made."""

UNKNOWN_MEMBER: Final = ""


def joined(
    group: ClassicGroup,
    member: ClassicMember,
    members: list[JoinGroupResponseMember],
    *,
    leader_id: str | None = None,
    skip_assignment: bool = False,
) -> JoinGroupResponse:
    """The generation that a member is in. `members` is empty for all but the leader."""
    return JoinGroupResponse(
        error_code=ErrorCode.NONE,
        generation_id=group.generation,
        protocol_type=group.protocol_type or None,
        protocol_name=group.protocol_name,
        leader=(group.leader_id if leader_id is None else leader_id) or "",
        skip_assignment=skip_assignment,
        member_id=member.member_id,
        members=members,
    )


def listed_members(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    """What the leader is told of all members."""
    name = group.protocol_name
    return [
        JoinGroupResponseMember(
            member_id=member.member_id, group_instance_id=member.instance_id, metadata=member.metadata(name)
        )
        for member in group.members.values()
    ]


def join_refused(code: ErrorCode, member_id: str = UNKNOWN_MEMBER) -> JoinGroupResponse:
    """No generation: an error. The handler makes the protocol's name null where it can be."""
    return JoinGroupResponse(error_code=code, protocol_name="", leader="", member_id=member_id, members=[])


def synced(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    """A member's assignment."""
    return SyncGroupResponse(
        error_code=ErrorCode.NONE,
        protocol_type=group.protocol_type or None,
        protocol_name=group.protocol_name,
        assignment=assignment,
    )


def sync_refused(code: ErrorCode) -> SyncGroupResponse:
    """No assignment: an error."""
    return SyncGroupResponse(error_code=code, assignment=b"")


def leave_refused(code: ErrorCode) -> LeaveGroupResponse:
    """Nobody has left: an error."""
    return LeaveGroupResponse(error_code=code, members=[])


def end_sync(member: ClassicMember, answers: Answers, response: SyncGroupResponse) -> bool:
    """Answer the member's SyncGroup; False if it does not wait."""
    if member.awaiting_sync is None:
        return False
    answers.append((member.awaiting_sync, response))
    member.awaiting_sync = None
    return True
