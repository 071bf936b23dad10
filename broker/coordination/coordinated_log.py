"""A partition as a coordinator's log: appends of the coordinator's own, and waits for the high watermark.

Where `flush.messages` asks for an fsync after an append, a thread that may wait for the disk does it, with no lock of
the shard held; what waits for it is treated as not committed until then.
"""

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kavka.broker.waiting.purgatory import DelayedOperation
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.storage.append_result import Origin
from kavka.storage.log_validator import CheckedBatch

if TYPE_CHECKING:
    from kavka.broker.partitions.partition import Partition
    from kavka.broker.partitions.role import PartitionRole
    from kavka.broker.waiting.purgatory import Purgatory

REQUIRED_ACKS: Final = -1
LATEST_PRODUCE_VERSION: Final = 11

_NO_PRODUCER: Final = (-1, -1, -1)
"""Id, epoch, sequence."""
_new_tuple: Final = tuple.__new__

log = logging.getLogger(__name__)


class CoordinatedLog:
    """Implements `kavka.coordinator.ports.InternalLog` over a partition that this broker leads.

    Threads: any. `_gate` guards `_is_flushing`: a flush is under way, or about to be; there is one at a time.
    """

    __slots__ = (
        "__weakref__",
        "_execute",
        "_gate",
        "_is_flushing",
        "_now_ms",
        "_purgatory",
        "_timeout_ms",
        "partition",
    )

    def __init__(
        self,
        partition: "Partition",
        purgatory: "Purgatory",
        now_ms: Callable[[], int],
        timeout_ms: Callable[[], float],
        execute: Callable[[Callable[[], None]], None],
    ) -> None:
        """`execute` runs a piece of work soon, on a thread that may wait for the disk."""
        self.partition: Final = partition
        self._execute = execute
        self._gate = threading.Lock()
        self._is_flushing = False
        self._purgatory = purgatory
        self._now_ms = now_ms
        self._timeout_ms = timeout_ms

    def append(self, batch: bytearray, leader_epoch: int, transaction_version: int = 0, guard: int = 0) -> int:
        """See InternalLog."""
        partition = self.partition
        role = partition.role
        if role.leader_epoch != leader_epoch:
            leader_epoch = self._epoch_since(leader_epoch, role)
        result = partition.append(
            memoryview(batch),
            REQUIRED_ACKS,
            LATEST_PRODUCE_VERSION,
            self._now_ms(),
            Origin.COORDINATOR,
            guard=guard,
            transaction_version=transaction_version,
            leader_epoch=leader_epoch,
        )
        return result.last_offset + 1

    def append_plain(self, batch: bytearray, leader_epoch: int, records: int, timestamp_ms: int) -> int:
        """See InternalLog."""
        partition = self.partition
        role = partition.role
        if role.leader_epoch != leader_epoch:
            leader_epoch = self._epoch_since(leader_epoch, role)
        built = _new_tuple(CheckedBatch, (len(batch), 0, records - 1, timestamp_ms, *_NO_PRODUCER))
        data = memoryview(batch)
        result = partition.append(
            data,
            REQUIRED_ACKS,
            LATEST_PRODUCE_VERSION,
            timestamp_ms,
            Origin.COORDINATOR,
            built=built,
            leader_epoch=leader_epoch,
        )
        return result.last_offset + 1

    def appended(self) -> None:
        """See InternalLog."""
        self.partition.appended()
        source = self.partition.log
        if source is not None and source.flushes_by_count:
            self._flush_soon()

    def when_committed(
        self, end_offset: int, done: Callable[[BrokerError | None], object], leader_epoch: int | None = None
    ) -> None:
        """See InternalLog; REQUEST_TIMED_OUT after the time that a commit may take.

        `leader_epoch`: from before the append, if the partition may be led in another one by now.
        """
        waiting = _AwaitedCommit(self, end_offset, done, leader_epoch)
        self._purgatory.park(waiting, [self.partition.high_watermark_moved], self._timeout_ms())
        if not self._flush_soon():
            # What was due when it was parked may have been flushed since by somebody who wakes nobody: the flush by
            # time, that of a segment that is full, or a compaction's.
            waiting.try_complete()

    def read(self, offset: int, max_bytes: int) -> bytes:
        """See InternalLog."""
        source = self.partition.leader_log()
        try:
            return source.read(offset, max_bytes, min_one=True, end_offset=source.log_end_offset).read_bytes()
        except OSError as failure:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, str(failure)) from failure

    @property
    def start_offset(self) -> int:
        """See InternalLog. Raises BrokerError if the broker no longer leads the partition."""
        return self.partition.leader_log().log_start_offset

    @property
    def end_offset(self) -> int:
        """See InternalLog. Raises BrokerError if the broker no longer leads the partition."""
        return self.partition.leader_log().log_end_offset

    @property
    def high_watermark(self) -> int:
        """See InternalLog; -1 where the log is gone, so that nothing counts as committed.

        Nor does what waits for the fsync that was asked for.
        """
        source = self.partition.log
        if source is None or source.deleting:
            return -1
        if source.flushes_by_count and source.is_flush_due:
            return min(source.high_watermark, source.recovery_point)
        return source.high_watermark

    def _epoch_since(self, leader_epoch: int, role: "PartitionRole") -> int:
        """The epoch to append in, if this broker has led since that one: then the coordinator hears of it soon.

        Raises BrokerError NOT_LEADER_OR_FOLLOWER if it has not: others may have written meanwhile.
        """
        if leader_epoch <= role.leader_epoch and role.has_led_since(leader_epoch):
            return role.leader_epoch
        partition = self.partition
        raise BrokerError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            f"{partition.topic}-{partition.index} has leader epoch {role.leader_epoch}, not {leader_epoch}",
        )

    def _flush_soon(self) -> bool:
        """Whether a flush begins by that."""
        begins = self._begin_flushing()
        if begins:
            self._execute(self._flush)
        return begins

    def _begin_flushing(self) -> bool:
        """Whether a flush is due that nobody else sees to; who is told so does it."""
        source = self.partition.log
        if source is None or not source.is_flush_due:
            return False
        with self._gate:
            if self._is_flushing:
                return False
            self._is_flushing = True
        return True

    def _flush(self) -> None:
        """What was appended by now becomes durable; what comes meanwhile has a flush of its own."""
        while self._flush_once():
            self.partition.appended()
            if not self._begin_flushing():
                return
        # Whoever waits for a log that is being deleted need not wait longer.
        self.partition.appended()

    def _flush_once(self) -> bool:
        """Whether that got anywhere: a log that is closed, or being deleted, is not flushed, however due it is."""
        partition = self.partition
        source = partition.log
        try:
            if source is None:
                return False
            before = source.recovery_point
            if source.is_flush_due:
                source.flush()
            return source.recovery_point > before or not source.is_flush_due
        except BrokerError as failure:
            # It is in the log, and readers see it; but nobody is told so. A log whose fsync failed is given up.
            log.error(
                "appended, but not flushed topic=%s partition=%d error=%r",
                partition.topic,
                partition.index,
                str(failure),
            )
            return False
        finally:
            with self._gate:
                self._is_flushing = False


