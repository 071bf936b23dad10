"""Transactions of a producer: what it may do when, and what is asked of coordinators for it (KIP-98, KIP-360, KIP-890).

    UNINITIALIZED -> INITIALIZING -> READY -> IN_TRANSACTION -> COMMITTING | ABORTING -> READY
                                                      |               |
                                            ABORTABLE_ERROR <---------+      ABORTABLE_ERROR -> ABORTING
    FATAL_ERROR from everywhere, for good

In the second version of transactions partitions and groups join by produce and offset commit themselves, and each end
gives the next epoch; in the first they are added before, and the epoch goes up only after errors.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from kavka.client.api_errors import (
    AbortableError,
    ClusterAuthorizationError,
    FatalError,
    InvalidTxnStateError,
    KafkaError,
)
from kavka.client.backoff import ExponentialBackoff
from kavka.client.consumer.group.port import ConsumerGroupMetadata, OffsetAndMetadata
from kavka.client.coordinators import Coordinators
from kavka.client.network_port import NetworkPort
from kavka.client.node import Node
from kavka.client.producer.accumulator import FOREVER_MS, RecordAccumulator
from kavka.client.producer.batch import ProducerBatch
from kavka.client.producer.errors import TransactionAbortedError, TransactionStateError
from kavka.client.producer.sequences import NOBODY, Identity, Sequences
from kavka.client.producer.transaction_calls import State, TransactionCalls, abortable_error
from kavka.client.producer.transaction_queue import RequestQueue
from kavka.client.producer.transaction_requests import (
    AddOffsets,
    AddPartitions,
    CommitOffsets,
    EndTransaction,
    InitProducerId,
    Meaning,
    Result,
    TransactionRequest,
    Verdict,
    verdict_of,
)
from kavka.client.topic_partition import TopicPartition

FIRST_PARTITIONS_BACKOFF_MS: Final = 20.0
"""Until the coordinator has ended the transaction before, it answers CONCURRENT_TRANSACTIONS; that is soon."""

log = logging.getLogger(__name__)


class TransactionSettings(NamedTuple):
    """Of Kafka's settings those of transactions. Immutable."""

    transactional_id: str
    timeout_ms: int = 60_000


_ENDING: Final = (State.COMMITTING, State.ABORTING)
_OPEN: Final = (State.IN_TRANSACTION, State.ABORTABLE_ERROR)


