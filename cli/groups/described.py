"""Groups of every type, described alike."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kavka.cli.groups.choosing import listed_groups, outcomes
from kavka.client.admin.types.groups import (
    ClassicGroupDescription,
    ConsumerGroupDescription,
    GroupState,
    GroupTransition,
    GroupType,
    ShareGroupDescription,
    StreamsGroupDescription,
)
from kavka.client.api_errors import GroupIdNotFoundError
from kavka.client.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kavka.client import Admin
    from kavka.client.kafka_error import KafkaError
    from kavka.client.node import Node


class Member(NamedTuple):
    """A member; None is what its group's protocol does not know. In Streams it has its active tasks' partitions."""

    member_id: str
    instance_id: str | None
    host: str
    client_id: str
    assignment: tuple[TopicPartition, ...]
    epoch: int | None = None
    target: tuple[TopicPartition, ...] | None = None
    is_upgraded: bool | None = None


class Group(NamedTuple):
    """A group; its history is empty of brokers that tell none."""

    group_id: str
    type: GroupType
    state: GroupState
    assignor: str
    coordinator: "Node"
    members: tuple[Member, ...]
    epoch: int | None = None
    target_epoch: int | None = None
    history: tuple[GroupTransition, ...] = ()

    @property
    def last_rebalance(self) -> GroupTransition | None:
        """What the last one began with, if it is remembered."""
        return next((each for each in reversed(self.history) if each.begins_rebalance), None)

    @property
    def is_settled(self) -> bool:
        """Whether nothing is on its way: no rebalance, no member without what it shall have."""
        return self.state in (GroupState.STABLE, GroupState.EMPTY)


def described_groups(admin: "Admin", group_ids: Iterable[str]) -> "tuple[dict[str, Group], dict[str, KafkaError]]":
    """Groups by id in the order asked, and why others could not be described.

    They are taken for groups of consumers; brokers are asked for the types of those that are not.
    """
    asked = list(group_ids)
    found, failures = _described(admin, asked, GroupType.CONSUMER)
    others = [each for each, error in failures.items() if isinstance(error, GroupIdNotFoundError)]
    if others:
        listed, _ = listed_groups(admin)
        types = {group.group_id: _kind_of(group.type, group.protocol_type) for group in listed}
        for kind in set(types.values()) - {GroupType.CONSUMER}:
            of_kind = [each for each in others if types.get(each) is kind]
            more, failed = _described(admin, of_kind, kind)
            found.update(more)
            for group_id in more:
                del failures[group_id]
            failures.update(failed)
    return {each: found[each] for each in asked if each in found}, failures


def _kind_of(listed: GroupType, protocol_type: str) -> GroupType:
    """What kind of description it has: classic groups of consumers have that of consumer groups."""
    if listed in (GroupType.CLASSIC, GroupType.UNKNOWN):
        return GroupType.CONSUMER if protocol_type in ("", "consumer") else GroupType.CLASSIC
    return listed


def _described(
    admin: "Admin", group_ids: list[str], kind: GroupType
) -> "tuple[dict[str, Group], dict[str, KafkaError]]":
    call: Callable[[list[str]], Mapping[str, Any]]
    read: Callable[[Any], Group]
    if kind is GroupType.SHARE:
        call, read = admin.describe_share_groups, _share
    elif kind is GroupType.STREAMS:
        call, read = admin.describe_streams_groups, _streams
    elif kind is GroupType.CLASSIC:
        call, read = lambda ids: admin.describe_classic_groups(ids, include_history=True), _classic
    else:
        call, read = lambda ids: admin.describe_consumer_groups(ids, include_history=True), _consumers
    results: dict[str, Any]
    results, failures = outcomes(group_ids, call)
    return {group_id: read(each) for group_id, each in results.items()}, failures


def _consumers(group: ConsumerGroupDescription) -> Group:
    members = tuple(
        Member(
            each.member_id,
            each.group_instance_id,
            each.host,
            each.client_id,
            each.assignment,
            each.member_epoch,
            each.target_assignment,
            each.is_upgraded,
        )
        for each in group.members
    )
    return Group(
        group.group_id,
        group.type,
        group.state,
        group.assignor,
        group.coordinator,
        members,
        group.group_epoch,
        group.target_assignment_epoch,
        group.history,
    )


def _classic(group: ClassicGroupDescription) -> Group:
    """Of Kafka Connect's workers and others: what they are assigned is theirs alone to read."""
    members = tuple(
        Member(each.member_id, each.group_instance_id, each.host, each.client_id, ()) for each in group.members
    )
    return Group(
        group.group_id,
        GroupType.CLASSIC,
        group.state,
        group.protocol,
        group.coordinator,
        members,
        history=group.history,
    )


def _share(group: ShareGroupDescription) -> Group:
    members = tuple(
        Member(each.member_id, None, each.host, each.client_id, each.assignment, each.member_epoch)
        for each in group.members
    )
    return Group(
        group.group_id,
        GroupType.SHARE,
        group.state,
        "",
        group.coordinator,
        members,
        group.group_epoch,
        group.target_assignment_epoch,
    )


def _streams(group: StreamsGroupDescription) -> Group:
    sources = {each.subtopology_id: each.source_topics for each in group.subtopologies or ()}

    def partitions(tasks: Any) -> tuple[TopicPartition, ...]:
        return tuple(
            TopicPartition(topic, number)
            for subtopology, numbers in tasks.items()
            for topic in sources.get(subtopology, ())
            for number in numbers
        )

    members = tuple(
        Member(
            each.member_id,
            each.group_instance_id,
            each.host,
            each.client_id,
            partitions(each.assignment.active),
            each.member_epoch,
            partitions(each.target_assignment.active),
        )
        for each in group.members
    )
    return Group(
        group.group_id,
        GroupType.STREAMS,
        group.state,
        "",
        group.coordinator,
        members,
        group.group_epoch,
        group.target_assignment_epoch,
    )
