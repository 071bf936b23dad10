"""The partitions that this broker hosts, and how the controller's orders change them (Kafka's ReplicaManager)."""

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kavka.broker.partitions.controller_epoch import UNNUMBERED, ControllerEpoch
from kavka.broker.partitions.order_checks import is_another, is_newer, needs_records, stop_errors
from kavka.broker.partitions.partition import Partition
from kavka.broker.partitions.refused_orders import RefusedOrders, WantedLog, wanted_log
from kavka.broker.partitions.replication import Replication, alone
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from kavka.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from kavka.protocol.schema import ZERO_UUID
from kavka.storage.partition_folders import NameTakenError

if TYPE_CHECKING:
    from kavka.broker.replication.throttle import ReplicationThrottle
    from kavka.storage.log_manager import LogManager
    from kavka.storage.partition_log import PartitionLog

TopicPartition = tuple[str, int]

log = logging.getLogger(__name__)


class Followers(Protocol):
    """Who copies from other brokers what this one does not lead, or to another log directory.

    Called under the lock; must not wait for anything.
    """

    def roles_changed(self, partitions: Iterable[Partition]) -> None:
        """Of these, follow who has a leader elsewhere, in its epoch, and the others no more."""

    def unfollow(self, keys: Iterable[TopicPartition]) -> None:
        """These are hosted here no more, or their disk is lost."""


