"""What members tell one another, as bytes: subscriptions to the leader, assignments from it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from kavka.client.consumer.group.assignors.assignor import Assignor, MemberAssignment, MemberSubscription
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.errors import DecodeError
from kavka.protocol.internal.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kavka.protocol.internal.consumer_protocol import TopicPartition as TopicRow


def subscription_blobs(
    assignors: Sequence[Assignor],
    topics: Collection[str],
    owned: Iterable[TopicPartition],
    generation: int,
    rack: str | None,
) -> list[tuple[str, bytes]]:
    """This member's subscription for each of its assignors, by their names."""
    names = sorted(topics)
    rows = _rows(owned)
    return [
        (
            assignor.name,
            encode_subscription(
                ConsumerProtocolSubscription(
                    topics=names,
                    user_data=assignor.subscription_user_data(names),
                    owned_partitions=rows,
                    generation_id=generation,
                    rack_id=rack or None,
                )
            ),
        )
        for assignor in assignors
    ]


def subscription_from(blob: bytes, instance_id: str | None) -> MemberSubscription:
    """A member's subscription, as the leader gets it. Raises DecodeError."""
    subscription, _ = decode_subscription(blob)
    return MemberSubscription(
        tuple(subscription.topics),
        bytes(subscription.user_data) if subscription.user_data is not None else None,
        _partitions(subscription.owned_partitions),
        subscription.generation_id,
        subscription.rack_id,
        instance_id,
    )


def assignment_blob(assignment: MemberAssignment) -> bytes:
    """One member's share."""
    return encode_assignment(
        ConsumerProtocolAssignment(assigned_partitions=_rows(assignment.partitions), user_data=assignment.user_data)
    )


def assignment_from(blob: bytes) -> MemberAssignment | None:
    """This member's share; None for what is none. No bytes at all are no partitions: the leader left it out."""
    if not blob:
        return MemberAssignment(())
    try:
        assignment, _ = decode_assignment(blob)
    except DecodeError:
        return None
    user_data = assignment.user_data
    return MemberAssignment(
        _partitions(assignment.assigned_partitions), bytes(user_data) if user_data is not None else None
    )


def _rows(partitions: Iterable[TopicPartition]) -> list[TopicRow]:
    numbers: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        numbers.setdefault(topic, []).append(number)
    return [TopicRow(topic=topic, partitions=each) for topic, each in numbers.items()]


def _partitions(rows: Iterable[TopicRow]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(row.topic, number) for row in rows for number in row.partitions)
