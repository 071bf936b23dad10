"""ListGroups, and the descriptions of classic groups and of KIP-848's."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from kavka.client.admin.operation import (
    ALWAYS_RETRIED,
    Answered,
    Operation,
    Outcome,
    check,
    error_or,
)
from kavka.client.admin.targets import Broker, Coordinator
from kavka.client.admin.types.acls import authorized_operations
from kavka.client.admin.types.groups import (
    ClassicGroupDescription,
    ClassicMember,
    ConsumerGroupDescription,
    GroupListing,
    GroupState,
    GroupTransition,
    GroupType,
    MemberDescription,
)
from kavka.client.api_errors import GroupIdNotFoundError, KafkaError, UnknownServerError, error_of
from kavka.client.call import RequestBuilder
from kavka.client.coordinators import CoordinatorKind
from kavka.client.node import Node
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.api import ApiKey
from kavka.protocol.errors import DecodeError, ErrorCode
from kavka.protocol.internal.consumer_protocol import decode_assignment
from kavka.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kavka.protocol.messages.describe_groups import DescribeGroupsRequest
from kavka.protocol.messages.list_groups import ListGroupsRequest
from kavka.protocol.schema import Request

CONSUMER_PROTOCOL: Final = "consumer"
STATES_SINCE: Final = 4
TYPES_SINCE: Final = 5
NOT_LOADED: Final = ALWAYS_RETRIED | {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
"""A coordinator that is only being loaded is the right one, and to be asked again."""
_MEMBER_TYPES: Final = {0: False, 1: True}


def coordinator(group_id: str) -> Coordinator:
    """Whom a group's requests go to."""
    return Coordinator(CoordinatorKind.GROUP, group_id)


def list_groups(
    broker_ids: Sequence[int], states: Sequence[GroupState], types: Sequence[GroupType]
) -> Operation[int, list[GroupListing]]:
    def request(_items: Sequence[int], _timeout_ms: int) -> RequestBuilder:
        return RequestBuilder(
            ApiKey.LIST_GROUPS,
            lambda version: ListGroupsRequest(
                states_filter=[state.value for state in states],
                types_filter=[each.value for each in types] if version >= TYPES_SINCE else [],
            ),
        )

    def read(answered: Answered[int]) -> Iterator[tuple[int, list[GroupListing]]]:
        check(answered.body.error_code)
        listed = [_listing(row) for row in answered.body.groups]
        yield answered.items[0], listed

    # Brokers that know no types have classic groups alone.
    needs_types = bool(types) and GroupType.CLASSIC not in types
    oldest = TYPES_SINCE if needs_types else STATES_SINCE if states else 0
    return Operation(
        "listing groups",
        broker_ids,
        request=request,
        read=read,
        target=Broker,
        versions=(oldest, 5),
        at_once=1,
        retried=NOT_LOADED,
    )


def _listing(row: Any) -> GroupListing:
    return GroupListing(
        row.group_id,
        GroupType(row.group_type) if row.group_type else GroupType.UNKNOWN,
        row.protocol_type,
        GroupState(row.group_state) if row.group_state else GroupState.UNKNOWN,
    )


def describe_consumer_groups(
    group_ids: Sequence[str], with_operations: bool, with_history: bool
) -> Operation[str, ConsumerGroupDescription]:
    """Of KIP-848. Classic groups are GROUP_ID_NOT_FOUND to it."""

    def request(asked: Sequence[str], _timeout_ms: int) -> Request:
        return ConsumerGroupDescribeRequest(
            group_ids=list(asked), include_authorized_operations=with_operations, include_history=with_history
        )

    def read(answered: Answered[str]) -> Iterator[tuple[str, Outcome[ConsumerGroupDescription]]]:
        for row in answered.body.groups:
            yield row.group_id, error_or(row, _consumer_group(row, answered.node))

    return Operation("describing groups", group_ids, request=request, read=read, target=coordinator, retried=NOT_LOADED)


