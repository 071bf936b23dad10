"""Leaders by wish: an operator asks for the preferred ones, or for any at all (ElectLeaders, KIP-183, KIP-460; a node
that old tools write), and those that went elsewhere come back by themselves.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from kavka.cluster.controller.context import TopicPartition
from kavka.cluster.controller.requests import ElectionType
from kavka.cluster.controller.term import Term
from kavka.cluster.registry.base import Watch
from kavka.cluster.znodes.admin import PreferredElections
from kavka.cluster.znodes.json_data import ZnodeError
from kavka.protocol.errors import BrokerError, ErrorCode

log = logging.getLogger(__name__)


def elect_leaders(
    term: Term, election: ElectionType, partitions: Sequence[TopicPartition] | None
) -> dict[TopicPartition, BrokerError | None]:
    """The outcome by partition. With None for all: those that need no election are left out."""
    context = term.context
    if partitions is None:
        asked = [each for each in context.all_partitions() if each[0] not in context.deleting]
    else:
        asked = list(dict.fromkeys(partitions))
    results: dict[TopicPartition, BrokerError | None] = {}
    wanted: list[TopicPartition] = []
    for partition in asked:
        if partition not in context.partition_phases:
            results[partition] = BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
        elif partition[0] in context.deleting:
            results[partition] = BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is being deleted.")
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


def take_election_wishes(term: Term, watch: Watch) -> None:
    """What `/admin/preferred_replica_election` asks for is tried once, and the node removed."""
    found = term.store.node(PreferredElections.PATH, watch)
    if found is None:
        return
    try:
        wanted = PreferredElections.decode(found[0])
    except ZnodeError as error:
        log.error("ignored: %s", error)
        wanted = []
    for partition, failure in elect_leaders(term, ElectionType.PREFERRED, wanted).items():
        if failure is not None and failure.code is not ErrorCode.ELECTION_NOT_NEEDED:
            log.warning("%s-%d is not led by its preferred replica: %s", *partition, failure)
    # Who has written it anew since is heard by the watch.
    term.store.replace_node(PreferredElections.PATH, None, found[1])


def balance_leaders(term: Term, percentage: int) -> None:
    """Give leadership back to brokers that lead fewer of the partitions that prefer them than `percentage` allows.

    Nothing happens while partitions are reassigned, as in Kafka.
    """
    context = term.context
    if context.reassigning:
        return
    preferred: dict[int, int] = {}
    elsewhere: dict[int, list[TopicPartition]] = {}
    for partition in context.all_partitions():
        if partition[0] in context.deleting:
            continue
        broker = context.replicas_of(partition)[0]
        preferred[broker] = preferred.get(broker, 0) + 1
        state = context.leaders.get(partition)
        if state is not None and state.leader != broker:
            elsewhere.setdefault(broker, []).append(partition)
    wanted: list[TopicPartition] = []
    for broker, partitions in elsewhere.items():
        if len(partitions) * 100 > percentage * preferred[broker]:
            wanted += [
                each for each in partitions if broker in context.leaders[each].isr and context.is_online(each, broker)
            ]
    if wanted:
        failures = term.partitions.to_online(wanted, term.partitions.preferred)
        log.info("%d of %d leaders went back to their preferred replicas", len(wanted) - len(failures), len(wanted))
        term.settle()


def _needs(term: Term, election: ElectionType, partition: TopicPartition) -> bool:
    state = term.context.leaders.get(partition)
    if election is ElectionType.PREFERRED:
        return state is None or state.leader != term.context.replicas_of(partition)[0]
    return state is None or not term.context.is_online(partition, state.leader)
