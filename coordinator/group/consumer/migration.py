"""From the classic protocol to the consumer protocol, and back, while members are there (KIP-848).

A classic group of consumers becomes a consumer group when the first member of the consumer protocol joins: the classic
members stay, with what they have, and are served out of the consumer group. It becomes classic again when the last
member of the consumer protocol has gone and classic ones remain.
"""

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from kavka.coordinator.group.classic.group import ClassicGroup
from kavka.coordinator.group.classic.member import ClassicMember
from kavka.coordinator.group.consumer import records
from kavka.coordinator.group.consumer.assignment import NOTHING_ASSIGNED, Assignment, listed, together, without
from kavka.coordinator.group.consumer.member import ClassicMetadata, Member
from kavka.protocol.errors import BrokerError, DecodeError, ErrorCode
from kavka.protocol.internal.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_assignment,
    decode_subscription,
    encode_assignment,
)

if TYPE_CHECKING:
    from kavka.config.broker_config import BrokerConfig
    from kavka.coordinator.group.consumer.state import LoggedState
    from kavka.coordinator.group.consumer.topics import KnownTopics
    from kavka.coordinator.ports import Clock
    from kavka.coordinator.runtime.result import CoordinatorRecord

CONSUMER_PROTOCOL_TYPE: Final = "consumer"

log = logging.getLogger(__name__)


def check_upgrade(group: ClassicGroup, config: "BrokerConfig") -> None:
    """Raise BrokerError (GROUP_ID_NOT_FOUND) unless that classic group may become a consumer group."""
    if config.group_consumer_migration_policy.lower() not in ("upgrade", "bidirectional"):
        raise _cannot_upgrade(group, "online upgrade is disabled")
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        raise _cannot_upgrade(group, "the group does not use the consumer embedded protocol")
    if len(group.members) > config.group_consumer_max_size:
        raise _cannot_upgrade(group, "the group size exceeds the consumer group maximum size")


def upgraded(group: ClassicGroup, known: "KnownTopics") -> "list[CoordinatorRecord]":
    """The records of the consumer group that a classic group becomes; its tombstone apart.

    Each member keeps the assignment of the last generation, in an epoch that is the generation. Raises BrokerError
    (GROUP_ID_NOT_FOUND) if what the members said can't be read, or an assignor of their own would lose data.
    """
    try:
        members = _without_shared_partitions(_upgraded(group, member, known) for member in group.members.values())
    except DecodeError as error:
        log.warning("group %s cannot become a consumer group: %s", group.group_id, error)
        raise _cannot_upgrade(group, "the embedded consumer protocol is malformed") from None
    group_id = group.group_id
    return [
        *(records.member_metadata(group_id, member) for member in members),
        records.group_epoch(group_id, group.generation),
        *(records.target_assignment(group_id, member.member_id, member.assigned) for member in members),
        records.target_epoch(group_id, group.generation),
        *(records.current_assignment(group_id, member) for member in members),
    ]


def may_downgrade(members: Iterable[Member], config: "BrokerConfig") -> bool:
    """Whether a consumer group with these members only becomes a classic group."""
    count = 0
    for member in members:
        if member.classic is None:
            return False
        count += 1
    return 0 < count <= config.group_max_size and config.group_consumer_migration_policy.lower() in (
        "downgrade",
        "bidirectional",
    )


def downgraded(state: "LoggedState", known: "KnownTopics", clock: "Clock") -> ClassicGroup:
    """The classic group that a consumer group becomes, of whose members all speak the classic protocol.

    The generation is the group's epoch. Their assignments are what they hold, until the rebalance that follows: where
    the group becomes a consumer group once more before that, nobody else may be given what they still hold.
    """
    members = []
    for member in state.members.values():
        assert member.classic is not None
        assignment = encode_for(member.classic, together(member.assigned, member.revoking), known)
        members.append(
            ClassicMember(
                member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                session_timeout_ms=member.classic.session_timeout_ms,
                protocol_type=CONSUMER_PROTOCOL_TYPE,
                protocols=member.classic.protocols,
                assignment=assignment,
            )
        )
    return ClassicGroup.of_members(
        state.group_id, members, clock, generation=state.epoch, protocol_type=CONSUMER_PROTOCOL_TYPE
    )


def encode_for(classic: ClassicMetadata, assignment: Assignment, known: "KnownTopics") -> bytes:
    """An assignment as SyncGroup carries it, in the version that the member's own subscription has."""
    partitions = [
        TopicPartition(topic=name, partitions=numbers)
        for topic_id, numbers in listed(assignment)
        if (name := known.name_of(topic_id)) is not None
    ]
    value = ConsumerProtocolAssignment(assigned_partitions=sorted(partitions, key=lambda each: each.topic))
    try:
        version = decode_subscription(classic.protocols[0][1])[1] if classic.protocols else 0
    except DecodeError:
        version = 0
    return encode_assignment(value, version)


def subscription_of(protocols: Iterable[tuple[str, bytes]]) -> ConsumerProtocolSubscription:
    """What a JoinGroup says of topics and owned partitions; all its protocols say the same. Raises DecodeError."""
    for _, metadata in protocols:
        return decode_subscription(metadata)[0]
    raise DecodeError("no protocol")


def partitions_by_id(named: Iterable[TopicPartition], known: "KnownTopics") -> Assignment:
    """Partitions of topics that clients name; of those that exist."""
    wanted = {each.topic: frozenset(each.partitions) for each in named if each.partitions}
    return {topic.topic_id: wanted[name] for name, topic in known.existing(wanted).items()}


def _without_shared_partitions(members: Iterable[Member]) -> list[Member]:
    """A partition that the classic leader gave to two members by mistake is the first one's."""
    found, taken = [], NOTHING_ASSIGNED
    for member in members:
        assigned = without(member.assigned, taken)
        taken = together(assigned, taken)
        found.append(member if assigned == member.assigned else member._replace(assigned=assigned))
    return found


def _upgraded(group: ClassicGroup, member: ClassicMember, known: "KnownTopics") -> Member:
    # A group that rebalances may have members who do not offer the last generation's protocol any more.
    metadata = member.metadata(group.protocol_name) or (member.protocols[0][1] if member.protocols else b"")
    subscription, _ = decode_subscription(metadata)
    assigned = NOTHING_ASSIGNED
    if member.assignment:
        assignment, _ = decode_assignment(member.assignment)
        if assignment.user_data:
            raise _cannot_upgrade(
                group,
                "an unsupported custom assignor is in use. "
                "Please refer to the documentation or switch to a default assignor before re-attempting the upgrade",
            )
        assigned = partitions_by_id(assignment.assigned_partitions, known)
    return Member(
        member.member_id,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id or None,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=frozenset(subscription.topics),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicMetadata(member.session_timeout_ms, member.protocols),
        epoch=group.generation,
        previous_epoch=group.generation,
        assigned=assigned,
    )


def _cannot_upgrade(group: ClassicGroup, reason: str) -> BrokerError:
    log.info("group %s cannot become a consumer group because %s", group.group_id, reason)
    return BrokerError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group.group_id} to consumer group because {reason}.",
    )
