"""What ConsumerGroupDescribe shows of a group."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kavka.coordinator.group.consumer.assignment import Assignment, listed, together
from kavka.coordinator.group.consumer.change import preferred_assignor
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.consumer_group_describe import (
    Assignment as DescribedAssignment,
)
from kavka.protocol.messages.consumer_group_describe import (
    DescribedGroup,
    TopicPartitions,
)
from kavka.protocol.messages.consumer_group_describe import (
    Member as DescribedMember,
)

if TYPE_CHECKING:
    from kavka.coordinator.group.consumer.assignors.assignor import Assignor
    from kavka.coordinator.group.consumer.group import ConsumerGroup
    from kavka.coordinator.group.consumer.member import Member
    from kavka.coordinator.group.consumer.topics import KnownTopics

CLASSIC_MEMBER: Final = 0
CONSUMER_MEMBER: Final = 1


def described(group: "ConsumerGroup", known: "KnownTopics", assignors: "Mapping[str, Assignor]") -> DescribedGroup:
    """The group as it is now. A member has also what it must give up, until it says that it has. Topics that are gone
    are left out.
    """
    logged = group.logged
    return DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=logged.epoch,
        assignment_epoch=logged.target_epoch,
        assignor_name=preferred_assignor(logged.members.values(), assignors).name,
        members=[_described(member, logged.target(member.member_id), known) for member in logged.members.values()],
    )


def _described(member: "Member", target: Assignment, known: "KnownTopics") -> DescribedMember:
    return DescribedMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex,
        assignment=_named(together(member.assigned, member.revoking), known),
        target_assignment=_named(target, known),
        member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    )


def _named(assignment: Assignment, known: "KnownTopics") -> DescribedAssignment:
    return DescribedAssignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=name, partitions=numbers)
            for topic_id, numbers in listed(assignment)
            if (name := known.name_of(topic_id)) is not None
        ]
    )
