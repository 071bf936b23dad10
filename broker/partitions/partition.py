"""A partition as this broker hosts it: its log, its role, and what it knows of its followers.

Kafka's Partition. On one broker the ISR is this broker alone, so the high watermark follows every append at once; the
rules are those of a cluster all the same.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kavka.broker.partitions.follower_progress import FollowerProgress, broker_epochs, met
from kavka.broker.partitions.partition_waits import PartitionWaits, committed
from kavka.broker.partitions.replication import (
    Replication,
    after_answer,
    alone,
    committed_offset,
    is_joining,
    is_under_min_isr,
    lagging,
    outcome_counted,
    tell_of_loss,
)
from kavka.broker.partitions.role import NO_EPOCH, RECOVERING, GrantedIsr, PartitionRole, PendingIsr
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.leader_and_isr import LeaderAndIsrPartitionState
from kavka.storage.append_result import Origin
from kavka.storage.log_state import NOBODYS_EPOCH
from kavka.storage.verification_guards import NOT_VERIFIED

if TYPE_CHECKING:
    from kavka.storage.append_result import AppendResult
    from kavka.storage.log_validator import CheckedBatch
    from kavka.storage.partition_log import PartitionLog

logger: Final = logging.getLogger(__name__)


class Partition(PartitionWaits):
    """One partition on this broker.

    Threads: `role` is one immutable value, swapped whole under `_lock` and read without it by any thread; who needs
    several of its fields reads it once. `followers` changes under `_lock`. `log` is set with the role; there is none
    while the partition is offline. The high watermark belongs to the log.
    """

    __slots__ = (
        "_broker_id",
        "_replication",
        "followers",
        "index",
        "topic",
        "topic_id",
    )

    def __init__(
        self, broker_id: int, topic: str, index: int, topic_id: bytes, replication: Replication | None = None
    ) -> None:
        super().__init__()
        self._broker_id = broker_id
        self._replication = alone() if replication is None else replication
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.followers: dict[int, FollowerProgress] = {}

    def __repr__(self) -> str:
        return f"{self.topic}-{self.index}"

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
        return is_under_min_isr(self.log, self.role)

    def leader_log(self) -> "PartitionLog":
        """The log, if this broker leads. Raises BrokerError NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR (offline)."""
        log = self.log
        if log is None:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self!r} is in an offline log directory")
        if not self.role.is_leader:
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return log

    def check_leader_epoch(self, claimed_epoch: int) -> None:
        """Compare the leader epoch that a client knows with ours (KIP-320); -1 is not compared.

        Raises BrokerError FENCED_LEADER_EPOCH for an older one, UNKNOWN_LEADER_EPOCH for a newer one.
        """
        leader_epoch = self.role.leader_epoch
        if claimed_epoch == -1 or claimed_epoch == leader_epoch:
            return
        if claimed_epoch < leader_epoch:
            raise BrokerError(ErrorCode.FENCED_LEADER_EPOCH)
        raise BrokerError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    def make_leader(self, state: LeaderAndIsrPartitionState, controller_epoch: int, log: "PartitionLog") -> bool:
        """Lead from now on; True when this broker did not lead before, or under another epoch.

        Changes nothing where a later state is known already: the controller's answer to AlterPartition may be here
        before its order. The caller wakes who waits, by `wake_all`, when it holds no lock.
        """
        with self._lock:
            before = self.role
            if state.partition_epoch < before.partition_epoch:
                return False
            high_watermark = log.high_watermark
            is_new = state.leader_epoch > before.leader_epoch or not before.is_leader
            isr, replicas = tuple(state.isr), tuple(state.replicas)
            is_sole = isr == replicas == (self._broker_id,)
            # Before others may join the ISR, and not by its old rules.
            log.stand_alone(is_sole)
            start_offset = log.begin_leader_epoch(state.leader_epoch) if is_new else before.epoch_start_offset
            others = [replica for replica in replicas if replica != self._broker_id]
            now_ms, was_led = self._replication.monotonic_ms(), before.is_leader
            self.followers = met(self.followers, others, isr, start_offset, now_ms, is_new=is_new, was_led=was_led)
            self.log = log
            # What led uncleanly leads for good (KIP-704): the next change of the ISR tells the controller so.
            self.role = PartitionRole(
                is_leader=True,
                leader_id=self._broker_id,
                leader_epoch=state.leader_epoch,
                partition_epoch=state.partition_epoch,
                controller_epoch=controller_epoch,
                replicas=replicas,
                isr=isr,
                maximal_isr=isr,
                is_sole=is_sole,
                adding=tuple(state.adding_replicas),
                removing=tuple(state.removing_replicas),
                epoch_start_offset=start_offset,
                led_since_epoch=before.led_since_epoch if before.is_leader else state.leader_epoch,
            )
            self._advance_high_watermark()
        if is_new and state.leader_recovery_state == RECOVERING:
            tell_of_loss(self, state.leader_epoch, start_offset, high_watermark)
        return is_new

    def make_follower(self, state: LeaderAndIsrPartitionState, controller_epoch: int, log: "PartitionLog") -> bool:
        """Follow `state.leader` from now on; True when the leader or its epoch is new. Else as `make_leader`."""
        with self._lock:
            before = self.role
            if state.partition_epoch < before.partition_epoch:
                return False
            log.follow_leader_epoch(state.leader_epoch)
            self.log = log
            self.followers = {}
            self.role = PartitionRole(
                leader_id=state.leader,
                leader_epoch=state.leader_epoch,
                partition_epoch=state.partition_epoch,
                controller_epoch=controller_epoch,
                replicas=tuple(state.replicas),
                adding=tuple(state.adding_replicas),
                removing=tuple(state.removing_replicas),
                recovery_state=state.leader_recovery_state,
            )
        return before.is_leader or (state.leader_epoch, state.leader) != (before.leader_epoch, before.leader_id)

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
        leader_epoch: int = NO_EPOCH,
    ) -> "AppendResult":
        """Append a batch to the log as its leader; the caller then wakes those who wait by `appended`.

        `leader_epoch`: the only one in which to append; without, whichever it is now. A batch that begins a transaction
        needs a `guard` (`storage.verification_guards`). `transaction_version`, `withdrawn`: of a coordinator's marker.
        `built`: see `PartitionLog.append_as_leader`.
        Raises BrokerError: NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR, NOT_ENOUGH_REPLICAS, or AppendError.
        """
        role, log = self.role, self.log
        if log is None or not role.is_leader:
            log = self.leader_log()
        if acks == -1 and not role.is_sole and is_under_min_isr(log, role):
            raise BrokerError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"the ISR of {self!r} has {len(role.isr)} of {log.config.min_insync_replicas} replicas",
            )
        epoch = role.leader_epoch if leader_epoch == NO_EPOCH else leader_epoch
        while True:
            try:
                result = log.append_as_leader(
                    records,
                    leader_epoch=epoch,
                    now_ms=now_ms,
                    origin=origin,
                    single_v2_batch=produce_version >= 3,
                    zstd_allowed=not 3 <= produce_version < 7,
                    guard=guard,
                    transaction_version=transaction_version,
                    withdrawn=withdrawn,
                    built=built,
                )
                break
            except BrokerError as refusal:
                # Raised again here: where it is an argument it would keep itself, and what a bomb unpacked to.
                later = None if leader_epoch != NO_EPOCH else self._epoch_after(epoch, refusal.code)
                if later is None:
                    raise
                epoch = later
        # As it is after the append: the ISR may have shrunk to this broker just before the end moved.
        role = self.role
        if role.is_sole:
            log.advance_alone()
        elif role.maximal_isr == (self._broker_id,):
            with self._lock:
                self._advance_high_watermark()
        return result

    def check_follower(self, replica_id: int, claimed_epoch: int) -> "tuple[PartitionLog, PartitionRole]":
        """What a follower's fetch may read, before it does: (log, role). See `follower_fetched`.

        Raises BrokerError as `leader_log` and `check_leader_epoch`; UNKNOWN_LEADER_EPOCH for a broker that is no
        replica as far as is known here: it may be one of an assignment that this broker has not heard of yet. Without
        an epoch, of an old version, that is NOT_LEADER_OR_FOLLOWER.
        """
        role = self.role
        log = self.leader_log()
        self.check_leader_epoch(claimed_epoch)
        if replica_id not in role.replicas or replica_id == self._broker_id:
            raise BrokerError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER if claimed_epoch == -1 else ErrorCode.UNKNOWN_LEADER_EPOCH,
                f"broker {replica_id} is no replica of {self!r}",
            )
        return log, role

    def note_caught_up(self, leader_epoch: int) -> None:
        """All that the leader of that epoch had at some time is here, while this broker follows it: see `proving`.

        Raises BrokerError KAFKA_STORAGE_ERROR where the disk refuses to note it. No lock may be held.
        """
        role, log = self.role, self.log
        # A later role takes nothing from it: what was committed by then is here, whoever leads.
        if log is not None and not role.is_leader and role.leader_epoch == leader_epoch:
            log.note_proven()

    def follower_fetched(
        self,
        replica_id: int,
        fetch_offset: int,
        *,
        leader_epoch: int,
        leader_end_offset: int,
        log_start_offset: int = -1,
        broker_epoch: int = -1,
    ) -> bool:
        """A follower has everything below `fetch_offset`: move the high watermark, and the ISR, if that is due.

        Called when the fetch's epoch, offset and last fetched epoch were checked (`check_follower`, the read), in the
        role's `leader_epoch` of then: in another one it does not count any more. `leader_end_offset` is the log's end
        from before the read; `broker_epoch` that of the fetch (v15), else -1. No lock may be held.
        True: who waits for it has to be told, by `committed`.
        Raises BrokerError NOT_LEADER_OR_FOLLOWER where a later incarnation of that broker has fetched already.
        """
        replication = self._replication
        with self._lock:
            role, log, follower = self.role, self.log, self.followers.get(replica_id)
            if not role.is_leader or role.leader_epoch != leader_epoch or log is None or follower is None:
                return False
            if follower.broker_epoch is not None and -1 < broker_epoch < follower.broker_epoch:
                raise BrokerError(
                    ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {replica_id} has a later epoch than {broker_epoch}"
                )
            begins_later = log_start_offset > follower.log_start_offset
            follower.fetched(
                fetch_offset, log_start_offset, leader_end_offset, broker_epoch, replication.monotonic_ms()
            )
            pending = None
            if is_joining(role, replica_id, follower, log.high_watermark, replication):
                # Who is in sync but not assigned any more (KAFKA-9672) would have the controller refuse all of it.
                pending = self._ask_for((*filter(role.replicas.__contains__, role.isr), replica_id), is_expansion=True)
            moved = self._advance_high_watermark()
        if pending is not None:
            replication.propose(self, pending)
        return moved or begins_later

    def shrink_isr(self) -> None:
        """Ask for an ISR without those who lag; to be called every half `replica.lag.time.max.ms`. No lock held."""
        replication = self._replication
        role = self.role
        if not role.is_leader or role.pending is not None or len(role.isr) < 2:
            return
        with self._lock:
            role, log = self.role, self.log
            if not role.is_leader or log is None:
                return
            end_offset = log.log_end_offset
            late = lagging(role, self._broker_id, end_offset, self.followers, replication, replication.monotonic_ms())
            if not late:
                return
            pending = self._ask_for(tuple(each for each in role.isr if each not in late), is_expansion=False)
        ends = {each: known.end_offset for each, known in self.followers.items() if each in late}
        logger.info("ISR of %r: from %s to %s, end offset %d, late %s", self, role.isr, pending.isr, end_offset, ends)
        replication.propose(self, pending)

    def isr_answered(self, pending: PendingIsr, answer: GrantedIsr | ErrorCode) -> bool:
        """The controller's answer to `pending`. True: it is to be asked once more. No lock may be held."""
        replication = self._replication
        with self._lock:
            role = self.role
            if role.pending is not pending:
                return False
            after = after_answer(role, answer)
            if after is not None:
                self.role = after
            is_granted = after is not None and after.pending is None and isinstance(answer, GrantedIsr)
            replication.count(outcome_counted(pending, is_granted=is_granted))
            if after is None:
                return True
            moved = self._advance_high_watermark()
        logger.info("ISR of %r: asked for %s, answered %s", self, pending.isr, answer)
        if moved:
            committed((self,))
        return False

    def take_offline(self) -> None:
        """The log's directory has failed. The caller then wakes who waits, by `wake_all`."""
        with self._lock:
            self.log = None
            self.role = self.role._replace(is_leader=False, is_sole=False)

    def resign(self) -> None:
        """Lead no more: the partition leaves this broker. The caller then wakes who waits, by `wake_all`."""
        with self._lock:
            self.role = self.role._replace(is_leader=False, is_sole=False)
            if self.log is not None:
                self.log.follow_leader_epoch(NOBODYS_EPOCH)

    def _epoch_after(self, epoch: int, code: ErrorCode) -> int | None:
        """The epoch that began here under an append in `epoch`, which goes on in it as in Kafka; None if none did."""
        if code is not ErrorCode.NOT_LEADER_OR_FOLLOWER:
            return None
        with self._lock:
            role = self.role
        return role.leader_epoch if role.is_leader and role.leader_epoch > epoch else None

    def _ask_for(self, isr: tuple[int, ...], *, is_expansion: bool) -> PendingIsr:
        """Lock held."""
        role = self.role
        epochs = broker_epochs(self.followers, isr)
        pending = PendingIsr(isr, epochs, role.leader_epoch, role.partition_epoch, is_expansion)
        self.role = role.asking(pending)
        return pending

    def _advance_high_watermark(self) -> bool:
        """True if it moved. Under min.insync.replicas it stands still (KAFKA-15583). Lock held."""
        log, role, replication = self.log, self.role, self._replication
        if log is None or not role.is_leader or is_under_min_isr(log, role):
            return False
        now_ms = replication.monotonic_ms()
        lowest = committed_offset(role, log.log_end_offset, self.followers, replication, now_ms)
        return lowest > log.high_watermark and log.advance_high_watermark(lowest)
