"""Which replicas move to another log directory of this broker, and which thread copies them (Kafka's
ReplicaAlterLogDirsManager)."""

import logging
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from kavka.coordinator.partitioning import java_hash
from kavka.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from kavka.broker.core_services import CoreServices
    from kavka.broker.log_moves.log_mover import LogMover
    from kavka.broker.partitions.partition import Partition
    from kavka.storage.partition_log import PartitionLog

TopicPartition = tuple[str, int]

log: Final = logging.getLogger(__name__)


class ReplicaMoves:
    """The moves of this broker's replicas; threads only while there are any.

    A `Followers` of the ReplicaManager: a move that a stop has interrupted goes on when the replica is ordered to lead
    or follow. `on_death` hears of an exception that ends a thread.

    Threads: any. `_lock` guards all attributes; under it those of the movers are taken, which are leaves.
    """

    def __init__(self, services: "CoreServices", on_death: Callable[[BaseException], None]) -> None:
        self._services: Final = services
        self._on_death: Final = on_death
        self._lock: Final = threading.Lock()
        self._movers: dict[int, LogMover] = {}
        self._is_stopped = False

    @property
    def max_lag(self) -> int:
        """By how many records the copy is behind that is behind most."""
        logs = self._services.logs
        return max(
            (
                current.log_end_offset - future.log_end_offset
                for future in logs.moves.futures
                if (current := logs.get(future.topic, future.partition)) is not None
            ),
            default=0,
        )

    @property
    def failed_count(self) -> int:
        """How many copies met an error and wait for another try."""
        with self._lock:
            return sum(mover.failed_count for mover in self._movers.values())

    def alter(self, key: TopicPartition, path: str) -> None:
        """Have the replica lie in the log directory `path`, or its log made there if it has none yet. Waits for disks.

        Raises BrokerError: LOG_DIR_NOT_FOUND; KAFKA_STORAGE_ERROR where it is offline, or the replica is;
        REPLICA_NOT_AVAILABLE where the broker does not have the replica yet, UNKNOWN_TOPIC_OR_PARTITION where it does
        not even know the partition: the directory is remembered for both; INVALID_TOPIC_EXCEPTION for a name that is
        too long.
        """
        services = self._services
        moves = services.logs.moves
        moves.check_name(key)
        directory = moves.directory(path)
        partition = services.replicas.partitions.get(key)
        if partition is None:
            moves.prefer(key, directory)
            known = services.metadata.current.partition(*key) is not None
            raise BrokerError(ErrorCode.REPLICA_NOT_AVAILABLE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if partition.is_offline:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{partition!r} is in an offline log directory")
        future = moves.begin(key, directory)
        if future is None:
            self.unfollow([key])
        elif (current := services.logs.get(*key)) is not None:
            self._take_up(key, current, future)

    def roles_changed(self, partitions: Iterable["Partition"]) -> None:
        """See `replica_manager.Followers`: go on with moves of these."""
        moves = self._services.logs.moves
        if not moves.futures:
            return
        for partition in partitions:
            key = (partition.topic, partition.index)
            future, current = moves.future(key), partition.log
            if future is not None and current is not None:
                self._take_up(key, current, future)

    def unfollow(self, keys: Iterable[TopicPartition]) -> None:
        """See `replica_manager.Followers`: copy these no more. Their copies are the log manager's to delete."""
        with self._lock:
            keys = list(keys)
            for mover in self._movers.values():
                mover.drop(keys)

    def stop(self) -> None:
        """End the threads, and wait for them."""
        with self._lock:
            self._is_stopped = True
            ending = list(self._movers.values())
            self._movers.clear()
        for mover in ending:
            mover.begin_stop()
        for mover in ending:
            mover.join()

    def _take_up(self, key: TopicPartition, current: "PartitionLog", future: "PartitionLog") -> None:
        from kavka.broker.log_moves.log_copy import LogCopy

        config = self._services.config.current
        number = (31 * java_hash(key[0]) + key[1]) % max(config.num_replica_alter_log_dirs_threads, 1)
        with self._lock:
            if self._is_stopped:
                return
            copy = LogCopy(self._services.logs, key, current, future)
            mover = self._movers.get(number)
            if mover is None or not mover.add(copy):
                mover = self._new_mover(number)
                mover.add(copy)
                try:
                    mover.start()
                except RuntimeError as failure:
                    # No thread can be had now. The copy stays, and goes on with the next order or request for it.
                    log.error("cannot move log=%s: %s", current, failure)
                    return
                self._movers[number] = mover

    def _new_mover(self, number: int) -> "LogMover":
        from kavka.broker.log_moves.log_mover import LogMover
        from kavka.broker.replication.throttle import ALL, ReplicationThrottle

        services = self._services
        config = services.config.current
        for mover in self._movers.values():
            throttle = mover.throttle
            break
        else:
            throttle = ReplicationThrottle(
                services.broker_id,
                limit=lambda: services.config.current.replica_alter_log_dirs_io_max_bytes_per_second,
                replicas=lambda _: (ALL,),
                window_num=config.alter_log_dirs_replication_quota_window_num,
                window_size_ms=config.alter_log_dirs_replication_quota_window_size_seconds * 1000,
            )
        return LogMover(f"ReplicaAlterLogDirsThread-{number}", services.config, throttle, self._on_death)
