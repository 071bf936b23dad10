"""The partitions' state machine: moves them between phases, elects leaders, writes what was decided, tells the brokers.

A move that the table in `context` does not allow is a mistake of ours; it is logged and not made.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from kavka.cluster.controller.context import (
    PREVIOUS_PARTITION_PHASES,
    ClusterContext,
    PartitionPhase,
    TopicPartition,
)
from kavka.cluster.controller.leader_choice import (
    Elected,
    elect_after_failure,
    elect_first,
    elect_for_shutdown,
    elect_preferred,
)
from kavka.cluster.controller.request_batch import RequestBatch
from kavka.cluster.controller.store import ControllerStore
from kavka.cluster.registry.base import BadVersionError
from kavka.cluster.znodes.topic import PartitionState
from kavka.protocol.errors import BrokerError, ErrorCode

log = logging.getLogger(__name__)

Election = Callable[[TopicPartition, PartitionState], Elected | None]
Failures = dict[TopicPartition, BrokerError]


class PartitionStateMachine:
    """Moves partitions.

    Threads: owned by the controller's thread.
    """

    __slots__ = ("_allows_unclean", "_batch", "_context", "_store")

    def __init__(
        self,
        context: ClusterContext,
        store: ControllerStore,
        batch: RequestBatch,
        allows_unclean: Callable[[str], bool],
    ) -> None:
        """`allows_unclean` says of a topic whether a replica that is behind may lead it; it may read the registry."""
        self._context = context
        self._store = store
        self._batch = batch
        self._allows_unclean = allows_unclean

    def start(self) -> None:
        """Find out where every partition stands, and lead those that nobody leads."""
        context = self._context
        for partition in context.all_partitions():
            state = context.leaders.get(partition)
            if state is None:
                phase = PartitionPhase.NEW
            elif context.is_online(partition, state.leader):
                phase = PartitionPhase.ONLINE
            else:
                phase = PartitionPhase.OFFLINE
            context.set_partition_phase(partition, phase)
        self.retry_leaderless()

    def retry_leaderless(self) -> None:
        """Elect for every partition that is New or Offline, but for those to be deleted."""
        context = self._context
        leaderless = (PartitionPhase.NEW, PartitionPhase.OFFLINE)
        if context.offline_partition_count:
            self.to_online(
                [
                    partition
                    for partition, phase in context.partition_phases.items()
                    if phase in leaderless and partition[0] not in context.deleting
                ],
                self.after_failure,
            )

    def to_new(self, partitions: Iterable[TopicPartition]) -> None:
        self._move(partitions, PartitionPhase.NEW)

    def to_offline(self, partitions: Iterable[TopicPartition]) -> None:
        self._move(partitions, PartitionPhase.OFFLINE)

    def to_non_existent(self, partitions: Iterable[TopicPartition]) -> None:
        self._move(partitions, PartitionPhase.NON_EXISTENT)

    def to_online(self, partitions: Iterable[TopicPartition], election: Election) -> Failures:
        """Give new partitions their first leader, the others one by `election`; the failures are returned."""
        allowed = self._allowed(partitions, PartitionPhase.ONLINE)
        new = [each for each in allowed if self._context.partition_phase(each) is PartitionPhase.NEW]
        failures = self._lead_new(new)
        is_new = set(new)
        failures |= self._elect([each for each in allowed if each not in is_new], election)
        return failures

    # Elections for `to_online`

    def after_failure(self, partition: TopicPartition, state: PartitionState) -> Elected | None:
        live = self._context.live_replicas(partition)
        may_be_unclean = not any(broker in live for broker in state.isr) and self._allows_unclean(partition[0])
        return elect_after_failure(self._context.replicas_of(partition), state.isr, live, may_be_unclean)

    def unclean(self, partition: TopicPartition, state: PartitionState) -> Elected | None:
        """An operator takes the loss."""
        live = self._context.live_replicas(partition)
        return elect_after_failure(self._context.replicas_of(partition), state.isr, live, allow_unclean=True)

    def preferred(self, partition: TopicPartition, state: PartitionState) -> Elected | None:
        live = self._context.live_replicas(partition)
        return elect_preferred(self._context.replicas_of(partition), state.isr, live)

    def for_shutdown(self, partition: TopicPartition, state: PartitionState) -> Elected | None:
        context = self._context
        reachable = [each for each in context.replicas_of(partition) if context.is_reachable(partition, each)]
        return elect_for_shutdown(context.replicas_of(partition), state.isr, reachable, context.stopping)

    # Doing it

    def _lead_new(self, partitions: Sequence[TopicPartition]) -> Failures:
        context = self._context
        failures: Failures = {}
        states: dict[TopicPartition, PartitionState] = {}
        for partition in partitions:
            elected = elect_first(context.replicas_of(partition), context.live_replicas(partition))
            if elected is None:
                failures[partition] = _no_leader(partition, ErrorCode.LEADER_NOT_AVAILABLE)
            else:
                states[partition] = PartitionState(elected.leader, 0, elected.isr, self._store.epoch)
        for partition, result in self._store.create_states(states).items():
            if isinstance(result, PartitionState):
                self._take_over(partition, result, is_new=True)
            else:
                log.error("%s-%d stays without a leader: %s", *partition, result)
                failures[partition] = BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, str(result))
        return failures

    def _elect(self, partitions: Sequence[TopicPartition], election: Election) -> Failures:
        """Read the states as they are now, decide, write; who was overtaken decides again."""
        failures: Failures = {}
        waiting = list(partitions)
        while waiting:
            decided: dict[TopicPartition, PartitionState] = {}
            found = self._store.states(waiting)
            for partition in waiting:
                state = found.get(partition)
                elected = election(partition, state) if state is not None else None
                if state is None or elected is None:
                    failures[partition] = _no_leader(partition, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)
                    continue
                if elected.is_unclean:
                    self._context.unclean_election_count += 1
                    log.warning("%s-%d is led by %d, which is behind: messages may be lost", *partition, elected.leader)
                decided[partition] = state._replace(
                    leader=elected.leader,
                    isr=elected.isr,
                    leader_epoch=state.leader_epoch + 1,
                    controller_epoch=self._store.epoch,
                )
            waiting = []
            for partition, result in self._store.update_states(decided).items():
                if isinstance(result, PartitionState):
                    self._take_over(partition, result)
                elif isinstance(result, BadVersionError):
                    waiting.append(partition)
                else:
                    failures[partition] = BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, str(result))
        return failures

    def _take_over(self, partition: TopicPartition, state: PartitionState, *, is_new: bool = False) -> None:
        context = self._context
        context.leaders[partition] = state
        context.set_partition_phase(partition, PartitionPhase.ONLINE)
        reachable = [each for each in context.replicas_of(partition) if context.is_reachable(partition, each)]
        self._batch.lead_and_follow(reachable, partition, is_new=is_new)

    def _move(self, partitions: Iterable[TopicPartition], phase: PartitionPhase) -> None:
        for partition in self._allowed(partitions, phase):
            self._context.set_partition_phase(partition, phase)

    def _allowed(self, partitions: Iterable[TopicPartition], phase: PartitionPhase) -> list[TopicPartition]:
        allowed = []
        for partition in partitions:
            before = self._context.partition_phase(partition)
            if before in PREVIOUS_PARTITION_PHASES[phase]:
                allowed.append(partition)
            else:
                log.error("%s-%d cannot go from %s to %s", *partition, before.value, phase.value)
        return allowed


def _no_leader(partition: TopicPartition, code: ErrorCode) -> BrokerError:
    return BrokerError(code, f"No replica of {partition[0]}-{partition[1]} can lead it.")
