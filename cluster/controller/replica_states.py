"""The replicas' state machine: what brokers are told to serve, to stop and to delete, and who leaves the ISR.

A move that the table in `context` does not allow is a mistake of ours; it is logged and not made.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from kavka.cluster.controller.context import (
    PREVIOUS_REPLICA_PHASES,
    ClusterContext,
    Replica,
    ReplicaPhase,
    TopicPartition,
)
from kavka.cluster.controller.request_batch import RequestBatch
from kavka.cluster.controller.store import ControllerStore
from kavka.cluster.registry.base import BadVersionError
from kavka.cluster.znodes.topic import NO_LEADER, PartitionState

log = logging.getLogger(__name__)


class ReplicaStateMachine:
    """Moves replicas.

    Threads: owned by the controller's thread.
    """

    __slots__ = ("_batch", "_context", "_store")

    def __init__(self, context: ClusterContext, store: ControllerStore, batch: RequestBatch) -> None:
        self._context = context
        self._store = store
        self._batch = batch

    def start(self) -> None:
        """Tell live brokers what they hold, and count those on dead ones out. The metadata are published already."""
        context = self._context
        online: list[Replica] = []
        offline: list[Replica] = []
        for partition in context.all_partitions():
            for broker in context.replicas_of(partition):
                replica = Replica(*partition, broker)
                is_reachable = context.is_reachable(partition, broker)
                (online if is_reachable else offline).append(replica)
                # A replica out of reach cannot have been deleted, should its topic be on the way out.
                context.replica_phases[replica] = (
                    ReplicaPhase.ONLINE if is_reachable else ReplicaPhase.DELETION_INELIGIBLE
                )
        self.to_online(online, is_published=True)
        self.to_offline(offline)

    def to_new(self, replicas: Iterable[Replica]) -> None:
        """For partitions that exist already, the broker is told to follow."""
        for replica in self._allowed(replicas, ReplicaPhase.NEW):
            self._context.replica_phases[replica] = ReplicaPhase.NEW
            if replica.topic_partition in self._context.leaders:
                self._batch.lead_and_follow([replica.broker_id], replica.topic_partition, is_new=True)

    def to_online(self, replicas: Iterable[Replica], *, is_published: bool = False) -> None:
        """A new replica was told already; any other one is told who leads, and everyone unless that `is_published`."""
        for replica in self._allowed(replicas, ReplicaPhase.ONLINE):
            is_new = self._context.replica_phase(replica) is ReplicaPhase.NEW
            if not is_new and replica.topic_partition in self._context.leaders:
                self._batch.lead_and_follow([replica.broker_id], replica.topic_partition, is_published=is_published)
            self._context.replica_phases[replica] = ReplicaPhase.ONLINE

    def to_offline(self, replicas: Iterable[Replica]) -> None:
        """Stop serving, leave the ISR; the replicas that remain are told."""
        context = self._context
        leaving: dict[int, list[TopicPartition]] = {}
        for replica in self._allowed(replicas, ReplicaPhase.OFFLINE):
            partition = replica.topic_partition
            self._batch.stop(replica, delete=False)
            context.replica_phases[replica] = ReplicaPhase.OFFLINE
            if partition in context.leaders:
                # A topic on its way out needs no ISR any more.
                if replica.topic not in context.deleting:
                    leaving.setdefault(replica.broker_id, []).append(partition)
                self._batch.publish([partition])
        for broker, partitions in leaving.items():
            self._leave_isr(broker, partitions)

    def to_deletion_started(self, replicas: Iterable[Replica]) -> None:
        for replica in self._allowed(replicas, ReplicaPhase.DELETION_STARTED):
            self._context.replica_phases[replica] = ReplicaPhase.DELETION_STARTED
            self._batch.stop(replica, delete=True)

    def to_deletion_successful(self, replicas: Iterable[Replica]) -> None:
        for replica in self._allowed(replicas, ReplicaPhase.DELETION_SUCCESSFUL):
            self._context.replica_phases[replica] = ReplicaPhase.DELETION_SUCCESSFUL

    def to_deletion_ineligible(self, replicas: Iterable[Replica]) -> None:
        for replica in self._allowed(replicas, ReplicaPhase.DELETION_INELIGIBLE):
            self._context.replica_phases[replica] = ReplicaPhase.DELETION_INELIGIBLE

    def to_non_existent(self, replicas: Iterable[Replica]) -> None:
        for replica in self._allowed(replicas, ReplicaPhase.NON_EXISTENT):
            self._context.replica_phases.pop(replica, None)

    def remove(self, replicas: Iterable[Replica]) -> None:
        """These are not assigned any more: stopped and deleted, whatever became of them before.

        Nobody waits for it, as in Kafka: a broker that is gone, or whose disk refuses, keeps the folder.
        """
        for replica in replicas:
            self._batch.stop(replica, delete=True)
            self._context.replica_phases.pop(replica, None)
            self._context.offline_replicas.discard(replica)

    def leave(self, returned: Mapping[int, Sequence[TopicPartition]]) -> None:
        """Brokers live that were away, and have to catch up before they count as in sync again; not those that lead."""
        leaders = self._context.leaders
        for broker, partitions in returned.items():
            behind = [each for each in partitions if leaders[each].leader not in (broker, NO_LEADER)]
            if behind:
                log.info("%d partitions are followed by broker %d, which was away: not in sync", len(behind), broker)
                self._leave_isr(broker, behind)

    def _leave_isr(self, broker: int, partitions: Sequence[TopicPartition]) -> None:
        """Write the ISR without `broker`; the last one stays in it, as the only one that has all messages."""
        context = self._context
        waiting = list(partitions)
        while waiting:
            decided: dict[TopicPartition, PartitionState] = {}
            for partition, state in self._store.states(waiting).items():
                context.leaders[partition] = state
                if broker not in state.isr or (state.leader != broker and state.isr == (broker,)):
                    continue
                if state.leader == NO_LEADER and state.isr == (broker,):
                    continue
                left = state._replace(
                    leader=NO_LEADER if state.leader == broker else state.leader,
                    isr=state.isr if len(state.isr) == 1 else tuple(each for each in state.isr if each != broker),
                    leader_epoch=state.leader_epoch + 1,
                    controller_epoch=self._store.epoch,
                )
                decided[partition] = context.by_present_run(partition, left)
            waiting = []
            for partition, result in self._store.update_states(decided).items():
                if isinstance(result, PartitionState):
                    context.leaders[partition] = result
                    reachable = [each for each in context.reachable_replicas(partition) if each != broker]
                    self._batch.lead_and_follow(reachable, partition)
                elif isinstance(result, BadVersionError):
                    waiting.append(partition)
                else:
                    log.error("%d stays in the ISR of %s-%d: %s", broker, *partition, result)

    def _allowed(self, replicas: Iterable[Replica], phase: ReplicaPhase) -> list[Replica]:
        allowed = []
        for replica in replicas:
            before = self._context.replica_phase(replica)
            if before in PREVIOUS_REPLICA_PHASES[phase]:
                allowed.append(replica)
            else:
                log.error("the replica of %s-%d on %d cannot go from %s to %s", *replica, before.value, phase.value)
        return allowed
