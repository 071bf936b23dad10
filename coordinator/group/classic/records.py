"""What the log says of a classic group: one GroupMetadata record, all members in its value."""

from collections.abc import Mapping
from typing import Final

from kavka.coordinator.group.classic.group import ClassicGroup
from kavka.coordinator.group.classic.member import ClassicMember
from kavka.coordinator.ports import Clock
from kavka.coordinator.runtime.result import CoordinatorRecord
from kavka.protocol.internal.group_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata

VALUE_VERSION: Final = 3


def group_record(
    group: ClassicGroup,
    assignments: Mapping[str, bytes] | None = None,
    replacing: tuple[ClassicMember, ClassicMember] | None = None,
) -> CoordinatorRecord:
    """The group as it is; or with other assignments; or with one member replaced by another."""
    old, new = replacing if replacing is not None else (None, None)
    members = [new if new is not None and member is old else member for member in group.members.values()]
    leader_id = group.leader_id
    if old is not None and new is not None and old.member_id == leader_id:
        leader_id = new.member_id
    stored = [
        _stored(
            member,
            group.protocol_name,
            member.assignment if assignments is None else assignments.get(member.member_id, b""),
        )
        for member in members
    ]
    value = GroupMetadataValue(
        protocol_type=group.protocol_type,
        generation=group.generation,
        protocol=group.protocol_name,
        leader=leader_id,
        current_state_timestamp=group.state_timestamp_ms,
        members=stored,
    )
    return CoordinatorRecord(GroupMetadataKey(group=group.group_id), value, VALUE_VERSION)


def emptied_record(group: ClassicGroup, timestamp_ms: int) -> CoordinatorRecord:
    """The group in its next generation, with nobody in it."""
    value = GroupMetadataValue(
        protocol_type=group.protocol_type,
        generation=group.following_generation,
        protocol=None,
        leader=None,
        current_state_timestamp=timestamp_ms,
        members=[],
    )
    return CoordinatorRecord(GroupMetadataKey(group=group.group_id), value, VALUE_VERSION)


def restored_group(group_id: str, value: GroupMetadataValue, clock: Clock) -> ClassicGroup:
    """The group that a record tells of: Stable, or Empty if it has no members. Nobody's session runs yet."""
    return ClassicGroup.of_members(
        group_id,
        [_restored(each, value.protocol_type, value.protocol) for each in value.members],
        clock,
        generation=value.generation,
        protocol_type=value.protocol_type,
        protocol_name=value.protocol,
        leader_id=value.leader,
        state_timestamp_ms=value.current_state_timestamp,
    )


def _stored(member: ClassicMember, protocol_name: str | None, assignment: bytes) -> MemberMetadata:
    return MemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.session_timeout_ms,
        subscription=member.metadata(protocol_name),
        assignment=assignment,
    )


def _restored(stored: MemberMetadata, protocol_type: str, protocol_name: str | None) -> ClassicMember:
    """Values before v1 have no rebalance timeout: the session's counts."""
    return ClassicMember(
        stored.member_id,
        instance_id=stored.group_instance_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        rebalance_timeout_ms=stored.session_timeout if stored.rebalance_timeout == -1 else stored.rebalance_timeout,
        session_timeout_ms=stored.session_timeout,
        protocol_type=protocol_type,
        protocols=((protocol_name or "", bytes(stored.subscription)),),
        assignment=bytes(stored.assignment),
    )
