"""Reassigning partitions: their replicas move to other brokers while they are led and followed (KIP-455).

    wanted      the assignment names all replicas, those before and those to come: in the tree first, so that a later
                controller goes on with it. All are told under a new leader epoch, those to come begin to follow.
    complete    all that are to come are in the ISR: one of them leads, the others leave the ISR and are deleted. The
                assignment is written last, for it alone says which replicas there were.

A wish replaces the one before: what only that one would have added leaves. A cancellation is the wish for the replicas
before.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial

from kavka.cluster.controller.context import ClusterContext, PartitionPhase, Replica, ReplicaPhase, TopicPartition
from kavka.cluster.controller.partition_states import Failures, PartitionStateMachine
from kavka.cluster.controller.replica_states import ReplicaStateMachine
from kavka.cluster.controller.request_batch import RequestBatch
from kavka.cluster.controller.store import ControllerStore
from kavka.cluster.registry.base import InvalidNodeError, NoNodeError, RegistryError
from kavka.cluster.znodes.admin import PartitionReassignments
from kavka.cluster.znodes.json_data import ZnodeError
from kavka.cluster.znodes.topic import NO_LEADER, PartitionAssignment, PartitionState, TopicAssignment
from kavka.protocol.errors import BrokerError, ErrorCode

log = logging.getLogger(__name__)

Assignments = Mapping[TopicPartition, PartitionAssignment]
IsDone = Callable[[TopicPartition, tuple[int, ...]], bool]


class Reassignments:
    """Partitions on the move.

    Threads: owned by the controller's thread.
    """

    __slots__ = (
        "_batch",
        "_changed",
        "_context",
        "_has_resumed",
        "_has_wishes",
        "_partitions",
        "_replicas",
        "_store",
    )

    def __init__(
        self,
        context: ClusterContext,
        store: ControllerStore,
        batch: RequestBatch,
        partitions: PartitionStateMachine,
        replicas: ReplicaStateMachine,
    ) -> None:
        self._context = context
        self._store = store
        self._batch = batch
        self._partitions = partitions
        self._replicas = replicas
        self._changed: set[TopicPartition] = set()
        self._has_wishes = False
        self._has_resumed = False

    def begin(self, wanted: Assignments) -> Failures:
        """Have these partitions, which exist, go where `wanted` says; gives those that cannot, with the reason."""
        context = self._context
        context.leaders.update(self._store.states(list(wanted)))
        failures = {
            partition: self._loss(partition) for partition, each in wanted.items() if self._loses(partition, each)
        }
        before = {partition: context.replicas_of(partition) for partition in wanted}
        failures |= self._write({partition: each for partition, each in wanted.items() if partition not in failures})
        begun = [partition for partition in wanted if partition not in failures]
        self._advance(begun)
        self._replicas.remove(
            Replica(*partition, broker)
            for partition in begun
            for broker in before[partition]
            if broker not in wanted[partition].replicas
        )
        self._drop_wishes(lambda partition, _: partition in wanted and not wanted[partition].is_moving)
        return failures

    def resume(self, brokers: Collection[int] | None = None, *, but: Collection[TopicPartition] = ()) -> None:
        """Go on with all that are on the move, or with those that shall be on `brokers`: these have just come."""
        partitions = []
        for partition in self._context.reassigning:
            assignment = self._context.assignment_of(partition)
            if assignment is None or partition in but or partition[0] in self._context.deleting:
                continue
            if brokers is None or any(broker in brokers for broker in assignment.target):
                partitions.append(partition)
        self._context.leaders.update(self._store.states(partitions))
        self._advance(sorted(partitions))

    def isr_changed(self, partitions: Iterable[TopicPartition]) -> None:
        """Note that these may be complete now, should they be on the move."""
        self._changed |= self._context.reassigning.intersection(partitions)

    @property
    def may_finish(self) -> bool:
        """Whether `finish` is worth calling."""
        return bool(self._changed)

    def finish(self) -> None:
        """Complete those that were noted, as far as they are."""
        changed, self._changed = self._changed, set()
        self._complete([each for each in sorted(changed & self._context.reassigning) if self._is_complete(each)])

    def abandon(self, topics: Iterable[str]) -> None:
        """These topics go: whatever replica they have is theirs, and nothing is on the move any more."""
        gone = set(topics)
        moving = [each for each in self._context.reassigning if each[0] in gone]
        self._write({each: PartitionAssignment(self._context.replicas_of(each)) for each in moving})
        self._drop_wishes(lambda partition, _: partition[0] in gone)

    # Wishes of old tools, in the tree

    def take_wishes(self, found: tuple[bytes, int] | None) -> None:
        """Begin what `/admin/reassign_partitions` asks for and is not under way; the first time, go on with the rest.

        An entry stays in the node until its partition has arrived; what cannot be done is taken out and logged.
        Nobody checks these brokers: they may be dead, and the move waits for them.
        """
        self._has_wishes = found is not None
        wanted: dict[TopicPartition, PartitionAssignment] = {}
        settled: set[TopicPartition] = set()
        for partition, target in _targets(found).items():
            now = self._context.assignment_of(partition)
            if now is None or partition[0] in self._context.deleting:
                log.warning("%s-%d cannot be reassigned: it does not exist", *partition)
                settled.add(partition)
            elif now.target != target:
                wanted[partition] = now.towards(target)
            elif not now.is_moving:
                settled.add(partition)
        for partition, failure in self.begin(wanted).items():
            log.warning("%s-%d cannot be reassigned: %s", *partition, failure)
            settled.add(partition)
        self._drop_wishes(lambda partition, _: partition in settled)
        if not self._has_resumed:
            self._has_resumed = True
            self._expel_strangers()
            self.resume(but=wanted)

    def _expel_strangers(self) -> None:
        """Whoever is in sync and not assigned goes: a controller ended between writing who holds a partition, and who
        is in sync with it. Their leaders could be lost with them alone in sync, and nobody would tell them to stop.
        """
        context = self._context
        strangers = [
            Replica(*partition, broker)
            for partition, state in context.leaders.items()
            if partition[0] not in context.deleting and not self._holds_all(partition, state)
            for broker in state.isr
            if broker not in context.replicas_of(partition)
        ]
        if strangers:
            log.warning("%d replicas are in sync and not assigned, %s first", len(strangers), strangers[0])
            self._announce(list(dict.fromkeys(each.topic_partition for each in strangers)))
            # Where nobody else is in sync they alone have all messages.
            self._replicas.remove(each for each in strangers if self._is_out(each))

    def _holds_all(self, partition: TopicPartition, state: PartitionState) -> bool:
        replicas = self._context.replicas_of(partition)
        return all(broker in replicas for broker in state.isr)

    def _is_out(self, replica: Replica) -> bool:
        return replica.broker_id not in self._context.leaders[replica.topic_partition].isr

    def supersede_wishes(self, partitions: Collection[TopicPartition]) -> None:
        """Another wish takes the place of what the node says of these."""
        self._drop_wishes(lambda partition, _: partition in partitions)

    def _drop_wishes(self, is_done: IsDone) -> None:
        while self._has_wishes:
            found = self._store.node(PartitionReassignments.PATH)
            if found is None:
                self._has_wishes = False
                return
            try:
                targets = PartitionReassignments.decode(found[0])
            except ZnodeError:
                return
            left = {partition: replicas for partition, replicas in targets.items() if not is_done(partition, replicas)}
            if len(left) == len(targets) and left:
                return
            data = PartitionReassignments.encode(left) if left else None
            if self._store.replace_node(PartitionReassignments.PATH, data, found[1]):
                self._has_wishes = bool(left)
                return

    # Doing it

    def _advance(self, partitions: Sequence[TopicPartition]) -> None:
        complete = [partition for partition in partitions if self._is_complete(partition)]
        is_complete = set(complete)
        self._announce([partition for partition in partitions if partition not in is_complete])
        self._complete(complete)

    def _announce(self, partitions: Sequence[TopicPartition]) -> None:
        """Tell all replicas, under a new leader epoch, who they are; those to come begin to follow."""
        context = self._context
        for partition in partitions:
            assignment = context.assignment_of(partition)
            adding = [Replica(*partition, broker) for broker in assignment.adding] if assignment else []
            self._replicas.to_new(each for each in adding if context.replica_phase(each) is ReplicaPhase.NON_EXISTENT)
            if partition in context.leaders:
                # Not those that came into sync before: their logs may lie where a disk is away now.
                behind = [each.broker_id for each in adding if each.broker_id not in context.leaders[partition].isr]
                reachable = [each for each in behind if context.is_reachable(partition, each)]
                self._batch.lead_and_follow(reachable, partition, is_new=True)
        written = self._partitions.rewrite(partitions, self._among_assigned)
        leaderless = [
            partition
            for partition, state in written.items()
            if state.leader == NO_LEADER and context.partition_phase(partition) is PartitionPhase.ONLINE
        ]
        self._partitions.to_offline(leaderless)
        if leaderless or any(partition not in context.leaders for partition in partitions):
            self._partitions.retry_leaderless()

    def _among_assigned(self, partition: TopicPartition, state: PartitionState) -> PartitionState:
        """The state without those that are not assigned any more."""
        replicas = self._context.replicas_of(partition)
        isr = tuple(broker for broker in state.isr if broker in replicas)
        if not isr:
            log.error("%s-%d is in sync on %s alone, which are not assigned", *partition, state.isr)
            return state
        leader = state.leader
        if leader not in replicas:
            online = (broker for broker in replicas if broker in isr and self._context.is_online(partition, broker))
            leader = next(online, NO_LEADER)
        return state._replace(leader=leader, isr=isr)

    def _is_complete(self, partition: TopicPartition) -> bool:
        """Whether all that shall hold it are in sync, and one of them lives to lead it."""
        assignment = self._context.assignment_of(partition)
        state = self._context.leaders.get(partition)
        if assignment is None or state is None or not assignment.is_moving or partition[0] in self._context.deleting:
            return False
        return all(broker in state.isr for broker in assignment.target) and any(
            self._context.is_online(partition, broker) for broker in assignment.target
        )

    def _complete(self, partitions: Sequence[TopicPartition]) -> None:
        """The replicas to come take over; those that go are told to, and last the tree forgets them."""
        context = self._context
        before = {each: assignment for each in partitions if (assignment := context.assignment_of(each))}
        arrived = {each: PartitionAssignment(assignment.target) for each, assignment in before.items()}
        self._remember(arrived)
        self._replicas.to_online(
            replica
            for partition, assignment in before.items()
            for replica in (Replica(*partition, broker) for broker in assignment.adding)
            if context.replica_phase(replica) is ReplicaPhase.NEW
        )
        failures = self._partitions.to_online(list(arrived), self._partitions.for_reassignment)
        for partition, failure in failures.items():
            log.warning("the reassignment of %s-%d goes on: %s", *partition, failure)
        self._remember({partition: before[partition] for partition in failures})
        done = {partition: each for partition, each in arrived.items() if partition not in failures}
        if not done:
            return
        self._replicas.remove(
            Replica(*partition, broker) for partition in done for broker in before[partition].removing
        )
        self._batch.publish(done)
        self._batch.flush(self._store.epoch)
        for partition, failure in self._write(done).items():
            # In memory it is done: only another term can put the two together again.
            raise RegistryError(f"the reassignment of {partition[0]}-{partition[1]} is not stored: {failure.message}")
        log.info("%d partitions are reassigned: %s", len(done), ", ".join(f"{t}-{p}" for t, p in list(done)[:10]))
        self._drop_wishes(lambda partition, replicas: partition in done and done[partition].replicas == replicas)

    def _write(self, assignments: Assignments) -> Failures:
        """Into the tree, then into memory. A topic that is gone from the tree fails nothing: its end is on the way."""
        by_topic: dict[str, dict[int, PartitionAssignment]] = {}
        for (topic, partition), each in assignments.items():
            by_topic.setdefault(topic, {})[partition] = each
        changes = {topic: partial(TopicAssignment.moved, changes=moves) for topic, moves in by_topic.items()}
        failures: Failures = {}
        for topic, outcome in self._store.amend_assignments(changes).items():
            if isinstance(outcome, RegistryError) and not isinstance(outcome, NoNodeError):
                # With more replicas a topic may be too large for its node: that is its asker's fault.
                is_too_large = isinstance(outcome, InvalidNodeError)
                code = ErrorCode.INVALID_REQUEST if is_too_large else ErrorCode.UNKNOWN_SERVER_ERROR
                failure = BrokerError(code, str(outcome))
                failures |= {(topic, partition): failure for partition in by_topic[topic]}
        self._remember({partition: each for partition, each in assignments.items() if partition not in failures})
        return failures

    def _remember(self, assignments: Assignments) -> None:
        by_topic: dict[str, dict[int, PartitionAssignment]] = {}
        for (topic, partition), each in assignments.items():
            by_topic.setdefault(topic, {})[partition] = each
        for topic, moves in by_topic.items():
            self._context.put_topic(topic, self._context.assignments[topic].moved(moves))

    def _loses(self, partition: TopicPartition, wanted: PartitionAssignment) -> bool:
        state = self._context.leaders.get(partition)
        return state is not None and not any(broker in wanted.replicas for broker in state.isr)

    def _loss(self, partition: TopicPartition) -> BrokerError:
        return BrokerError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{partition[0]}-{partition[1]} is in sync on {list(self._context.leaders[partition].isr)} alone: "
            "without them messages would be lost.",
        )


def _targets(found: tuple[bytes, int] | None) -> dict[TopicPartition, tuple[int, ...]]:
    try:
        return PartitionReassignments.decode(found[0]) if found is not None else {}
    except ZnodeError as error:
        log.error("ignored: %s", error)
        return {}
