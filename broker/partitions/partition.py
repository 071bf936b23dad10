"""A partition as this broker hosts it: its log, its role, its leader epoch, ISR and high watermark.

Kafka's Partition. On one broker the ISR is this broker alone, so the high watermark follows every append at once; the
rules are those of a cluster all the same.
"""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kavka.broker.waiting.purgatory import WatchList
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.leader_and_isr import LeaderAndIsrPartitionState
from kavka.storage.append_result import Origin
from kavka.storage.verification_guards import NOT_VERIFIED

if TYPE_CHECKING:
    from kavka.storage.append_result import AppendResult
    from kavka.storage.log_validator import CheckedBatch
    from kavka.storage.partition_log import PartitionLog

NO_LEADER: Final = -1


class FollowerState:
    """What the leader knows of one follower."""

    __slots__ = ("caught_up_ms", "end_offset")

    def __init__(self) -> None:
        self.end_offset = -1
        self.caught_up_ms = 0


class Partition:
    """One partition on this broker.

    Threads: role, epochs, ISR and replicas change under `_lock` (taken by the controller's requests and, later, by ISR
    changes); each is published by one assignment, and read without the lock by any thread. `log` is set with the role;
    there is none while the partition is offline. The high watermark belongs to the log. Watch lists are checked with
    no lock held.
    """

    __slots__ = (
        "_broker_id",
        "_lock",
        "controller_epoch",
        "data_arrived",
        "followers",
        "high_watermark_moved",
        "index",
        "is_leader",
        "isr",
        "leader_epoch",
        "leader_id",
        "log",
        "partition_epoch",
        "replicas",
        "topic",
        "topic_id",
    )

    def __init__(self, broker_id: int, topic: str, index: int, topic_id: bytes) -> None:
        self._broker_id = broker_id
        self._lock = threading.Lock()
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.log: PartitionLog | None = None
        self.is_leader = False
        self.leader_id = NO_LEADER
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.controller_epoch = -1
        self.isr: tuple[int, ...] = ()
        self.replicas: tuple[int, ...] = ()
        self.followers: dict[int, FollowerState] = {}
        self.data_arrived = WatchList()
        """Fetches that wait for data (consumers for the high watermark, followers for the end)."""
        self.high_watermark_moved = WatchList()
        """Produces with acks=all, DeleteRecords, and whatever else waits for replication."""

    @property
    def high_watermark(self) -> int:
        """The offset below which everything is on every in-sync replica."""
        return self.leader_log().high_watermark

    @property
    def is_offline(self) -> bool:
        """Whether its log directory has failed: nothing can be read or written until the broker restarts."""
        return self.log is None

    @property
    def is_under_min_isr(self) -> bool:
        """Whether too few replicas are in sync for acks=all; Kafka never asks for more than are assigned."""
        log = self.log
        isr_size = len(self.isr)
        return log is not None and isr_size < log.config.min_insync_replicas and isr_size < len(self.replicas)

    def leader_log(self) -> "PartitionLog":
        """The log, if this broker leads. Raises BrokerError NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR (offline)."""
        log = self.log
        if log is None:
            raise BrokerError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"{self.topic}-{self.index} is in an offline log directory"
            )
        if not self.is_leader:
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return log

    def check_leader_epoch(self, claimed_epoch: int) -> None:
        """Compare the leader epoch that a client knows with ours (KIP-320); -1 is not compared.

        Raises BrokerError FENCED_LEADER_EPOCH for an older one, UNKNOWN_LEADER_EPOCH for a newer one.
        """
        if claimed_epoch == -1 or claimed_epoch == self.leader_epoch:
            return
        if claimed_epoch < self.leader_epoch:
            raise BrokerError(ErrorCode.FENCED_LEADER_EPOCH)
        raise BrokerError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    def make_leader(self, state: LeaderAndIsrPartitionState, controller_epoch: int, log: "PartitionLog") -> bool:
        """Lead from now on; True when this broker did not lead before, or under another epoch.

        The caller wakes who waits, by `wake_all`, when it holds no lock.
        """
        with self._lock:
            was_leader = self.is_leader
            new_epoch = state.leader_epoch > self.leader_epoch
            self._adopt(state, controller_epoch, log)
            self.followers = {
                replica: self.followers.get(replica) or FollowerState()
                for replica in state.replicas
                if replica != self._broker_id
            }
            if new_epoch:
                log.begin_leader_epoch(state.leader_epoch)
            self.leader_id = self._broker_id
            self.is_leader = True
            self._advance_high_watermark(log)
        return new_epoch or not was_leader

    def make_follower(self, state: LeaderAndIsrPartitionState, controller_epoch: int, log: "PartitionLog") -> bool:
        """Follow `state.leader` from now on; True when the leader or its epoch is new. Wake as for `make_leader`."""
        with self._lock:
            changed = state.leader_epoch != self.leader_epoch or self.leader_id != state.leader
            self.is_leader = False
            log.fence(state.leader_epoch)
            self._adopt(state, controller_epoch, log)
            self.leader_id = state.leader
            self.followers = {}
        return changed

    def append(
        self,
        records: memoryview,
        acks: int,
        produce_version: int,
        now_ms: int,
        origin: Origin = Origin.CLIENT,
        *,
        guard: int = NOT_VERIFIED,
        transaction_version: int = 0,
        withdrawn: "Callable[[], bool] | None" = None,
        built: "CheckedBatch | None" = None,
    ) -> "AppendResult":
        """Append a batch to the log as its leader; the caller then wakes those who wait by `appended`.

        A batch that begins a transaction needs a `guard` (`storage.verification_guards`). `transaction_version`,
        `withdrawn`: of a coordinator's marker. `built`: see `PartitionLog.append_as_leader`.
        Raises BrokerError: NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR, NOT_ENOUGH_REPLICAS, or AppendError.
        """
        log = self.log
        if log is None or not self.is_leader:
            log = self.leader_log()
        isr_size = len(self.isr)
        if acks == -1 and isr_size < len(self.replicas) and self.is_under_min_isr:
            raise BrokerError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"the ISR of {self.topic}-{self.index} has {isr_size} of {log.config.min_insync_replicas} replicas",
            )
        result = log.append_as_leader(
            records,
            leader_epoch=self.leader_epoch,
            now_ms=now_ms,
            origin=origin,
            single_v2_batch=produce_version >= 3,
            zstd_allowed=not 3 <= produce_version < 7,
            guard=guard,
            transaction_version=transaction_version,
            withdrawn=withdrawn,
            built=built,
        )
        if isr_size == 1:
            log.advance_high_watermark(log.published[0])
        return result

    def appended(self) -> None:
        """Wake what waits for data or for the high watermark. No lock may be held."""
        if self.data_arrived.operations:
            self.data_arrived.check()
        if self.high_watermark_moved.operations:
            self.high_watermark_moved.check()

    def follower_fetched(self, replica_id: int, fetch_offset: int, now_ms: int) -> None:
        """A follower has everything below `fetch_offset`: move the high watermark if that was what it waited for."""
        log = self.leader_log()
        with self._lock:
            follower = self.followers.get(replica_id)
            if follower is None:
                raise BrokerError(
                    ErrorCode.UNKNOWN_LEADER_EPOCH, f"broker {replica_id} is no replica of this partition"
                )
            follower.end_offset = fetch_offset
            if fetch_offset >= log.log_end_offset:
                follower.caught_up_ms = now_ms
            moved = self._advance_high_watermark(log)
        if moved:
            self.appended()

    def take_offline(self) -> None:
        """The log's directory has failed. The caller then wakes who waits, by `wake_all`."""
        with self._lock:
            self.log = None
            self.is_leader = False

    def resign(self) -> None:
        """Lead no more: the partition leaves this broker. The caller then wakes who waits, by `wake_all`."""
        with self._lock:
            self.is_leader = False

    def wake_all(self) -> None:
        """Have everything that waits look again. No lock may be held."""
        self.high_watermark_moved.check()
        self.data_arrived.check()

    def _adopt(self, state: LeaderAndIsrPartitionState, controller_epoch: int, log: "PartitionLog") -> None:
        self.log = log
        self.controller_epoch = controller_epoch
        self.leader_epoch = state.leader_epoch
        self.partition_epoch = state.partition_epoch
        self.isr = tuple(state.isr)
        self.replicas = tuple(state.replicas)

    def _advance_high_watermark(self, log: "PartitionLog") -> bool:
        in_sync = [log.log_end_offset]
        for replica in self.isr:
            if replica != self._broker_id:
                follower = self.followers.get(replica)
                in_sync.append(follower.end_offset if follower is not None else -1)
        lowest = min(in_sync)
        return lowest > log.high_watermark and log.advance_high_watermark(lowest)