def _consumer_group(row: Any, node: Node) -> ConsumerGroupDescription:
    return ConsumerGroupDescription(
        row.group_id,
        GroupType.CONSUMER,
        GroupState(row.group_state),
        row.assignor_name,
        tuple(map(_member, row.members)),
        node,
        authorized_operations(row.authorized_operations),
        row.group_epoch,
        row.assignment_epoch,
        _history(row),
    )


def _history(row: Any) -> tuple[GroupTransition, ...]:
    return tuple(
        GroupTransition(
            each.timestamp_ms,
            GroupState(each.old_state),
            GroupState(each.new_state),
            each.reason,
            each.epoch,
            each.member_count,
            each.begins_rebalance,
        )
        for each in row.history
    )


def _member(row: Any) -> MemberDescription:
    return MemberDescription(
        row.member_id,
        row.instance_id,
        row.client_id,
        row.client_host,
        partitions_of(row.assignment),
        row.rack_id,
        row.member_epoch,
        partitions_of(row.target_assignment),
        tuple(row.subscribed_topic_names),
        row.subscribed_topic_regex,
        _MEMBER_TYPES.get(row.member_type),
    )


def partitions_of(assignment: Any) -> tuple[TopicPartition, ...]:
    """The partitions of an assignment that names topics and their numbers."""
    return tuple(
        TopicPartition(topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    )


def describe_classic_groups(
    group_ids: Sequence[str], with_operations: bool, with_history: bool
) -> Operation[str, ClassicGroupDescription]:
    def request(asked: Sequence[str], _timeout_ms: int) -> Request:
        return DescribeGroupsRequest(
            groups=list(asked), include_authorized_operations=with_operations, include_history=with_history
        )

    def read(answered: Answered[str]) -> Iterator[tuple[str, Outcome[ClassicGroupDescription]]]:
        for row in answered.body.groups:
            yield row.group_id, _classic_group(row, answered.node)

    return Operation(
        "describing groups",
        group_ids,
        request=request,
        read=read,
        target=coordinator,
        versions=(3 if with_operations else 0, 6),
        retried=NOT_LOADED,
    )


def _classic_group(row: Any, node: Node) -> Outcome[ClassicGroupDescription]:
    if row.error_code:
        return error_of(row.error_code, row.error_message)
    state = GroupState(row.group_state)
    if state is GroupState.DEAD and not row.members:
        # So brokers before 4.0 say that there is no such group.
        return GroupIdNotFoundError(f"group {row.group_id!r} is not there")
    return ClassicGroupDescription(
        row.group_id,
        row.protocol_type,
        row.protocol_data,
        state,
        tuple(
            ClassicMember(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                bytes(member.member_metadata),
                bytes(member.member_assignment),
            )
            for member in row.members
        ),
        node,
        authorized_operations(row.authorized_operations),
        _history(row),
    )


def consumers_of(group: ClassicGroupDescription) -> Outcome[ConsumerGroupDescription]:
    """A classic group as one of consumers; an error where it is not, or what its members say makes no sense."""
    if group.protocol_type not in (CONSUMER_PROTOCOL, ""):
        return GroupIdNotFoundError(f"group {group.group_id!r} is of {group.protocol_type!r}, not of consumers")
    try:
        members = tuple(map(_classic_member, group.members))
    except DecodeError as error:
        return _nonsense(group.group_id, error)
    return ConsumerGroupDescription(
        group.group_id,
        GroupType.CLASSIC,
        group.state,
        group.protocol,
        members,
        group.coordinator,
        group.authorized_operations,
        history=group.history,
    )


def _nonsense(group_id: str, error: DecodeError) -> KafkaError:
    return UnknownServerError(f"group {group_id!r}: a member's assignment makes no sense: {error}")


def _classic_member(member: ClassicMember) -> MemberDescription:
    assignment: tuple[TopicPartition, ...] = ()
    if member.assignment:
        assignment = tuple(
            TopicPartition(topic.topic, partition)
            for topic in decode_assignment(member.assignment)[0].assigned_partitions
            for partition in topic.partitions
        )
    return MemberDescription(member.member_id, member.group_instance_id, member.client_id, member.host, assignment)