class Transactions(TransactionCalls):
    """A producer's transactions (a ProducerIds).

    Threads: calls of the user's on any; `work`, answers and the rest of ProducerIds on the client's thread. `_lock`
    guards all.
    """

    def __init__(
        self,
        settings: TransactionSettings,
        accumulator: RecordAccumulator,
        network: NetworkPort,
        coordinators: Coordinators,
        backoff: ExponentialBackoff,
        now_ms: Callable[[], float],
    ) -> None:
        self._id: Final = settings.transactional_id
        self._timeout_ms: Final = settings.timeout_ms
        self._accumulator: Final = accumulator
        super().__init__(network)
        self._coordinators: Final = coordinators
        self._backoff: Final = backoff
        self._now_ms: Final = now_ms
        self._queue: Final = RequestQueue(self._id, network, coordinators, self._heard)
        self.sequences: Final = Sequences(transactional=True)
        self._seen: set[TopicPartition] = set()
        self._new: set[TopicPartition] = set()
        self._added: set[TopicPartition] = set()
        self._has_started = False
        """Whether the coordinator knows of a transaction, or may."""
        self._is_start_in_doubt = False
        """Whether it is not known, as what would have begun it had no answer that says."""
        self._is_v2 = False
        self._bump_after_end = False
        self._is_hurrying = False
        self._is_closing = False
        self._aborted_by_ms = FOREVER_MS

    # The user's calls ------------------------------------------------------------------------------------------------

    def initialize(self) -> Result:
        """Ask for the id and epoch of the transactional id."""

        def begin() -> Result:
            self._move(State.INITIALIZING, "init_transactions", State.UNINITIALIZED)
            request = InitProducerId(self._id, Result(), self._timeout_ms, NOBODY, is_bump=False)
            self._queue.put(request)
            return request.result

        return self._call("init_transactions", begin)

    def add(self, partition: TopicPartition) -> None:
        """A record was put into a batch of this partition, which so takes part."""
        if partition in self._seen:
            return
        with self._lock:
            # After an error the batch fails with it: the record is in there, so that nobody else is to tell of it.
            if self._error is None:
                self._seen.add(partition)
                if self._is_v2:
                    self._added.add(partition)
                    self._has_started = True
                else:
                    self._new.add(partition)
        self._network.wakeup()

    def send_offsets(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata) -> Result:
        """Have a group's offsets take part."""

        def begin() -> Result:
            self._raise_error()
            if self._state is not State.IN_TRANSACTION:
                raise TransactionStateError(f"offsets need an open transaction: {self._state.value}")
            commit = CommitOffsets(self._id, offsets, group, Result(), is_v2=self._is_v2)
            if self._is_v2:
                self._has_started = True
                self._queue.put(commit)
            else:
                self._queue.put(AddOffsets(self._id, commit))
            return commit.result

        return self._call("send_offsets_to_transaction", begin, (dict(offsets), group))

    def commit(self) -> Result:
        """End the transaction, so that it counts."""

        def begin() -> Result:
            self._raise_error()
            self._move(State.COMMITTING, "commit_transaction", State.IN_TRANSACTION)
            return self._end(commits=True)

        return self._call("commit_transaction", begin)

    def abort(self) -> Result:
        """End the transaction, so that it never counts."""
        return self._call("abort_transaction", self._begin_abort)

    # ProducerIds, on the client's thread -----------------------------------------------------------------------------

    is_settled: Final = False
    """Partitions join, and offsets, before or beside each batch."""

    @property
    def may_send_any(self) -> bool:
        """Whether batches may go out at all."""
        return self._state is not State.FATAL_ERROR

    @property
    def is_fatal(self) -> bool:
        """Whether the producer is of no use any more."""
        return self._state is State.FATAL_ERROR

    @property
    def is_transaction_v2(self) -> bool:
        """Whether produce requests add their partitions by themselves."""
        return self._is_v2

    @property
    def is_idle(self) -> bool:
        """Whether no transaction is open, or its coordinator has aborted it by itself meanwhile."""
        return self._state not in (*_OPEN, *_ENDING) or self._now_ms() >= self._aborted_by_ms

    def may_send(self, partition: TopicPartition, batch: ProducerBatch) -> bool:
        """Whether the partition takes part by now, and the batch is next there."""
        return partition in self._added and self.sequences.may_send(partition, batch)

    def batch_failed(self, error: KafkaError) -> None:
        """The transaction lacks records: it cannot be committed. One that was over by then is no reason to give up."""
        with self._lock:
            is_state = isinstance(error, InvalidTxnStateError)
            if isinstance(error, FatalError | ClusterAuthorizationError) and not is_state:
                self._fatal(error)
            else:
                # Brokers before 2.5 give no next epoch. The sequences have moved up; what may have been appended, and
                # has no outcome, is another matter (see `work`).
                self._abortable(error, needs_bump=self._queue.can_bump())

    def work(self, now_ms: float) -> float:
        """Fail what has no hope, and send the next request; how long until there is more to do."""
        with self._lock:
            for _ in self.sequences.resolve():
                lost = "records were given up that may have been written; the transaction can only be aborted"
                self._abortable(AbortableError(lost), needs_bump=True)
            doom = self._doom()
        if doom is not None:
            # Not under the lock: their callbacks may wait for who waits for it.
            self._accumulator.abort(doom, unsent_only=self._state is not State.FATAL_ERROR)
        with self._lock:
            if self._state is State.FATAL_ERROR:
                return FOREVER_MS
            if self._is_closing and self._state in _OPEN and not self._accumulator.incomplete:
                self._begin_abort()
            self._hurry(self._state in _ENDING)
            wait_ms = self._send_next(now_ms)
            left_ms = self._aborted_by_ms - now_ms
            return min(wait_ms, self._coordinators.work(now_ms), left_ms if left_ms > 0 else FOREVER_MS)

    def _doom(self) -> KafkaError | None:
        """What records that wait are to fail with, if they are; requests that wait fail with it."""
        if self._state is State.ABORTING:
            return TransactionAbortedError("its transaction was aborted")
        if self._state in (State.FATAL_ERROR, State.ABORTABLE_ERROR):
            assert self._error is not None
            self._queue.fail(self._error)
            return self._error
        return None

    def closing(self) -> None:
        """Abort what is open, once all records have an outcome; no longer than the coordinator waits for that."""
        self._is_closing = True
        self._aborted_by_ms = self._now_ms() + self._timeout_ms

    def closed(self, error: KafkaError) -> None:
        """Fail who waits."""
        with self._lock:
            self._state, self._error = State.FATAL_ERROR, self._error or error
            self._queue.fail(error)
            if self._queue.in_flight is not None:
                self._queue.in_flight.result.done(error)

    # States ----------------------------------------------------------------------------------------------------------

    def _abortable(self, error: KafkaError, *, needs_bump: bool) -> None:
        is_aborting = self._state is State.ABORTING
        if self._state is State.FATAL_ERROR:
            return
        if needs_bump and not self._is_v2:
            if self._queue.can_bump():
                # While it is aborted, too: otherwise the next transaction's sequences would be out of order.
                self._bump_after_end = True
            elif not is_aborting:
                self._fatal(error)
                return
        if is_aborting:
            return
        if self._error is None:
            log.info("the transaction can only be aborted id='%s' error=%r", self._id, str(error))
            self._error = error if isinstance(error, AbortableError) else abortable_error(error)
        self._state = State.ABORTABLE_ERROR

    def _fatal(self, error: KafkaError) -> None:
        if self._state is not State.FATAL_ERROR:
            log.error("the producer cannot go on id='%s' error=%r", self._id, str(error))
            self._state = State.FATAL_ERROR
            self._error = error

    def _begin_abort(self) -> Result:
        if self._state is State.FATAL_ERROR:
            self._raise_error()
        self._move(State.ABORTING, "abort_transaction", *_OPEN)
        self._error = None
        self._new.clear()
        return self._end(commits=False)

    def _end(self, *, commits: bool) -> Result:
        """Ask for the end; what is waited for is that, and the next epoch where it is needed."""
        if self._new:
            self._queue.put(AddPartitions(self._id, self._new))
            self._new.clear()
        end = EndTransaction(self._id, Result(), commits=commits, is_v2=self._is_v2)
        self._queue.put(end)
        self._bump_after_end = self._bump_after_end or (not self._is_v2 and self._queue.is_v2_served(self._is_v2))
        return end.result

    def _ended(self, end: TransactionRequest, known: Identity) -> None:
        """Nothing is open any more: who waits for it goes on, with the epoch after `known` if needed."""
        self._error = None
        self._has_started = self._is_start_in_doubt = False
        for partitions in (self._seen, self._new, self._added):
            partitions.clear()
        if self._bump_after_end:
            self._state = State.INITIALIZING
            self._queue.put(InitProducerId(self._id, end.result, self._timeout_ms, known, is_bump=True))
        else:
            self._state = State.READY
            end.result.done()

    # Requests --------------------------------------------------------------------------------------------------------

    def _send_next(self, now_ms: float) -> float:
        queue = self._queue
        if queue.in_flight is not None:
            return FOREVER_MS
        if self._new and self._state is State.IN_TRANSACTION:
            self._queue.put(AddPartitions(self._id, self._new))
            self._new.clear()
        while (request := queue.first) is not None:
            if isinstance(request, EndTransaction):
                if self._accumulator.incomplete:
                    # An answer will come first.
                    return FOREVER_MS
                if not self._has_started:
                    queue.pop()
                    self._ended(request, self.sequences.identity)
                    continue
            if request.not_before_ms > now_ms:
                return request.not_before_ms - now_ms
            return queue.send_first(self.sequences.identity)
        return FOREVER_MS

    def _heard(self, request: TransactionRequest, node: Node | None, answer: Any) -> None:
        with self._lock:
            verdict = verdict_of(request, answer, is_coordinated=node is not None)
            if verdict.meaning is Meaning.LOST and node is not None:
                self._coordinators.lost(request.kind, request.key, node)
            self._judged(request, verdict, answer)

    def _judged(self, request: TransactionRequest, verdict: Verdict, answer: Any) -> None:
        meaning, error = verdict
        if meaning is Meaning.DONE:
            self._done(request, answer)
            return
        assert error is not None
        if meaning is Meaning.LOST and isinstance(request, AddPartitions | AddOffsets) and not self._has_started:
            # It may have reached the coordinator: then the transaction has to be ended, or the next epoch would fence.
            self._has_started = self._is_start_in_doubt = True
        if meaning in (Meaning.RETRY, Meaning.LOST):
            if self._state in (State.FATAL_ERROR, State.ABORTABLE_ERROR):
                request.result.done(self._error)
                return
            request.attempts += 1
            backoff_ms = self._backoff.delay_ms(request.attempts)
            if isinstance(request, AddPartitions) and not self._added:
                backoff_ms = min(backoff_ms, FIRST_PARTITIONS_BACKOFF_MS)
            request.not_before_ms = self._now_ms() + backoff_ms
            log.debug("again request=%s id='%s' error=%r", type(request).__name__, self._id, str(error))
            self._queue.put(request)
            return
        is_abort = isinstance(request, EndTransaction) and not request.commits
        if is_abort and self._is_start_in_doubt and isinstance(error, InvalidTxnStateError):
            # It had not begun.
            self._ended(request, self.sequences.identity)
            return
        if is_abort and meaning is Meaning.BUMP and self._queue.can_bump():
            self._forget_transaction(request)
            return
        if meaning is Meaning.FATAL or is_abort or isinstance(request, InitProducerId):
            # An abort that cannot be is the end.
            self._fatal(error)
        else:
            self._abortable(error, needs_bump=meaning is Meaning.BUMP)
        request.result.done(self._error or error)

    def _forget_transaction(self, request: TransactionRequest) -> None:
        """The coordinator knows nothing of the producer any more, so that there is nothing to abort: begin anew."""
        self._bump_after_end = True
        self._ended(request, NOBODY)

    def _done(self, request: TransactionRequest, answer: Any) -> None:
        if isinstance(request, InitProducerId):
            self.sequences.reset()
            self.sequences.identified(Identity(answer.producer_id, answer.producer_epoch))
            self._bump_after_end = False
            self._is_v2 = self._queue.is_v2_served(self._is_v2)
            if self._state is State.INITIALIZING:
                self._state = State.READY
        elif isinstance(request, AddPartitions):
            self._added |= request.partitions
            self._has_started, self._is_start_in_doubt = True, False
        elif isinstance(request, AddOffsets):
            self._has_started, self._is_start_in_doubt = True, False
            self._queue.put(request.commit)
            return
        elif isinstance(request, EndTransaction):
            if answer.producer_id >= 0 and self._is_v2:
                self.sequences.reset()
                self.sequences.identified(Identity(answer.producer_id, answer.producer_epoch))
            self._ended(request, self.sequences.identity)
            return
        request.result.done()

    def _hurry(self, wanted: bool) -> None:
        if wanted != self._is_hurrying:
            self._is_hurrying = wanted
            (self._accumulator.hurry if wanted else self._accumulator.calm)()
