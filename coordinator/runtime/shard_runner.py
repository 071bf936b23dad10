"""One shard at work: the lock, the log, and the rule by which a decision is carried out.

    under the shard's lock   decide -> append -> replay -> `appended`
    with no lock held        when the high watermark has passed: the replies

The append is one write to a local file, so it comes before memory changes: a failed append leaves nothing to take back,
and memory never says what the log does not.
"""

import logging
import threading
from collections.abc import Callable, Iterable
from enum import Enum
from functools import partial
from typing import Any, Final, Generic, TypeVar

from kavka.config.broker_config import BrokerConfig
from kavka.config.group_config import GroupConfig
from kavka.coordinator.ports import InternalLog, Shard, Surroundings, Timers, Topics
from kavka.coordinator.runtime.append_errors import told_to_clients
from kavka.coordinator.runtime.batches import batch_of, end_marker
from kavka.coordinator.runtime.replies import Outcome, Refused, send
from kavka.coordinator.runtime.result import NOTHING, Producer, Reply, Result
from kavka.coordinator.runtime.shard_timers import ScheduledOperation, ShardTimers
from kavka.protocol.errors import BrokerError, EncodeError, ErrorCode

S = TypeVar("S", bound=Shard)
T = TypeVar("T")
EndReply = Callable[[BrokerError | None], object]

log = logging.getLogger(__name__)


class ShardState(Enum):
    """Where a shard stands."""

    LOADING = "loading"
    """Its log is being replayed: COORDINATOR_LOAD_IN_PROGRESS."""

    ACTIVE = "active"
    """It serves."""

    FAILED = "failed"
    """Its log could not be replayed; tried again after a while: COORDINATOR_NOT_AVAILABLE."""

    GONE = "gone"
    """Another broker's, or the broker stops: NOT_COORDINATOR."""


