"""Groups as an administrator's client describes them, for commands that show them."""

from typing import Final

from kavka.client.admin import (
    ConsumerGroupDescription,
    GroupState,
    GroupTransition,
    GroupType,
    ListOffsetsResultInfo,
    MemberDescription,
    OffsetAndMetadata,
)
from kavka.client.node import Node
from kavka.client.topic_partition import TopicPartition

COORDINATOR: Final = Node(3, "broker-3", 9092)
NOW_MS: Final = 1_764_000_000_000
P0, P1, P2 = (TopicPartition("orders", number) for number in range(3))
HISTORY: Final = (
    GroupTransition(NOW_MS - 600_000, GroupState.EMPTY, GroupState.PREPARING_REBALANCE, "member a is new", 0, 1, True),
    GroupTransition(
        NOW_MS - 90_000, GroupState.STABLE, GroupState.PREPARING_REBALANCE, "member b\x1b is new", 1, 2, True
    ),
    GroupTransition(NOW_MS - 89_000, GroupState.PREPARING_REBALANCE, GroupState.STABLE, "2 joined", 2, 2, False),
)


def member(member_id: str, *partitions: TopicPartition, instance_id: str | None = None) -> MemberDescription:
    return MemberDescription(member_id, instance_id, f"client-{member_id}", "/10.0.0.1", partitions)


def group_of(
    group_id: str,
    *members: MemberDescription,
    state: GroupState | None = None,
    history: tuple[GroupTransition, ...] = (),
) -> ConsumerGroupDescription:
    """A classic group of consumers: Stable with members, Empty without, unless said otherwise."""
    return ConsumerGroupDescription(
        group_id,
        GroupType.CLASSIC,
        state or (GroupState.STABLE if members else GroupState.EMPTY),
        "range" if members else "",
        members,
        COORDINATOR,
        None,
        history=history,
    )


def stored(**offsets: int) -> dict[TopicPartition, OffsetAndMetadata | None]:
    """What a group has committed of orders: `stored(p0=5)`."""
    return {TopicPartition("orders", int(name[1:])): OffsetAndMetadata(offset) for name, offset in offsets.items()}


def info(offset: int) -> ListOffsetsResultInfo:
    return ListOffsetsResultInfo(offset, -1, 0)
