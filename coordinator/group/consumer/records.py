"""The records of consumer groups (types 3 to 8, and 16), in the version that Kafka 3.9 and 4.3 both read.

Kafka 3.9 skips assignment epochs: a tagged field.
"""

from collections.abc import Iterable, Mapping

from kavka.coordinator.group.consumer.assignment import Assignment, assignment_of, listed
from kavka.coordinator.group.consumer.member import JOINING, ClassicMetadata, Member, MemberState
from kavka.coordinator.group.consumer.topics import TopicInfo
from kavka.coordinator.runtime.result import CoordinatorRecord
from kavka.protocol.internal.group_records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    CurrentTopicPartitions,
    PartitionMetadata,
    TargetTopicPartition,
    TopicMetadata,
)


def group_epoch(group_id: str, epoch: int) -> CoordinatorRecord:
    """Type 3: the group, and its epoch."""
    return CoordinatorRecord(ConsumerGroupMetadataKey(group_id=group_id), ConsumerGroupMetadataValue(epoch=epoch))


def subscribed_topics(group_id: str, topics: Mapping[str, TopicInfo]) -> CoordinatorRecord:
    """Type 4: the subscribed topics as they were when the group's epoch was made."""
    value = ConsumerGroupPartitionMetadataValue(
        topics=[
            TopicMetadata(
                topic_id=topic.topic_id,
                topic_name=topic.name,
                num_partitions=topic.partitions,
                partition_metadata=[
                    PartitionMetadata(partition=number, racks=sorted(racks)) for number, racks in topic.racks
                ],
            )
            for _, topic in sorted(topics.items())
        ]
    )
    return CoordinatorRecord(ConsumerGroupPartitionMetadataKey(group_id=group_id), value)


def topics_in(value: ConsumerGroupPartitionMetadataValue) -> dict[str, TopicInfo]:
    """What a type 4 record holds."""
    return {
        topic.topic_name: TopicInfo(
            topic.topic_name,
            topic.topic_id,
            topic.num_partitions,
            tuple((each.partition, frozenset(each.racks)) for each in topic.partition_metadata),
        )
        for topic in value.topics
    }


def member_metadata(group_id: str, member: Member) -> CoordinatorRecord:
    """Type 5: what a member wants."""
    classic = member.classic
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=None
        if classic is None
        else ClassicMemberMetadata(
            session_timeout_ms=classic.session_timeout_ms,
            supported_protocols=[ClassicProtocol(name=name, metadata=data) for name, data in classic.protocols],
        ),
    )
    return CoordinatorRecord(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def with_metadata(member: Member, value: ConsumerGroupMemberMetadataValue) -> Member:
    """The member with what a type 5 record says."""
    classic = value.classic_member_metadata
    return member._replace(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topics=frozenset(value.subscribed_topic_names),
        regex=value.subscribed_topic_regex or "",
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        server_assignor=value.server_assignor,
        classic=None
        if classic is None
        else ClassicMetadata(
            classic.session_timeout_ms, tuple((each.name, bytes(each.metadata)) for each in classic.supported_protocols)
        ),
    )


def target_epoch(group_id: str, epoch: int) -> CoordinatorRecord:
    """Type 6: the group epoch that the target assignment was computed for."""
    key = ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)
    return CoordinatorRecord(key, ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch))


def target_assignment(group_id: str, member_id: str, target: Assignment) -> CoordinatorRecord:
    """Type 7: what a member shall have."""
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    partitions = [TargetTopicPartition(topic_id=topic_id, partitions=numbers) for topic_id, numbers in listed(target)]
    return CoordinatorRecord(key, ConsumerGroupTargetAssignmentMemberValue(topic_partitions=partitions))


def current_assignment(group_id: str, member: Member) -> CoordinatorRecord:
    """Type 8: what a member has, and must give up."""
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=_current(member, member.assigned),
        partitions_pending_revocation=_current(member, member.revoking),
    )
    return CoordinatorRecord(key, value)


def with_assignment(member: Member, value: ConsumerGroupCurrentMemberAssignmentValue) -> Member:
    """The member with what a type 8 record says. Before Kafka 4.3 none said since when partitions are assigned."""
    epochs: dict[bytes, dict[int, int]] = {}
    for each in (*value.assigned_partitions, *value.partitions_pending_revocation):
        since = each.assignment_epochs
        if since is None or len(since) != len(each.partitions):
            since = [max(value.member_epoch, JOINING)] * len(each.partitions)
        if since:
            epochs.setdefault(each.topic_id, {}).update(zip(each.partitions, since, strict=True))
    return member._replace(
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=_STATES.get(value.state, MemberState.UNKNOWN),
        assigned=assignment_of(value.assigned_partitions),
        revoking=assignment_of(value.partitions_pending_revocation),
        assignment_epochs=epochs,
    )


def resolved_regex(
    group_id: str, regex: str, topics: Iterable[str], version: int, timestamp_ms: int
) -> CoordinatorRecord:
    """Type 16: the topics that a regular expression stands for."""
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
    value = ConsumerGroupRegularExpressionValue(topics=sorted(topics), version=version, timestamp=timestamp_ms)
    return CoordinatorRecord(key, value)


def regex_tombstone(group_id: str, regex: str) -> CoordinatorRecord:
    """Nobody is subscribed to that regular expression any more."""
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
    return CoordinatorRecord(key, None)


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """The member is gone. Kafka's order: what it has, what it shall have, what it wants."""
    return [
        CoordinatorRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        CoordinatorRecord(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        CoordinatorRecord(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def group_tombstones(group_id: str, member_ids: Iterable[str], regexes: Iterable[str]) -> list[CoordinatorRecord]:
    """The group is gone, with these members and regular expressions; in the order that Kafka's replay asks for."""
    members = list(member_ids)
    return [
        *(
            CoordinatorRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=each), None)
            for each in members
        ),
        *(
            CoordinatorRecord(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=each), None)
            for each in members
        ),
        CoordinatorRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *(
            CoordinatorRecord(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=each), None)
            for each in members
        ),
        *(regex_tombstone(group_id, regex) for regex in regexes),
        CoordinatorRecord(ConsumerGroupPartitionMetadataKey(group_id=group_id), None),
        CoordinatorRecord(ConsumerGroupMetadataKey(group_id=group_id), None),
    ]


def _current(member: Member, assignment: Assignment) -> list[CurrentTopicPartitions]:
    epochs = member.epochs_of(assignment)
    return [
        CurrentTopicPartitions(
            topic_id=topic_id, partitions=numbers, assignment_epochs=[epochs[topic_id][number] for number in numbers]
        )
        for topic_id, numbers in listed(assignment)
    ]


_STATES = {int(state): state for state in MemberState}
