"""A partition as a coordinator's log: appends of the coordinator's own, and waits for the high watermark."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kavka.broker.purgatory import DelayedOperation
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.storage.appending import Origin, UnflushedError

if TYPE_CHECKING:
    from kavka.broker.partition import Partition
    from kavka.broker.purgatory import Purgatory

REQUIRED_ACKS: Final = -1
LATEST_PRODUCE_VERSION: Final = 11

log = logging.getLogger(__name__)


class CoordinatedLog:
    """Implements `kavka.coordinator.ports.InternalLog` over a partition that this broker leads.

    Threads: any; it has no state of its own.
    """

    __slots__ = ("_now_ms", "_purgatory", "_timeout_ms", "partition")

    def __init__(
        self,
        partition: "Partition",
        purgatory: "Purgatory",
        now_ms: Callable[[], int],
        timeout_ms: Callable[[], float],
    ) -> None:
        self.partition: Final = partition
        self._purgatory = purgatory
        self._now_ms = now_ms
        self._timeout_ms = timeout_ms

    def append(self, batch: bytearray, leader_epoch: int, transaction_version: int = 0) -> int:
        """See InternalLog."""
        partition = self.partition
        if partition.leader_epoch != leader_epoch:
            raise BrokerError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"{partition.topic}-{partition.index} has leader epoch {partition.leader_epoch}, not {leader_epoch}",
            )
        try:
            result = partition.append(
                memoryview(batch),
                REQUIRED_ACKS,
                LATEST_PRODUCE_VERSION,
                self._now_ms(),
                Origin.COORDINATOR,
                transaction_version=transaction_version,
            )
        except UnflushedError as failure:
            # It is in the log, and whoever reads the log will see it: taking it for failed would be wrong for good.
            log.error(
                "appended, but not flushed topic=%s partition=%d error=%r",
                partition.topic,
                partition.index,
                str(failure),
            )
            return self.end_offset
        return result.last_offset + 1

    def appended(self) -> None:
        """See InternalLog."""
        self.partition.appended()

    def when_committed(self, end_offset: int, done: Callable[[BrokerError | None], None]) -> None:
        """See InternalLog; REQUEST_TIMED_OUT after the time that a commit may take."""
        waiting = _AwaitedCommit(self.partition, end_offset, done)
        self._purgatory.park(waiting, [self.partition.high_watermark_moved], self._timeout_ms())

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
        """See InternalLog; -1 where the log is gone, so that nothing counts as committed."""
        source = self.partition.log
        return -1 if source is None else source.high_watermark


class _AwaitedCommit(DelayedOperation):
    """Waits for the high watermark under the leadership that appended."""

    __slots__ = ("_done", "_end_offset", "_leader_epoch", "_partition")

    def __init__(self, partition: "Partition", end_offset: int, done: Callable[[BrokerError | None], None]) -> None:
        super().__init__()
        self._partition = partition
        self._leader_epoch = partition.leader_epoch
        self._end_offset = end_offset
        self._done = done

    def is_satisfied(self) -> bool:
        source = self._partition.log
        return source is None or source.high_watermark >= self._end_offset or not self._leads()

    def respond(self) -> None:
        partition = self._partition
        source = partition.log
        if source is None or not self._leads():
            self._done(BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        elif source.high_watermark < self._end_offset:
            self._done(BrokerError(ErrorCode.REQUEST_TIMED_OUT))
        elif partition.is_under_min_isr:
            self._done(BrokerError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND))
        else:
            self._done(None)

    def _leads(self) -> bool:
        return self._partition.is_leader and self._partition.leader_epoch == self._leader_epoch
