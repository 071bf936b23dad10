"""ElectLeaders (KIP-183, KIP-460): an operator asks for the preferred leaders, or for any leader at all."""

from __future__ import annotations

from collections.abc import Sequence

from kavka.cluster.controller.context import TopicPartition
from kavka.cluster.controller.requests import ElectionType
from kavka.cluster.controller.term import Term
from kavka.protocol.errors import BrokerError, ErrorCode


def elect_leaders(
    term: Term, election: ElectionType, partitions: Sequence[TopicPartition] | None
) -> dict[TopicPartition, BrokerError | None]:
    """The outcome by partition. With None for all: those that need no election are left out."""
    context = term.context
    asked = list(context.all_partitions()) if partitions is None else list(dict.fromkeys(partitions))
    results: dict[TopicPartition, BrokerError | None] = {}
    wanted: list[TopicPartition] = []
    for partition in asked:
        if partition not in context.partition_phases or partition[0] in context.deleting:
            results[partition] = BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
        elif _needs(term, election, partition):
            wanted.append(partition)
        elif partitions is not None:
            results[partition] = BrokerError(
                ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
            )
    machine = term.partitions
    failures = machine.to_online(wanted, machine.preferred if election is ElectionType.PREFERRED else machine.unclean)
    term.settle()
    for partition in wanted:
        failure = failures.get(partition)
        if failure is not None and election is ElectionType.PREFERRED:
            failure = BrokerError(
                ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader is dead or not in sync."
            )
        results[partition] = failure
    return results


def _needs(term: Term, election: ElectionType, partition: TopicPartition) -> bool:
    state = term.context.leaders.get(partition)
    if election is ElectionType.PREFERRED:
        return state is None or state.leader != term.context.replicas_of(partition)[0]
    return state is None or not term.context.is_online(partition, state.leader)
