"""Carrying out what was decided: markers in all partitions, then the record that says so.

A marker that fails is sent again, later and later, until it stands or has nowhere to stand; but not before it is
answered, or withdrawn: of two that are on their way at once, the slower one would come after the transaction's end, and
end the next one of the same epoch. Leadership may be lost at any step: the shard that loads the decision sends all
markers once more, after those before were withdrawn here, or under a later coordinator epoch. A marker that is there
twice before the transaction is complete does no harm.
"""

import logging
from collections.abc import Iterable
from typing import Final, NamedTuple

from kavka.coordinator.runtime.result import NOTHING, Reply, Result
from kavka.coordinator.transaction.metadata import Dispatch, TransactionMetadata, Transition
from kavka.coordinator.transaction.ports import MarkersWanted
from kavka.coordinator.transaction.states import TransactionState
from kavka.coordinator.transaction.table import TransactionTable
from kavka.protocol.errors import ErrorCode

RETRY_FIRST_MS: Final = 50
RETRY_LONGEST_MS: Final = 1_000
UNANSWERED_MS: Final = 15_000
"""How long markers may take beyond the times that they and their decision may wait for the high watermark."""
MARKERS_RETRIED: Final = "kavka_transaction_coordinator_markers_retried"
MARKERS_DROPPED: Final = "kavka_transaction_coordinator_markers_dropped"

NOWHERE: Final = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)
"""A marker that got this has no place: the partition knows a later epoch or coordinator, or cannot hold transactions,
or is gone (UNKNOWN_TOPIC_ID is what the broker's side says of topics that were deleted). All else is tried again.
"""

log = logging.getLogger(__name__)


class MarkerAnswer(NamedTuple):
    """What a partition's leader says of its marker."""

    topic: str
    partition: int
    code: ErrorCode


class Completion:
    """Sees decided transactions through. Under the shard's lock."""

    def __init__(self, table: TransactionTable) -> None:
        self._table: Final = table

    def decide(self, transaction: TransactionMetadata, now: Transition, reply: Reply, response: object) -> Result:
        """Log the decision, answer, and have the markers written."""
        transactional_id = transaction.transactional_id

        def appended() -> Result:
            self._table.make(transactional_id, now)
            return self._send(transaction) if now.partitions else self._complete(transaction)

        record = self._table.record(transactional_id, now)
        return Result([record], [(reply, response)], replays=False, appended=appended)

    def resumed(self) -> Result:
        """After loading: send the markers of all that was decided, once that is committed.

        The log of a new leader may hold a decision that no other replica has: were its markers out, and this broker
        dead, the next leader would decide otherwise.
        """
        replies: list[tuple[Reply, MarkersWanted]] = []
        for transaction in self._table.transactions.values():
            if not transaction.is_decided:
                continue
            if transaction.unmarked:
                replies.append((self._table.ports.write_markers, self._dispatched(transaction)))
            else:
                self._retry(transaction)
        return self._once_committed(replies)

    def nudge(self, transaction: TransactionMetadata) -> None:
        """A decision that may have nobody to carry it out: its markers could not be sent, and no timer will.

        Markers are always answered. Where they were not by a mistake of ours, they are withdrawn and sent anew.
        """
        context = self._table.context
        if context.timers.is_scheduled(("markers", transaction.transactional_id)):
            return
        dispatch = transaction.dispatch
        if dispatch is not None and not dispatch.is_over:
            config = context.config
            waits_ms = config.request_timeout_ms + config.offsets_commit_timeout_ms
            if context.monotonic_ms() - dispatch.since_ms < waits_ms + UNANSWERED_MS:
                return
            log.error("a transaction's markers were never answered transactional_id=%r", transaction.transactional_id)
        transaction.withdraw_dispatch()
        self._retry(transaction)

    def answered(self, wanted: MarkersWanted, answers: Iterable[MarkerAnswer]) -> Result:
        """See TransactionShard.markers_answered."""
        transaction = self._table.transactions.get(wanted.transactional_id)
        if transaction is None or transaction.dispatch is not wanted.dispatch:
            # An answer that comes late says nothing of the next transaction (KAFKA-16352).
            return NOTHING
        transaction.dispatch = None
        for topic, partition, code in answers:
            if code is ErrorCode.NONE:
                transaction.unmarked.discard((topic, partition))
            elif code in NOWHERE:
                self._drop(transaction, topic, partition, code)
        if not transaction.unmarked:
            return self._complete(transaction)
        self._table.context.count(MARKERS_RETRIED)
        self._retry(transaction)
        return NOTHING

    def _complete(self, transaction: TransactionMetadata) -> Result:
        transactional_id = transaction.transactional_id
        now = transaction.prepare_complete(self._table.context.now_ms())

        def failed(_error: object) -> None:
            self._retry(transaction)

        return Result(
            [self._table.record(transactional_id, now)],
            replays=False,
            appended=lambda: self._table.make(transactional_id, now),
            failed=failed,
        )

    def _retry(self, transaction: TransactionMetadata) -> None:
        delay_ms = min(RETRY_FIRST_MS << min(transaction.attempts, 10), RETRY_LONGEST_MS)
        transaction.attempts += 1
        transactional_id = transaction.transactional_id
        self._table.context.timers.schedule(
            ("markers", transactional_id), delay_ms, lambda: self._try_again(transactional_id)
        )

    def _try_again(self, transactional_id: str) -> Result:
        transaction = self._table.transactions.get(transactional_id)
        if transaction is None or not transaction.is_decided:
            return NOTHING
        if not transaction.unmarked:
            return self._complete(transaction)
        return self._send(transaction)

    def _send(self, transaction: TransactionMetadata) -> Result:
        """Have the markers that are missing written; not before the decision is committed, nor while others are."""
        if transaction.is_dispatched:
            return NOTHING
        return self._once_committed([(self._table.ports.write_markers, self._dispatched(transaction))])

    def _once_committed(self, markers: list[tuple[Reply, MarkersWanted]]) -> Result:
        """Send these when the decisions are committed."""

        def uncommitted(_error: object) -> tuple[()]:
            # Nobody waits for them. They are sent when somebody looks for decisions that take long.
            for _, wanted in markers:
                wanted.dispatch.is_over = True
            return ()

        return Result(replies=markers, reads_committed=True, uncommitted=uncommitted)

    def _drop(self, transaction: TransactionMetadata, topic: str, partition: int, code: ErrorCode) -> None:
        log.warning(
            "a transaction's marker is dropped transactional_id=%r topic=%s partition=%d error=%s",
            transaction.transactional_id,
            topic,
            partition,
            code.name,
        )
        self._table.context.count(MARKERS_DROPPED)
        transaction.unmarked.discard((topic, partition))

    def _dispatched(self, transaction: TransactionMetadata) -> MarkersWanted:
        """The markers that are missing, from now on on their way."""
        context = self._table.context
        transaction.dispatch = dispatch = Dispatch(context.monotonic_ms())
        return MarkersWanted(
            context.partition,
            transaction.transactional_id,
            transaction.producer_id,
            transaction.producer_epoch,
            context.leader_epoch,
            transaction.state is TransactionState.PREPARE_COMMIT,
            transaction.client_transaction_version,
            tuple(sorted(transaction.unmarked)),
            dispatch,
        )
