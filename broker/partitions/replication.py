"""What the rules of replication ask of the broker, and what they decide: who is in sync, and what is committed."""

import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from kavka.broker.partitions.follower_progress import FollowerProgress
from kavka.broker.partitions.role import GrantedIsr, PartitionRole, PendingIsr, Proposer
from kavka.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kavka.storage.partition_log import PartitionLog

log: Final = logging.getLogger(__name__)

Followers = Mapping[int, FollowerProgress]

EXPANDED: Final = "kafka_server_replicamanager_isrexpands"
SHRUNK: Final = "kafka_server_replicamanager_isrshrinks"
NOT_CHANGED: Final = "kafka_server_replicamanager_failedisrupdates"

UNTOUCHED: Final = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
"""The controller says that it changed nothing, and that the partition epoch was the present one."""
AWAITING_ORDERS: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)
"""The controller knows better than this leader: its next LeaderAndIsr tells, until then nothing else is asked."""


class Replication:
    """The broker as its partitions see it, one for all of them.

    `monotonic_ms`: a clock that nobody sets. `lag_time_max_ms`: `replica.lag.time.max.ms`. `is_eligible(broker id,
    broker epoch of its last fetch)`: whether that broker lives, is not about to stop and is still the same incarnation
    as far as this broker knows (KIP-903); called under a partition's lock, so it must not wait. `propose(partition,
    pending)` asks the controller, and has `Partition.isr_answered` called with what it said; called with no lock held.
    `count` counts an event by its metric's name. Threads: any.
    """

    __slots__ = (
        "count",
        "is_eligible",
        "lag_time_max_ms",
        "monotonic_ms",
        "propose",
    )

    def __init__(
        self,
        *,
        monotonic_ms: Callable[[], int],
        lag_time_max_ms: int,
        is_eligible: Callable[[int, int], bool],
        propose: Callable[[Proposer, PendingIsr], None],
        count: Callable[[str], object] = lambda name: None,
    ) -> None:
        self.monotonic_ms: Final = monotonic_ms
        self.lag_time_max_ms = lag_time_max_ms
        self.is_eligible: Final = is_eligible
        self.propose: Final = propose
        self.count: Final = count


def monotonic_ms() -> int:
    """A clock that nobody sets."""
    return time.monotonic_ns() // 1_000_000


def alone() -> Replication:
    """For a broker that is the whole cluster: nobody else may join an ISR."""
    return Replication(
        monotonic_ms=monotonic_ms,
        lag_time_max_ms=30_000,
        is_eligible=lambda broker_id, broker_epoch: False,
        propose=lambda partition, pending: None,
    )


def committed_offset(
    role: PartitionRole, log_end_offset: int, followers: Followers, replication: Replication, now_ms: int
) -> int:
    """Below it, every replica of the ISR has everything, and whoever is about to join it.

    That is, who has asked to be added to it (the maximal ISR), and who is caught up as far as time goes and may be
    asked for: a high watermark that ran ahead of those would never let them reach it.
    """
    lowest = log_end_offset
    for broker_id, follower in followers.items():
        if follower.end_offset < lowest and (
            broker_id in role.maximal_isr
            or (
                follower.is_caught_up(log_end_offset, now_ms, replication.lag_time_max_ms)
                and _is_eligible(broker_id, follower, replication)
            )
        ):
            lowest = follower.end_offset
    return lowest


def is_joining(
    role: PartitionRole, broker_id: int, follower: FollowerProgress, high_watermark: int, replication: Replication
) -> bool:
    """Whether the ISR is to be asked for with that follower: it has all that is committed.

    For that it must also have reached where this leader began: what lies between its high watermark and there may be
    committed too.
    """
    return (
        role.pending is None
        and broker_id not in role.isr
        and follower.end_offset >= high_watermark
        and follower.end_offset >= role.epoch_start_offset
        and _is_eligible(broker_id, follower, replication)
    )


def lagging(
    role: PartitionRole, own_id: int, log_end_offset: int, followers: Followers, replication: Replication, now_ms: int
) -> tuple[int, ...]:
    """Who of the ISR has not been caught up for `replica.lag.time.max.ms`. Nobody, while the controller is asked."""
    if role.pending is not None:
        return ()
    limit_ms = replication.lag_time_max_ms
    return tuple(
        broker_id
        for broker_id in role.isr
        if broker_id != own_id
        and not (
            (follower := followers.get(broker_id)) is not None
            and follower.is_caught_up(log_end_offset, now_ms, limit_ms)
        )
    )


def after_answer(role: PartitionRole, answer: GrantedIsr | ErrorCode) -> PartitionRole | None:
    """The role when the controller has answered what is pending; None: ask once more, nobody knows what it did.

    A role that still has it pending waits for the controller's next order.
    """
    if isinstance(answer, GrantedIsr):
        if answer.leader_epoch != role.leader_epoch or answer.partition_epoch < role.partition_epoch:
            return role
        return role.committed(answer.isr, answer.partition_epoch, answer.recovery_state)
    if answer in UNTOUCHED:
        return role.given_up()
    return role if answer in AWAITING_ORDERS else None


def _is_eligible(broker_id: int, follower: FollowerProgress, replication: Replication) -> bool:
    return follower.broker_epoch is not None and replication.is_eligible(broker_id, follower.broker_epoch)


def outcome_counted(pending: PendingIsr, *, is_granted: bool) -> str:
    """By which metric an answer of the controller's is counted."""
    if not is_granted:
        return NOT_CHANGED
    return EXPANDED if pending.is_expansion else SHRUNK


def is_under_min_isr(own: "PartitionLog | None", role: PartitionRole) -> bool:
    """Whether too few replicas are in sync for acks=all."""
    return own is not None and len(role.isr) < role.effective_min_isr(own.config.min_insync_replicas)


def tell_of_loss(partition: object, leader_epoch: int, start_offset: int, high_watermark: int) -> None:
    """Log what an election from outside the ISR has cost."""
    log.error(
        "%r: elected from outside the ISR, leads from offset %d in epoch %d, its high watermark is %d:"
        " what others had committed beyond is lost",
        partition,
        start_offset,
        leader_epoch,
        high_watermark,
    )