class _AwaitedCommit(DelayedOperation):
    """Waits for the high watermark under the leadership that appended."""

    __slots__ = ("_coordinated", "_done", "_end_offset", "_leader_epoch", "_partition")

    def __init__(
        self,
        coordinated: CoordinatedLog,
        end_offset: int,
        done: Callable[[BrokerError | None], object],
        leader_epoch: int | None,
    ) -> None:
        super().__init__()
        self._coordinated = coordinated
        self._partition = coordinated.partition
        self._leader_epoch = self._partition.role.leader_epoch if leader_epoch is None else leader_epoch
        self._end_offset = end_offset
        self._done = done

    def is_satisfied(self) -> bool:
        return not self._leads() or self._coordinated.high_watermark >= self._end_offset

    def respond(self) -> None:
        partition = self._partition
        # In this order: while this broker has led since then, no other leader has moved the high watermark.
        high_watermark = self._coordinated.high_watermark
        if not self._leads():
            self._done(BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        elif high_watermark < self._end_offset:
            self._done(BrokerError(ErrorCode.REQUEST_TIMED_OUT))
        elif not partition.has_enough_copies:
            self._done(BrokerError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND))
        else:
            self._done(None)

    def _leads(self) -> bool:
        partition = self._partition
        source = partition.log
        has_log = source is not None and not source.deleting
        return has_log and partition.role.has_led_since(self._leader_epoch)
