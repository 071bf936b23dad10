"""The partitions' state machine: moves them between phases, elects leaders, writes what was decided, tells the brokers.

A move that the table in `context` does not allow is a mistake of ours; it is logged and not made.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

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
    elect_for_reassignment,
    elect_for_shutdown,
    elect_preferred,
)
from kavka.cluster.controller.request_batch import RequestBatch
from kavka.cluster.controller.store import ControllerStore
from kavka.cluster.registry.base import BadVersionError
from kavka.cluster.znodes.topic import NO_BROKER_EPOCH, RECOVERING, PartitionState
from kavka.protocol.errors import BrokerError, ErrorCode

log = logging.getLogger(__name__)

States = Mapping[TopicPartition, PartitionState]
Decision = Callable[[TopicPartition, PartitionState], Elected | None]
Election = Callable[[States], Decision]
"""Given the states to decide on, the decision on each: what has to be read for it is read for all at once."""
Failures = dict[TopicPartition, BrokerError]
Change = Callable[[TopicPartition, PartitionState], PartitionState | None]
"""What a state becomes, but for the epochs; None leaves it as it is."""


class PartitionStateMachine:
    """Moves partitions.

    Threads: owned by the controller's thread.
    """

    __slots__ = ("_batch", "_context", "_marks_recovery", "_store", "_unclean_topics")

    def __init__(
        self,
        context: ClusterContext,
        store: ControllerStore,
        batch: RequestBatch,
        unclean_topics: Callable[[Collection[str]], Collection[str]],
        *,
        marks_recovery: bool = True,
    ) -> None:
        """`unclean_topics` gives those topics that a replica which is behind may lead; it may read the registry.

        `marks_recovery` says whether all brokers know what a recovering leader is (KIP-704, since 3.2).
        """
        self._context = context
        self._store = store
        self._batch = batch
        self._unclean_topics = unclean_topics
        self._marks_recovery = marks_recovery

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
        self._lead_anew()
        self._lead_leaderless(self._after_unseen_failure)

    def returned_followers(self) -> dict[int, list[TopicPartition]]:
        """Brokers that are in sync and may have been away since the state was written, for who wrote it did not know of
        their present runs, while others in sync were not; with the partitions.

        With a power cut they may lack what the others have. A controller that had seen them go would have let them
        leave the ISR, as it does whoever is gone.
        """
        context = self._context
        returned: dict[int, list[TopicPartition]] = {}
        for partition, state in context.leaders.items():
            if len(state.isr) < 2 or partition[0] in context.deleting:
                continue
            latest = state.latest_broker_epoch
            runs = [(each, context.brokers[each].epoch) for each in state.isr if each in context.brokers]
            if any(epoch <= latest for _, epoch in runs):
                for broker, epoch in runs:
                    if epoch > latest:
                        returned.setdefault(broker, []).append(partition)
        return returned

    def _lead_anew(self) -> None:
        """Leaders that were away begin another epoch: with a power cut the old one's last records may be gone.

        Else they would write others in their place under the same epoch, and no follower could tell them apart. Kafka's
        controller does not look: it notices a broker that was away only if it was the controller meanwhile.
        When the state was written last says nothing: its leader's former run may have asked for that, of a controller
        that had not heard of the present one.
        """
        context = self._context
        returned = [
            each
            for each in context.all_partitions()
            if context.may_be_of_former_run(each)
            and each[0] not in context.deleting
            and context.partition_phase(each) is PartitionPhase.ONLINE
        ]
        if returned:
            log.info("%d partitions get another leader epoch: their leaders may have been away", len(returned))
            self.to_online(returned, self._after_absence)

    def _after_absence(self, states: States) -> Decision:
        """Who is in sync and was there all the time has what the leader may have lost; else the leader stays.

        So it does where a controller of Kafka's wrote the state: most likely it was not away at all.
        """
        stayed = self._stayed(states)

        def decide(partition: TopicPartition, state: PartitionState) -> Elected | None:
            if state.leader not in self._context.live_replicas(partition):
                return None
            leads_on = Elected(state.leader, state.isr)
            if state.leader_broker_epoch == NO_BROKER_EPOCH and state.leader in stayed[partition]:
                return leads_on
            others = [each for each in stayed[partition] if each != state.leader]
            replicas = self._context.replicas_of(partition)
            return elect_after_failure(replicas, state.isr, others, allow_unclean=False) or leads_on

        return decide

    def _after_unseen_failure(self, states: States) -> Decision:
        """As `after_failure`, but of those in sync who was away leads only where nobody was there all the time."""
        stayed = self._stayed(states)
        among_all = self.after_failure(states)

        def decide(partition: TopicPartition, state: PartitionState) -> Elected | None:
            replicas = self._context.replicas_of(partition)
            elected = elect_after_failure(replicas, state.isr, stayed[partition], allow_unclean=False)
            return elected or among_all(partition, state)

        return decide

    def _stayed(self, states: States) -> dict[TopicPartition, list[int]]:
        """Live replicas in whose present runs whoever wrote the state knew them, each by its partition."""
        context = self._context
        return {
            partition: [
                each
                for each in context.live_replicas(partition)
                if context.brokers[each].epoch <= state.latest_broker_epoch
            ]
            for partition, state in states.items()
        }

    def retry_leaderless(self) -> None:
        """Elect for every partition that is New or Offline, but for those to be deleted."""
        self._lead_leaderless(self.after_failure)

    def _lead_leaderless(self, election: Election) -> None:
        leaderless = (PartitionPhase.NEW, PartitionPhase.OFFLINE)
        if self._context.offline_partition_count:
            self.to_online(
                [
                    partition
                    for partition, phase in self._context.partition_phases.items()
                    if phase in leaderless and partition[0] not in self._context.deleting
                ],
                election,
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

    def rewrite(self, partitions: Iterable[TopicPartition], change: Change) -> dict[TopicPartition, PartitionState]:
        """Give partitions another state with the next leader epoch, on which `change` decides; tell their replicas.

        Gives the states written. Those of partitions that have none, or that `change` leaves, are not among them.
        """
        context = self._context
        changed: dict[TopicPartition, PartitionState] = {}
        waiting = list(partitions)
        while waiting:
            decided = {}
            for partition, state in self._store.states(waiting).items():
                context.leaders[partition] = state
                wanted = change(partition, state)
                if wanted is not None:
                    decided[partition] = wanted
            written, failures, waiting = self._write(decided)
            changed |= written
            for partition, failure in failures.items():
                log.error("the state of %s-%d stays as it is: %s", *partition, failure)
        for partition, state in changed.items():
            context.leaders[partition] = state
            self._batch.lead_and_follow(context.reachable_replicas(partition), partition)
        return changed

    # Elections for `to_online`

    def after_failure(self, states: States) -> Decision:
        live = {partition: self._context.live_replicas(partition) for partition in states}
        lost = {
            partition[0]
            for partition, state in states.items()
            if live[partition] and not any(broker in live[partition] for broker in state.isr)
        }
        unclean = self._unclean_topics(lost) if lost else ()

        def decide(partition: TopicPartition, state: PartitionState) -> Elected | None:
            replicas = self._context.replicas_of(partition)
            return elect_after_failure(replicas, state.isr, live[partition], partition[0] in unclean)

        return decide

    def unclean(self, states: States) -> Decision:
        """An operator takes the loss."""
        return self._unclean

    def preferred(self, states: States) -> Decision:
        return self._preferred

    def for_shutdown(self, states: States) -> Decision:
        return self._for_shutdown

    def for_reassignment(self, states: States) -> Decision:
        """Among the replicas as they are assigned now, those before them left out."""
        return self._for_reassignment

    def _unclean(self, partition: TopicPartition, state: PartitionState) -> Elected | None:
        live = self._context.live_replicas(partition)
        return elect_after_failure(self._context.replicas_of(partition), state.isr, live, allow_unclean=True)

    def _preferred(self, partition: TopicPartition, state: PartitionState) -> Elected | None:
        live = self._context.live_replicas(partition)
        return elect_preferred(self._context.replicas_of(partition), state.isr, live)

    def _for_shutdown(self, partition: TopicPartition, state: PartitionState) -> Elected | None:
        replicas = self._context.replicas_of(partition)
        reachable = self._context.reachable_replicas(partition)
        return elect_for_shutdown(replicas, state.isr, reachable, self._context.stopping)

    def _for_reassignment(self, partition: TopicPartition, state: PartitionState) -> Elected | None:
        live = self._context.live_replicas(partition)
        return elect_for_reassignment(self._context.replicas_of(partition), state.isr, live, state.leader)

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
                state = PartitionState(elected.leader, 0, elected.isr, self._store.epoch)
                states[partition] = context.by_present_run(partition, state)
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
        waiting = partitions
        while waiting:
            found = self._store.states(waiting)
            decide = election(found)
            decided: dict[TopicPartition, PartitionState] = {}
            for partition in waiting:
                state = found.get(partition)
                elected = decide(partition, state) if state is not None else None
                if state is None or elected is None:
                    failures[partition] = _no_leader(partition, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)
                else:
                    decided[partition] = self._elected(partition, state, elected)
            written, refused, waiting = self._write(decided)
            failures |= refused
            for partition, state in written.items():
                self._take_over(partition, state)
        return failures

    def _elected(self, partition: TopicPartition, state: PartitionState, elected: Elected) -> PartitionState:
        recovery = state.recovery
        if elected.is_unclean:
            self._context.unclean_election_count += 1
            log.warning("%s-%d is led by %d, which is behind: messages may be lost", *partition, elected.leader)
            recovery = RECOVERING if self._marks_recovery else recovery
        return state._replace(leader=elected.leader, isr=elected.isr, recovery=recovery)

    def _write(
        self, states: Mapping[TopicPartition, PartitionState]
    ) -> tuple[dict[TopicPartition, PartitionState], Failures, list[TopicPartition]]:
        """Store the states, each with the next leader epoch. Gives those written, those refused, those overtaken."""
        written: dict[TopicPartition, PartitionState] = {}
        failures: Failures = {}
        overtaken: list[TopicPartition] = []
        next_states = {
            partition: self._context.by_present_run(partition, state)._replace(
                leader_epoch=state.leader_epoch + 1, controller_epoch=self._store.epoch
            )
            for partition, state in states.items()
        }
        for partition, result in self._store.update_states(next_states).items():
            if isinstance(result, PartitionState):
                written[partition] = result
            elif isinstance(result, BadVersionError):
                overtaken.append(partition)
            else:
                failures[partition] = BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, str(result))
        return written, failures, overtaken

    def _take_over(self, partition: TopicPartition, state: PartitionState, *, is_new: bool = False) -> None:
        context = self._context
        context.leaders[partition] = state
        context.set_partition_phase(partition, PartitionPhase.ONLINE)
        self._batch.lead_and_follow(context.reachable_replicas(partition), partition, is_new=is_new)

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