class ShardRunner(Generic[S]):
    """One shard of one leadership; another leadership has another one. It is its shard's `ShardContext`.

    Threads: `lock` guards the shard, its timers, `_appended_offset` and `_wrote`; it is held while a batch is appended,
    and never while a reply is given. `shard` is set under it. `gone` and `failed` are set by any thread: once it is
    gone nothing is appended any more. `leader_epoch` grows by one assignment when the broker goes on leading.
    `before`: who had the partition until now, for the loader to let it end what it is at, and those before it.
    """

    def __init__(
        self,
        partition: int,
        leader_epoch: int,
        internal_log: InternalLog,
        surroundings: Surroundings,
        *,
        codec: Callable[[], int],
        broken: "Callable[[ShardRunner[S]], None]",
    ) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.log = internal_log
        self.lock = threading.Lock()
        self.shard: S | None = None
        self.gone = False
        self.failed = False
        self.before: ShardRunner[S] | None = None
        self.now_ms: Final = surroundings.now_ms
        self.monotonic_ms: Final = surroundings.monotonic_ms
        self.count: Final = surroundings.count_event
        self._surroundings = surroundings
        self._codec = codec
        self._broken = broken
        self._timers = ShardTimers(surroundings.delays, lambda: surroundings.execute(self._run_due))
        self._appended_offset = 0
        self._wrote = False

    # What the shard sees.

    @property
    def timers(self) -> Timers:
        return self._timers

    @property
    def topics(self) -> Topics:
        return self._surroundings.topics

    @property
    def config(self) -> BrokerConfig:
        return self._surroundings.config()

    @property
    def group_config(self) -> Callable[[str], GroupConfig]:
        return self._surroundings.group_config

    # What the runtime does with it.

    @property
    def state(self) -> ShardState:
        """Any thread; it may change at any time."""
        if self.gone:
            return ShardState.GONE
        if self.shard is not None:
            return ShardState.ACTIVE
        return ShardState.FAILED if self.failed else ShardState.LOADING

    def run(self, operation: Callable[[S], Result], refused: Refused) -> None:
        """Carry out what `operation` decides. No lock may be held. Raises what the operation raises, if no BrokerError.

        `refused(error)` is called, without the lock, if the operation raises BrokerError, if the shard does not serve,
        or if records can't be appended and the Result has no `failed`.
        """
        carried = _Carried()
        if self.shard is None or self.gone:
            refused(self._refusal())
            return
        with self.lock:
            shard = self.shard
            if shard is None or self.gone:
                carried.error = self._refusal()
            else:
                self._wrote = False
                try:
                    self._carry_out(operation(shard), carried)
                except BrokerError as error:
                    carried.error = error
                except Exception as failure:
                    if not carried.replies:
                        raise
                    # Of what was decided before, memory says that it is answered.
                    log.exception("what followed a decision failed partition=%d", self.partition)
                    carried.error = BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, str(failure))
                carried.wrote = self._wrote
        self._deliver(carried, refused)

    def run_at_once(self, operation: Callable[[S], Result]) -> int | None:
        """Carry out a decision of records alone: the offset that the high watermark must reach before it is answered.

        No lock may be held. Raises what the operation raises, if no BrokerError; that is None, as is any refusal. Says
        nothing of an append that fails: `run` is next, and meets it again.
        """
        with self.lock:
            shard = self.shard
            if shard is None or self.gone:
                return None
            self._wrote = False
            try:
                stands = self._append(operation(shard)) is None
            except BrokerError:
                stands = False
            wrote, end_offset = self._wrote, self._appended_offset
        if wrote:
            self._wake()
        return end_offset if stands else None

    def ask(self, operation: Callable[[S], T]) -> T | None:
        """What the shard says at once, with nothing to write; None if it does not serve.

        No lock may be held. Raises what the operation raises.
        """
        with self.lock:
            shard = self.shard
            return None if shard is None or self.gone else operation(shard)

    def end_transaction(
        self,
        producer: Producer,
        coordinator_epoch: int,
        committed: bool,
        reply: EndReply,
        transaction_version: int = 0,
        is_withdrawn: Callable[[], bool] | None = None,
    ) -> None:
        """Append the marker that ends a producer's transaction, and have the shard take it in, unless withdrawn."""

        def end(shard: S) -> Result:
            if is_withdrawn is not None and is_withdrawn():
                raise BrokerError(ErrorCode.NOT_COORDINATOR, "the marker was withdrawn, others may stand by now")
            marker = end_marker(producer, coordinator_epoch, self.now_ms(), committed=committed)
            try:
                self._write(marker, transaction_version=transaction_version)
            except BrokerError as error:
                self._tell_failed_append(error)
                raise
            try:
                shard.replay_end_marker(producer.producer_id, producer.producer_epoch, committed)
            except Exception as failure:
                raise self._broke(failure) from failure
            return Result(replies=[(reply, None)], reads_committed=True)

        self.run(end, reply)

    def activate(self, shard: S) -> None:
        """Everything has been replayed: serve."""
        carried = _Carried()
        with self.lock:
            if self.gone:
                return
            # First, for it may raise: then nobody is served by a shard that has not begun.
            self._appended_offset = self.log.end_offset
            self.shard = shard
            self.failed = False
            self._wrote = False
            try:
                self._carry_out(shard.loaded(), carried)
            except BrokerError as error:
                carried.error = error
            except Exception:
                # Half begun it serves nobody: it is loaded anew.
                self.shard = None
                self._timers.cancel_all()
                raise
            carried.wrote = self._wrote
        self._deliver(carried, self._nobody_waits)
        self._run_due()

    def retire(self) -> None:
        """Serve no more: timers end, and what waits is answered. No lock may be held."""
        self.gone = True
        replies: Iterable[tuple[Reply, Any]] = ()
        with self.lock:
            self._timers.cancel_all()
            shard, self.shard = self.shard, None
            if shard is not None:
                replies = shard.unloaded().replies
        send(replies)

    # How a decision is carried out. Under the lock.

    def _carry_out(self, result: Result | None, carried: "_Carried") -> None:
        """The result, and those that follow from it."""
        while result is not None:
            error = self._append(result) if result.records else None
            if error is not None:
                self._tell_failed_append(error)
            if error is None:
                if result.replies:
                    waits = result.records or result.reads_committed
                    carried.replies.append((self._appended_offset if waits else 0, result))
                result = None if result.appended is None else self._after_append(result.appended)
            elif result.failed is not None:
                result = result.failed(error)
            else:
                carried.error = error
                return

    def _append(self, result: Result) -> BrokerError | None:
        """Append and replay; the error if nothing could be appended. Raises BrokerError where the replay fails."""
        records = result.records
        try:
            if result.batch is not None:
                self._write_plain(result.batch, len(records), result.batch_timestamp_ms)
            else:
                batch = batch_of(records, self.now_ms(), codec=self._codec(), producer=result.producer)
                self._write(batch, guard=result.guard)
        except BrokerError as error:
            return error
        except EncodeError as failure:
            log.exception("records cannot be written partition=%d", self.partition)
            return BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, str(failure))
        if result.replays and self.shard is not None:
            offset = self._appended_offset - len(records)
            replay = self.shard.replay
            try:
                for record in records:
                    replay(record, offset, result.producer)
                    offset += 1
            except Exception as failure:
                raise self._broke(failure) from failure
        return None

    def _write(self, batch: bytearray, *, transaction_version: int = 0, guard: int = 0) -> None:
        """Raises BrokerError as clients are to be told."""
        if self.gone:
            raise BrokerError(ErrorCode.NOT_COORDINATOR)
        try:
            self._appended_offset = self.log.append(batch, self.leader_epoch, transaction_version, guard)
        except BrokerError as error:
            raise told_to_clients(error) from error
        self._wrote = True

    def _write_plain(self, batch: bytearray, records: int, timestamp_ms: int) -> None:
        """As `_write`."""
        if self.gone:
            raise BrokerError(ErrorCode.NOT_COORDINATOR)
        try:
            self._appended_offset = self.log.append_plain(batch, self.leader_epoch, records, timestamp_ms)
        except BrokerError as error:
            raise told_to_clients(error) from error
        self._wrote = True

    def _tell_failed_append(self, error: BrokerError) -> None:
        # What the log said; a shard that is gone has not asked it.
        if isinstance(error.__cause__, BrokerError):
            log.warning("an append failed partition=%d error=%r", self.partition, str(error.__cause__))

    def _after_append(self, appended: Callable[[], Result | None]) -> Result | None:
        try:
            return appended()
        except BrokerError:
            raise
        except Exception as failure:
            raise self._broke(failure) from failure

    def _broke(self, failure: Exception) -> BrokerError:
        """Memory is not what the log says, by a mistake of ours: load it anew."""
        log.critical("a shard is broken, its log is loaded anew partition=%d", self.partition, exc_info=failure)
        self.gone = True
        self._surroundings.execute(partial(self._broken, self))
        return BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, "the coordinator's state had to be loaded anew")

    # With no lock held.

    def _deliver(self, carried: "_Carried", refused: Refused) -> None:
        if carried.wrote:
            self._wake()
        for end_offset, result in carried.replies:
            if end_offset <= self.log.high_watermark:
                send(result.replies)
            else:
                self._send_when_committed(end_offset, result, refused)
        if carried.error is not None:
            (self._nobody_waits if carried.replies else refused)(carried.error)

    def _wake(self) -> None:
        try:
            self.log.appended()
        except Exception:
            # Not the fault of those who are to be answered; and memory may count on it that they are.
            log.exception("those who wait for a log's end were not woken partition=%d", self.partition)

    def _send_when_committed(self, end_offset: int, result: Result, refused: Refused) -> None:
        outcome = Outcome(result, refused)
        try:
            self.log.when_committed(end_offset, outcome)
        except Exception as failure:
            log.exception("nobody waits for the high watermark partition=%d", self.partition)
            outcome(BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, str(failure)))

    def _refusal(self) -> BrokerError:
        return BrokerError(_REFUSALS.get(self.state, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))

    def _nobody_waits(self, error: BrokerError) -> None:
        log.warning("an operation of the coordinator failed partition=%d error=%r", self.partition, str(error))

    def _run_due(self) -> None:
        """Carry out the timers' operations whose time has come, each under the lock by itself."""
        while self.shard is not None and not self.gone and not self._timers.rest():
            taken: list[ScheduledOperation] = []
            try:
                self.run(partial(self._due_operation, taken), self._nobody_waits)
            except Exception:
                log.exception("a timer of the coordinator failed partition=%d", self.partition)
                with self.lock:
                    if self.shard is not None and taken:
                        self._timers.failed(taken[0])

    def _due_operation(self, taken: list[ScheduledOperation], _shard: S) -> Result:
        due = self._timers.next_due()
        if due is None:
            return NOTHING
        taken.append(due)
        try:
            return due.operation()
        except BrokerError:
            self._timers.failed(due)
            raise


class _Carried:
    """What is left to do when the lock is free again."""

    __slots__ = ("error", "replies", "wrote")

    def __init__(self) -> None:
        self.replies: list[tuple[int, Result]] = []
        """(the offset that the high watermark must have reached, whose replies are sent then)"""
        self.error: BrokerError | None = None
        self.wrote = False


_REFUSALS: Final = {
    ShardState.LOADING: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ShardState.FAILED: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ShardState.GONE: ErrorCode.NOT_COORDINATOR,
}
