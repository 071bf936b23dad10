"""What the active controller knows of the cluster, in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Final, NamedTuple

from kavka.cluster.topic_names import collision_key
from kavka.cluster.znodes.broker import BrokerInfo
from kavka.cluster.znodes.topic import NO_BROKER_EPOCH, PartitionAssignment, PartitionState, TopicAssignment

TopicPartition = tuple[str, int]


class Replica(NamedTuple):
    """One copy of a partition."""

    topic: str
    partition: int
    broker_id: int

    @property
    def topic_partition(self) -> TopicPartition:
        return (self.topic, self.partition)


class PartitionPhase(Enum):
    """Where a partition stands. The table PREVIOUS_PARTITION_PHASES says what may follow what."""

    NON_EXISTENT = "NonExistent"
    """Never created, or deleted."""

    NEW = "New"
    """It has replicas, but no leader yet and no state node."""

    ONLINE = "Online"
    """It has a leader."""

    OFFLINE = "Offline"
    """Its leader died, and nobody could follow so far."""


class ReplicaPhase(Enum):
    """Where a replica stands. The table PREVIOUS_REPLICA_PHASES says what may follow what."""

    NON_EXISTENT = "NonExistentReplica"

    NEW = "NewReplica"
    """Just made; it can only become a follower yet."""

    ONLINE = "OnlineReplica"
    """On a live broker: leader or follower."""

    OFFLINE = "OfflineReplica"
    """Its broker, or the directory there, is gone."""

    DELETION_STARTED = "ReplicaDeletionStarted"
    """StopReplica with delete is on its way."""

    DELETION_SUCCESSFUL = "ReplicaDeletionSuccessful"

    DELETION_INELIGIBLE = "ReplicaDeletionIneligible"
    """It cannot be deleted now: its broker is gone or failed to."""


PREVIOUS_PARTITION_PHASES: Final[Mapping[PartitionPhase, frozenset[PartitionPhase]]] = {
    PartitionPhase.NON_EXISTENT: frozenset({PartitionPhase.OFFLINE}),
    PartitionPhase.NEW: frozenset({PartitionPhase.NON_EXISTENT}),
    PartitionPhase.ONLINE: frozenset({PartitionPhase.NEW, PartitionPhase.ONLINE, PartitionPhase.OFFLINE}),
    PartitionPhase.OFFLINE: frozenset({PartitionPhase.NEW, PartitionPhase.ONLINE, PartitionPhase.OFFLINE}),
}
PREVIOUS_REPLICA_PHASES: Final[Mapping[ReplicaPhase, frozenset[ReplicaPhase]]] = {
    ReplicaPhase.NON_EXISTENT: frozenset({ReplicaPhase.DELETION_SUCCESSFUL}),
    ReplicaPhase.NEW: frozenset({ReplicaPhase.NON_EXISTENT}),
    ReplicaPhase.ONLINE: frozenset(
        {ReplicaPhase.NEW, ReplicaPhase.ONLINE, ReplicaPhase.OFFLINE, ReplicaPhase.DELETION_INELIGIBLE}
    ),
    ReplicaPhase.OFFLINE: frozenset(
        {ReplicaPhase.NEW, ReplicaPhase.ONLINE, ReplicaPhase.OFFLINE, ReplicaPhase.DELETION_INELIGIBLE}
    ),
    ReplicaPhase.DELETION_STARTED: frozenset({ReplicaPhase.OFFLINE}),
    ReplicaPhase.DELETION_SUCCESSFUL: frozenset({ReplicaPhase.DELETION_STARTED, ReplicaPhase.DELETION_INELIGIBLE}),
    ReplicaPhase.DELETION_INELIGIBLE: frozenset({ReplicaPhase.OFFLINE, ReplicaPhase.DELETION_STARTED}),
}


class ClusterContext:
    """Brokers, topics, leaders and phases.

    Threads: owned by the controller's thread. Others may read the counts (`topic_count`, ...), which are single loads.
    """

    __slots__ = (
        "_collision_keys",
        "_topics_by_id",
        "assignments",
        "brokers",
        "deleting",
        "failed_deletions",
        "is_beginning",
        "leaders",
        "offline_partition_count",
        "offline_replicas",
        "partition_phases",
        "reassigning",
        "replica_phases",
        "stopping",
        "unclean_election_count",
    )

    def __init__(self) -> None:
        self.is_beginning = True
        """Whether it is still to be found out who was away before this term."""
        self.brokers: dict[int, BrokerInfo] = {}
        self.stopping: set[int] = set()
        self.assignments: dict[str, TopicAssignment] = {}
        self.leaders: dict[TopicPartition, PartitionState] = {}
        self.partition_phases: dict[TopicPartition, PartitionPhase] = {}
        self.replica_phases: dict[Replica, ReplicaPhase] = {}
        self.offline_replicas: set[Replica] = set()
        self.deleting: dict[str, None] = {}
        self.failed_deletions: set[str] = set()
        self.reassigning: set[TopicPartition] = set()
        self.offline_partition_count = 0
        self.unclean_election_count = 0
        self._topics_by_id: dict[bytes, str] = {}
        self._collision_keys: dict[str, dict[str, None]] = {}

    @property
    def topic_count(self) -> int:
        return len(self.assignments)

    @property
    def partition_count(self) -> int:
        return len(self.partition_phases)

    @property
    def deleting_replica_count(self) -> int:
        """How many replicas of topics on their way out are not known to be deleted; read by any thread."""
        if not self.deleting:
            return 0
        gone = ReplicaPhase.DELETION_SUCCESSFUL
        phases = list(self.replica_phases.items())
        return sum(replica.topic in self.deleting and phase is not gone for replica, phase in phases)

    # Topics

    def put_topic(self, topic: str, assignment: TopicAssignment) -> None:
        """Add a topic, or replace its assignment."""
        before = self.assignments.get(topic)
        if before is not None:
            self.reassigning.difference_update(_moving(topic, before))
        self.reassigning |= _moving(topic, assignment)
        self.assignments[topic] = assignment
        if assignment.topic_id is not None:
            self._topics_by_id[assignment.topic_id] = topic
        self._collision_keys.setdefault(collision_key(topic), {})[topic] = None

    def remove_topic(self, topic: str) -> None:
        assignment = self.assignments.pop(topic, None)
        if assignment is None:
            return
        self._topics_by_id.pop(assignment.topic_id or b"", None)
        self.reassigning -= _moving(topic, assignment)
        same_key = self._collision_keys[collision_key(topic)]
        del same_key[topic]
        if not same_key:
            del self._collision_keys[collision_key(topic)]
        for partition, replicas in assignment.replicas.items():
            self.leaders.pop((topic, partition), None)
            self.set_partition_phase((topic, partition), PartitionPhase.NON_EXISTENT)
            for broker in replicas:
                replica = Replica(topic, partition, broker)
                self.replica_phases.pop(replica, None)
                self.offline_replicas.discard(replica)
        self.deleting.pop(topic, None)
        self.failed_deletions.discard(topic)

    def topic_of(self, topic_id: bytes) -> str | None:
        return self._topics_by_id.get(topic_id)

    def colliding(self, topic: str) -> list[str]:
        """Topics whose names are the same as a metric."""
        return sorted(each for each in self._collision_keys.get(collision_key(topic), ()) if each != topic)

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        return [(topic, partition) for partition in self.assignments[topic].replicas]

    def all_partitions(self) -> Iterator[TopicPartition]:
        for topic, assignment in self.assignments.items():
            for partition in assignment.replicas:
                yield (topic, partition)

    # Replicas

    def replicas_of(self, partition: TopicPartition) -> tuple[int, ...]:
        """The brokers that hold it, in order of preference; none if it does not exist."""
        assignment = self.assignments.get(partition[0])
        return assignment.replicas.get(partition[1], ()) if assignment else ()

    def assignment_of(self, partition: TopicPartition) -> PartitionAssignment | None:
        """Its replicas, with those on the move; None if it does not exist."""
        assignment = self.assignments.get(partition[0])
        return assignment.of(partition[1]) if assignment and partition[1] in assignment.replicas else None

    def replicas_in(self, partitions: Iterable[TopicPartition]) -> list[Replica]:
        return [Replica(*partition, broker) for partition in partitions for broker in self.replicas_of(partition)]

    def replicas_on(self, brokers: Iterable[int]) -> list[Replica]:
        wanted = set(brokers)
        return [
            Replica(topic, partition, broker)
            for topic, assignment in self.assignments.items()
            for partition, replicas in assignment.replicas.items()
            for broker in replicas
            if broker in wanted
        ]

    def is_online(self, partition: TopicPartition, broker: int) -> bool:
        """Whether that replica may lead: its broker stays, and its directory works."""
        return broker in self.brokers and broker not in self.stopping and self._has_directory(partition, broker)

    def is_reachable(self, partition: TopicPartition, broker: int) -> bool:
        """Whether that replica still serves, be it on a broker about to stop."""
        return broker in self.brokers and self._has_directory(partition, broker)

    def live_replicas(self, partition: TopicPartition) -> list[int]:
        return [broker for broker in self.replicas_of(partition) if self.is_online(partition, broker)]

    def reachable_replicas(self, partition: TopicPartition) -> list[int]:
        return [broker for broker in self.replicas_of(partition) if self.is_reachable(partition, broker)]

    # Runs of brokers

    def has_followers(self, partition: TopicPartition) -> bool:
        return len(self.replicas_of(partition)) > 1

    def by_present_run(self, partition: TopicPartition, state: PartitionState) -> PartitionState:
        """A state that begins a leader epoch, with the run of its leader that is known now, and as `by_known_runs`."""
        leader = self.brokers.get(state.leader) if self.has_followers(partition) else None
        epoch = NO_BROKER_EPOCH if leader is None else leader.epoch
        return self.by_known_runs(state._replace(leader_broker_epoch=epoch))

    def by_known_runs(self, state: PartitionState) -> PartitionState:
        """A state that is to be written by who knows of these brokers: later runs of theirs may lack what it counts on.

        While a term begins it says what it said before: who was away since may still be in the ISR. But not where all
        in sync were away: nobody leaves for that, and who is away after this is to be told from them.
        """
        if len(state.isr) < 2:
            return state._replace(latest_broker_epoch=NO_BROKER_EPOCH)
        if self.is_beginning and any([self._has_stayed(each, state) for each in state.isr]):
            return state
        latest = max([broker.epoch for broker in self.brokers.values()], default=0)
        return state._replace(latest_broker_epoch=latest)

    def may_be_of_former_run(self, partition: TopicPartition) -> bool:
        """Whether others follow a leader that lives, and may have been away since its epoch began."""
        state = self.leaders.get(partition)
        leader = self.brokers.get(state.leader) if state is not None else None
        if state is None or leader is None or state.leader_broker_epoch == leader.epoch:
            return False
        return self.has_followers(partition)

    def _has_stayed(self, broker: int, state: PartitionState) -> bool:
        """Whether whoever wrote the state knew the broker's present run."""
        info = self.brokers.get(broker)
        return info is not None and info.epoch <= state.latest_broker_epoch

    def _has_directory(self, partition: TopicPartition, broker: int) -> bool:
        return not self.offline_replicas or (*partition, broker) not in self.offline_replicas

    # Phases

    def set_partition_phase(self, partition: TopicPartition, phase: PartitionPhase) -> None:
        before = self.partition_phases.get(partition)
        self.offline_partition_count += _is_offline(phase) - _is_offline(before)
        if phase is PartitionPhase.NON_EXISTENT:
            self.partition_phases.pop(partition, None)
        else:
            self.partition_phases[partition] = phase

    def partition_phase(self, partition: TopicPartition) -> PartitionPhase:
        return self.partition_phases.get(partition, PartitionPhase.NON_EXISTENT)

    def replica_phase(self, replica: Replica) -> ReplicaPhase:
        return self.replica_phases.get(replica, ReplicaPhase.NON_EXISTENT)


def _moving(topic: str, assignment: TopicAssignment) -> set[TopicPartition]:
    """Its partitions that are being reassigned."""
    return {
        (topic, partition)
        for on_the_move in (assignment.adding, assignment.removing)
        for partition, brokers in on_the_move.items()
        if brokers and partition in assignment.replicas
    }


def _is_offline(phase: PartitionPhase | None) -> bool:
    return phase in (PartitionPhase.NEW, PartitionPhase.OFFLINE)