class ReplicaManager:
    """All partitions of this broker by (topic, index).

    `on_leadership(partition, is_leader)` hears of each leadership that begins, goes on under another epoch, or ends. It
    is called under the lock, so that it hears the controller's orders in order, and must not wait for anything.

    Threads: `partitions` is replaced whole under `_lock` by the controller's orders and read without it by any
    thread; a `Partition` guards itself.
    """

    def __init__(
        self,
        broker_id: int,
        logs: "LogManager",
        on_leadership: Callable[[Partition, bool], None] | None = None,
        replication: Replication | None = None,
        *,
        controller_epoch: ControllerEpoch | None = None,
        followers: Followers | None = None,
        moves: Followers | None = None,
        topic_ids: Callable[[Collection[str]], Mapping[str, bytes]] | None = None,
    ) -> None:
        """`topic_ids(names)`: of topics as the registry has them now, which may take time; none of those it can't tell.
        Without, what is here of a former topic of a name stays in the way of another one.
        """
        self._broker_id = broker_id
        self._logs = logs
        self._on_leadership = on_leadership
        self._followers = followers
        self._moves = moves
        self._topic_ids = topic_ids
        self.leader_throttle: ReplicationThrottle | None = None
        """Of what followers get of throttled replicas; set before the first request, None for a broker alone."""
        self.replication = alone() if replication is None else replication
        self._lock = threading.Lock()
        self._refused = RefusedOrders()
        self._controller_epoch = ControllerEpoch() if controller_epoch is None else controller_epoch
        self._stopped: dict[TopicPartition, tuple[bytes, int]] = {}
        """Topic id and leader epoch of what was stopped, but kept its log: no older order counts. Bounded by these."""
        self.partitions: dict[tuple[str, int], Partition] = {}

    def leader_and_isr(self, request: LeaderAndIsrRequest, number: int = UNNUMBERED) -> LeaderAndIsrResponse:
        """Take or give up leadership as the controller says (the BrokerPort of LeaderAndIsr v5 and later)."""
        with self._lock:
            if not self._controller_epoch.admits(request.controller_epoch, request.broker_epoch, number):
                return LeaderAndIsrResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH)
            partitions = dict(self.partitions)
            logs = self._logs_for(request)
            answers = []
            for topic_state in request.topic_states:
                name, topic_id = topic_state.topic_name, bytes(topic_state.topic_id)
                errors = [
                    LeaderAndIsrPartitionError(
                        partition_index=state.partition_index,
                        error_code=self._apply(
                            partitions,
                            name,
                            topic_id,
                            state,
                            request.controller_epoch,
                            logs.get((name, state.partition_index)),
                        ),
                    )
                    for state in topic_state.partition_states
                ]
                answers.append(LeaderAndIsrTopicError(topic_id=topic_id, partition_errors=errors))
            self.partitions = partitions
            for each in (self._followers, self._moves):
                if each is not None:
                    each.roles_changed([partitions[key] for key in logs if key in partitions])
        for key in logs:
            partition = partitions.get(key)
            if partition is not None:
                partition.wake_all()
        return LeaderAndIsrResponse(error_code=ErrorCode.NONE, topics=answers)

    def stop_replica(self, request: StopReplicaRequest, number: int = UNNUMBERED) -> StopReplicaResponse:
        """Stop hosting partitions, and delete their logs where the controller says so (StopReplica v3 and later).

        A partition in a failed directory stays, as in Kafka: clients go on hearing KAFKA_STORAGE_ERROR of it, and its
        topic can't be deleted before the directory is back.
        """
        with self._lock:
            if not self._controller_epoch.admits(request.controller_epoch, request.broker_epoch, number):
                return StopReplicaResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH, partition_errors=[])
            partitions = dict(self.partitions)
            stopped: list[Partition] = []
            doomed: list[TopicPartition] = []
            refused: dict[TopicPartition, ErrorCode] = {}
            for topic_state in request.topic_states:
                for state in topic_state.partition_states:
                    key = (topic_state.topic_name, state.partition_index)
                    partition = partitions.get(key)
                    if partition is not None and partition.is_offline:
                        refused[key] = ErrorCode.KAFKA_STORAGE_ERROR
                        continue
                    # -2 is a deleted topic, -1 an old controller: both are past every epoch (KIP-599).
                    if partition is not None and 0 <= state.leader_epoch < partition.role.leader_epoch:
                        refused[key] = ErrorCode.FENCED_LEADER_EPOCH
                        continue
                    if partition is not None:
                        del partitions[key]
                        stopped.append(partition)
                        self._stopped[key] = partition.topic_id, partition.role.leader_epoch
                    if state.delete_partition:
                        self._stopped.pop(key, None)
                        self._logs.lost.disown(key)
                        doomed.append(key)
            self._let_go(partitions, stopped)
            refused |= {key: failure.code for key, failure in self._delete_logs(doomed).items()}
        for partition in stopped:
            partition.wake_all()
        return StopReplicaResponse(error_code=ErrorCode.NONE, partition_errors=stop_errors(request, refused))

    def directory_failed(self, failed: Iterable[Path]) -> list[Partition]:
        """Take the partitions of failed log directories offline; which they were."""
        parents = set(failed)
        hit = []
        # Else a leadership that begins just now would stand, in a directory that is gone.
        with self._lock:
            for partition in self.partitions.values():
                if partition.log is not None and partition.log.is_lost_with(parents):
                    partition.take_offline()
                    self._tell(partition, False)
                    hit.append(partition)
            self._unfollow(hit)
        for partition in hit:
            partition.wake_all()
        return hit

    def shrink_isrs(self) -> None:
        """Have leaders ask for ISRs without followers that lag: every half `replica.lag.time.max.ms`. Any thread."""
        for partition in self.partitions.values():
            partition.shrink_isr()

    def retry_refused(self) -> bool:
        """Try again what a disk refused for a reason that passes. True: there is less of it, so tell the controller.

        Also what a former topic of a name refuses. Waits for the registry, and for the disk, as the controller's orders
        do: for a background thread.
        """
        if not self._refused:
            return False
        names = {topic for topic, _ in self._refused.namesakes.copy()}
        ids = self._topic_ids(names) if names and self._topic_ids else {}
        with self._lock:
            before = len(self._refused)
            stopped = self._set_aside(self._refused.namesakes_of(ids))
            self._refused.leaderships.clear()
            for key, made in self._make_logs(dict(self._refused.creations)).items():
                if isinstance(made, BrokerError) and key not in self._refused.creations:
                    log.error("cannot host topic=%s partition=%d error=%r", *key, str(made))
            self._delete_logs(list(self._refused.deletions))
            is_less = len(self._refused) < before
        for partition in stopped:
            partition.wake_all()
        return is_less

    @property
    def leader_count(self) -> int:
        """How many partitions this broker leads."""
        return sum(partition.role.is_leader for partition in self.partitions.values())

    @property
    def offline_count(self) -> int:
        """How many partitions are in failed directories."""
        return sum(partition.is_offline for partition in self.partitions.values())

    @property
    def under_replicated_count(self) -> int:
        """How many led partitions have fewer in-sync replicas than replicas."""
        return sum(partition.role.is_under_replicated for partition in self.partitions.values())

    def note_recovery(self) -> None:
        """Note it when all that belongs on a replaced disk has a log again. Waits for the disk: for the background."""
        if self._logs.lost.may_exist:
            with self._lock:
                self._logs.lost.forget()

    def _logs_for(self, request: LeaderAndIsrRequest) -> "dict[TopicPartition, PartitionLog | BrokerError]":
        """The logs of the partitions that the order is news for, or why they can't be as it says. Under the lock."""
        wanted: dict[TopicPartition, WantedLog] = {}
        lost: set[TopicPartition] = set()
        unneeded: list[TopicPartition] = []
        refused: dict[TopicPartition, PartitionLog | BrokerError] = {}
        for topic_state in request.topic_states:
            topic_id = bytes(topic_state.topic_id)
            for state in topic_state.partition_states:
                key = (topic_state.topic_name, state.partition_index)
                partition = self.partitions.get(key)
                if not is_newer(partition, topic_state, state) or self._precedes_stop(key, topic_id, state):
                    continue
                if self._broker_id not in state.replicas:
                    refused[key] = BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "not among the replicas")
                    continue
                if not needs_records(state, self._broker_id):
                    unneeded.append(key)
                elif self._lacks_records(key, topic_id):
                    lost.add(key)
                if key in lost and state.leader == self._broker_id:
                    self._refused.leaderships.add(key)
                    refused[key] = BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "its records went with a disk")
                    continue
                wanted[key] = wanted_log(topic_id, state, self._broker_id, is_lost=key in lost)
        logs = self._make_logs(wanted) | refused
        for key in unneeded:
            log = logs[key]
            if not isinstance(log, BrokerError) and log.is_unproven:
                try:
                    log.note_proven()
                except BrokerError as failure:
                    self._refused.leaderships.add(key)
                    logs[key] = failure
        return logs

    def _note_namesake(self, key: TopicPartition, topic_id: bytes) -> None:
        if self._topic_ids is not None:
            self._refused.refuse_namesake(key, topic_id)

    def _set_aside(self, names: Mapping[TopicPartition, bytes]) -> list[Partition]:
        """Take out of the way what is here of former topics of these names, which have those ids now. Under the lock.

        Gives the partitions that are hosted no more.
        """
        stopped = []
        for key, topic_id in names.items():
            partition = self.partitions.get(key)
            if partition is not None and is_another(partition, topic_id) and not partition.is_offline:
                self._let_go({each: kept for each, kept in self.partitions.items() if each != key}, [partition])
                stopped.append(partition)
            try:
                self._logs.strays.set_aside(key, topic_id)
            except BrokerError as failure:
                log.error("cannot set a former topic aside topic=%s partition=%d error=%r", *key, str(failure))
            else:
                self._refused.namesakes.pop(key, None)
        return stopped

    def _precedes_stop(self, key: TopicPartition, topic_id: bytes, state: LeaderAndIsrPartitionState) -> bool:
        """Whether the order is older than the one under which the partition was hosted here last."""
        former_id, leader_epoch = self._stopped.get(key, (ZERO_UUID, -1))
        return former_id == topic_id and state.leader_epoch < leader_epoch

    def _lacks_records(self, key: TopicPartition, topic_id: bytes) -> bool:
        """Whether what was committed may be missing in the log that is here, or that is to be made: also of one that
        the controller still calls new, as it is being added, and that has come into sync and lost its disk since."""
        log = self._logs.get(*key)
        return log.is_unproven if log is not None else self._logs.lost.includes(key, topic_id)

    def _make_logs(
        self, wanted: Mapping[TopicPartition, WantedLog]
    ) -> "dict[TopicPartition, PartitionLog | BrokerError]":
        """The logs, made where they are missing; remembers those that are to be tried again. Under the lock."""
        owed = self._refused.creations
        wanted = {
            # What was new when it was refused still lies in no directory, whatever the controller has forgotten.
            key: owed[key]._replace(is_lost=owed[key].is_lost or each.is_lost)
            if key in owed and owed[key].topic_id == each.topic_id
            else each
            for key, each in wanted.items()
        }
        logs = self._logs.create(
            [(*key, each.topic_id) for key, each in wanted.items()],
            new={key for key, each in wanted.items() if each.is_new},
            lost={key for key, each in wanted.items() if each.is_lost},
        )
        for key, made in logs.items():
            if self._may_pass(key, made):
                self._refused.refuse_creation(key, wanted[key])
                if isinstance(made, NameTakenError):
                    self._note_namesake(key, wanted[key].topic_id)
            else:
                self._refused.forget(key)
        return logs

    def _delete_logs(self, doomed: Iterable[TopicPartition]) -> dict[TopicPartition, BrokerError]:
        """Delete the logs; remembers those that are to be tried again, and gives all failures. Under the lock."""
        keys = list(doomed)
        failures = self._logs.delete(keys)
        for key in keys:
            if self._may_pass(key, failures.get(key)):
                self._refused.refuse_deletion(key)
            else:
                self._refused.forget(key)
        return failures

    def _may_pass(self, key: TopicPartition, result: object) -> bool:
        """Whether the disk refused, and the directory is not lost."""
        return (
            isinstance(result, BrokerError)
            and result.code is ErrorCode.KAFKA_STORAGE_ERROR
            and not self._logs.is_offline(*key)
        )

    def _apply(
        self,
        partitions: dict[tuple[str, int], Partition],
        topic: str,
        topic_id: bytes,
        state: LeaderAndIsrPartitionState,
        controller_epoch: int,
        hosted_log: "PartitionLog | BrokerError | None",
    ) -> ErrorCode:
        key = (topic, state.partition_index)
        partition = partitions.get(key)
        if partition is not None and partition.is_offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if partition is not None and is_another(partition, topic_id):
            self._note_namesake(key, topic_id)
            return ErrorCode.INCONSISTENT_TOPIC_ID
        if hosted_log is None:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        if isinstance(hosted_log, BrokerError):
            log.error("cannot host topic=%s partition=%d error=%r", topic, state.partition_index, str(hosted_log))
            if partition is None and self._logs.is_offline(*key):
                partitions[key] = self._new(topic, state.partition_index, topic_id)
            if hosted_log.code is ErrorCode.INCONSISTENT_TOPIC_ID:
                self._note_namesake(key, topic_id)
            return hosted_log.code
        if partition is None:
            partition = partitions[key] = self._new(topic, state.partition_index, topic_id)
            self._stopped.pop(key, None)
        if state.leader == self._broker_id:
            changed = partition.make_leader(state, controller_epoch, hosted_log)
        else:
            changed = partition.make_follower(state, controller_epoch, hosted_log)
        if changed:
            self._tell(partition, partition.role.is_leader)
        return ErrorCode.NONE

    def _new(self, topic: str, index: int, topic_id: bytes) -> Partition:
        return Partition(self._broker_id, topic, index, topic_id, self.replication)

    def _let_go(self, partitions: dict[TopicPartition, Partition], stopped: Iterable[Partition]) -> None:
        """Host `partitions` from now on, and those that were stopped no more. Under the lock."""
        self.partitions = partitions
        self._unfollow(stopped)
        for partition in stopped:
            # Before its log goes: who waits at it learns that it is no leader, not that its disk failed.
            partition.resign()
            self._tell(partition, False)

    def _unfollow(self, partitions: Iterable[Partition]) -> None:
        keys = [(partition.topic, partition.index) for partition in partitions]
        for each in (self._followers, self._moves):
            if each is not None:
                each.unfollow(keys)

    def _tell(self, partition: Partition, is_leader: bool) -> None:
        if self._on_leadership is not None:
            self._on_leadership(partition, is_leader)
