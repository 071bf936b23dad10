"""AlterPartitionReassignments and ListPartitionReassignments (KIP-455), and the node that old tools write instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kavka.cluster.controller.context import TopicPartition
from kavka.cluster.controller.term import Term
from kavka.cluster.registry.base import Watch
from kavka.cluster.znodes.admin import PartitionReassignments
from kavka.cluster.znodes.topic import PartitionAssignment
from kavka.protocol.errors import BrokerError, ErrorCode


def alter_reassignments(
    term: Term,
    targets: Mapping[TopicPartition, Sequence[int] | None],
    *,
    allow_factor_change: bool = True,
) -> dict[TopicPartition, BrokerError | None]:
    """Begin to move each partition to its target, or with None end a move; the outcome by partition.

    What is asked for here takes the place of what `/admin/reassign_partitions` says of the same partitions.
    """
    outcomes: dict[TopicPartition, BrokerError | None] = {}
    wanted: dict[TopicPartition, PartitionAssignment] = {}
    for partition, target in targets.items():
        try:
            wanted[partition] = _wanted(term, partition, target, allow_factor_change)
            outcomes[partition] = None
        except BrokerError as error:
            outcomes[partition] = error
    term.reassignments.supersede_wishes(wanted.keys())
    outcomes |= term.reassignments.begin(wanted)
    term.settle()
    return outcomes


def list_reassignments(
    term: Term, partitions: Sequence[TopicPartition] | None
) -> dict[TopicPartition, PartitionAssignment]:
    """Those of `partitions`, or with None of all, that are on the move."""
    context = term.context
    asked = sorted(context.reassigning if partitions is None else context.reassigning.intersection(partitions))
    return {each: assignment for each in asked if (assignment := context.assignment_of(each)) is not None}


def take_reassignments(term: Term, watch: Watch) -> None:
    """What `/admin/reassign_partitions` asks for; when a term begins, also what another controller had begun."""
    term.reassignments.take_wishes(term.store.node(PartitionReassignments.PATH, watch))
    term.settle()


def _wanted(
    term: Term, partition: TopicPartition, target: Sequence[int] | None, allow_factor_change: bool
) -> PartitionAssignment:
    context = term.context
    now = context.assignment_of(partition)
    if target is not None:
        _check_target(term, now, target)
    elif now is None or not now.is_moving:
        raise BrokerError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    if now is None or partition[0] in context.deleting:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
    if target is None:
        return now.towards(now.origin)
    if not allow_factor_change and len(target) != len(now.target):
        raise BrokerError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor would change from {len(now.target)} to {len(target)}.",
        )
    return now.towards(tuple(target))


def _check_target(term: Term, now: PartitionAssignment | None, target: Sequence[int]) -> None:
    """Only brokers that live may get a replica; those that have one may be dead."""
    live = term.context.brokers.keys() - term.context.stopping
    origin = now.origin if now is not None else ()
    dead = [broker for broker in target if broker not in origin and broker not in live]
    if not target:
        problem = "no replicas"
    elif len(set(target)) != len(target):
        problem = f"a broker twice: {list(target)}"
    elif dead:
        problem = f"brokers that are not alive: {dead}"
    else:
        return
    raise BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The target names {problem}.")
