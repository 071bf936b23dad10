"""What time does: transactions that last too long are aborted, ids that nobody uses are forgotten."""

from collections.abc import Callable, Iterator
from typing import Final

from kavka.coordinator.runtime.result import NOTHING, Result
from kavka.coordinator.transaction.completion import Completion
from kavka.coordinator.transaction.metadata import NO_PRODUCER_ID, VERSION_2, TransactionMetadata, tombstone_of
from kavka.coordinator.transaction.ports import ProducerIdWanted
from kavka.coordinator.transaction.states import AT_REST, TransactionState
from kavka.coordinator.transaction.table import TransactionTable

DECIDED_FOR_LONG_MS: Final = 10_000
EXPIRED_PER_APPEND: Final = 500
EXPIRED_BYTES_PER_APPEND: Final = 256 * 1024
TRANSACTIONS_TIMED_OUT: Final = "kavka_transaction_coordinator_timed_out"
IDS_EXPIRED: Final = "kavka_transaction_coordinator_expired_ids"


class Timeouts:
    """The clocks of one shard. Under its lock."""

    def __init__(self, table: TransactionTable) -> None:
        self._table: Final = table
        self._completion: Final = Completion(table)

    def start(self) -> None:
        """Look regularly from now on."""
        self._look_for_late_soon()
        self._look_for_unused_soon()

    def _look_for_late_soon(self) -> None:
        context = self._table.context
        interval_ms = context.config.transaction_abort_timed_out_transaction_cleanup_interval_ms
        context.timers.schedule("late transactions", interval_ms, self._abort_late)

    def _abort_late(self) -> Result:
        """Each in an operation of its own: what fails for one must not keep the others."""
        # First of all, so that whatever goes wrong below goes wrong this once.
        self._look_for_late_soon()
        table = self._table
        now_ms = table.context.now_ms()
        for transactional_id, transaction in table.ongoing.items():
            if _is_late(transaction, now_ms):
                table.context.timers.schedule(("late", transactional_id), 0, self._aborting(transactional_id))
        decided_ms = table.context.monotonic_ms() - DECIDED_FOR_LONG_MS
        for transaction, since_ms in table.decided.values():
            if since_ms <= decided_ms:
                self._completion.nudge(transaction)
        return NOTHING

    def _aborting(self, transactional_id: str) -> Callable[[], Result]:
        return lambda: self.abort(transactional_id)

    def abort(self, transactional_id: str, spare_id: int = NO_PRODUCER_ID) -> Result:
        """Abort it with an epoch that its producer doesn't know, which fences the producer.

        `spare_id`: a producer id of which nobody knows yet, once one was needed.
        """
        table = self._table
        now_ms = table.context.now_ms()
        transaction = table.transactions.get(transactional_id)
        if transaction is None or not _is_late(transaction, now_ms) or transactional_id in table.waiting:
            return NOTHING
        if not transaction.is_exhausted:
            spare_id = NO_PRODUCER_ID
        elif spare_id == NO_PRODUCER_ID:
            return self._want_id(transactional_id)
        now = transaction.prepare_end(False, VERSION_2, now_ms, spare_id)
        result = self._completion.decide(transaction, now, _nobody, None)
        decided = result.appended

        def appended() -> Result | None:
            table.context.count(TRANSACTIONS_TIMED_OUT)
            return None if decided is None else decided()

        result.appended = appended
        result.failed = lambda _error: None
        return result

    def _want_id(self, transactional_id: str) -> Result:
        return self._table.wait_for_producer_id(
            ProducerIdWanted(
                self._table.context.partition,
                transactional_id,
                lambda table, producer_id: Timeouts(table).abort(transactional_id, producer_id),
                # It is as late when it is looked at next.
                _nobody,
            )
        )

    def _look_for_unused_soon(self) -> None:
        context = self._table.context
        interval_ms = context.config.transaction_remove_expired_transaction_cleanup_interval_ms
        context.timers.schedule("unused ids", interval_ms, self._expire_unused)

    def _expire_unused(self) -> Result:
        self._look_for_unused_soon()
        unused_since_ms = self._unused_since_ms()
        expired = [each for each in self._table.transactions.values() if self._is_unused(each, unused_since_ms)]
        return self._forget(iter(expired))

    def _unused_since_ms(self) -> int:
        context = self._table.context
        return context.now_ms() - context.config.transactional_id_expiration_ms

    def _is_unused(self, transaction: TransactionMetadata, since_ms: int) -> bool:
        return (
            transaction.state in AT_REST
            and transaction.last_update_ms <= since_ms
            and transaction.transactional_id not in self._table.waiting
        )

    def _forget(self, expired: Iterator[TransactionMetadata]) -> Result:
        """One append's worth of them; the rest when others have had their turn, unless it is used again by then."""
        context = self._table.context
        unused_since_ms = self._unused_since_ms()
        batch: list[str] = []
        size_bytes = 0
        for transaction in expired:
            if not self._is_unused(transaction, unused_since_ms):
                continue
            batch.append(transaction.transactional_id)
            size_bytes += len(transaction.transactional_id) * 4 + 16
            if len(batch) >= EXPIRED_PER_APPEND or size_bytes >= EXPIRED_BYTES_PER_APPEND:
                break
        if not batch:
            return NOTHING

        def appended() -> None:
            for _ in batch:
                context.count(IDS_EXPIRED)
            context.timers.schedule("expired ids", 0, lambda: self._forget(expired))

        return Result(
            [tombstone_of(transactional_id) for transactional_id in batch],
            appended=appended,
            failed=lambda _error: None,
        )


def _is_late(transaction: TransactionMetadata, now_ms: int) -> bool:
    return transaction.state is TransactionState.ONGOING and transaction.start_ms + transaction.timeout_ms < now_ms


def _nobody(_response: object) -> None:
    """Takes the answer to what no client has asked for."""
