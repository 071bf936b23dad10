"""EndTxn: commit or abort."""

from typing import Final

from kavka.coordinator.runtime.result import Reply, Result
from kavka.coordinator.transaction.completion import Completion
from kavka.coordinator.transaction.metadata import (
    LAST_CLIENT_EPOCH,
    MAX_EPOCH,
    NO_PRODUCER_ID,
    VERSION_2,
    TransactionMetadata,
    Transition,
)
from kavka.coordinator.transaction.ports import ProducerIdWanted
from kavka.coordinator.transaction.states import END_V1, END_V2, END_V2_AGAIN, ENDED, EndOutcome, EndTable
from kavka.coordinator.transaction.table import TransactionTable
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse


class Ending:
    """Decides how transactions end. Under the shard's lock."""

    def __init__(self, table: TransactionTable) -> None:
        self._table: Final = table
        self._completion: Final = Completion(table)

    def end(self, request: EndTxnRequest, client_version: int, reply: Reply, spare_id: int = NO_PRODUCER_ID) -> Result:
        """Decide; `spare_id` is a producer id of which nobody knows yet, once one was needed."""
        table = self._table
        try:
            transaction, outcome = self._look(request, client_version)
        except BrokerError as refusal:
            return table.answer(reply, refusal.code)
        if outcome is EndOutcome.ENDED_SO and transaction.producer_epoch != MAX_EPOCH:
            return table.answer(reply, _ended(transaction.producer_id, transaction.producer_epoch))
        needs_id = client_version >= VERSION_2 and transaction.is_exhausted
        if needs_id and spare_id == NO_PRODUCER_ID:
            return self._want_id(request, client_version, reply)
        # What has ended at the epoch that is nobody's gets a producer id by an abort of nothing.
        committed = request.committed and outcome is EndOutcome.DECIDE
        now = transaction.prepare_end(
            committed, client_version, table.context.now_ms(), spare_id if needs_id else NO_PRODUCER_ID
        )
        return self._completion.decide(transaction, now, reply, _ended(*_producer_after(now)))

    def _look(self, request: EndTxnRequest, client_version: int) -> tuple[TransactionMetadata, EndOutcome]:
        """The transaction and what becomes of the request. Raises BrokerError."""
        table = self._table
        transaction = table.transactions.get(request.transactional_id)
        if transaction is None:
            raise BrokerError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if client_version >= VERSION_2:
            # Before the producer is compared: it may have gone on already with the epoch, or the id, that is its own
            # only when the transition ends (KAFKA-18464, KAFKA-18660).
            if table.is_busy(transaction):
                raise BrokerError(ErrorCode.CONCURRENT_TRANSACTIONS)
            outcomes = _check_v2(request, transaction)
        else:
            outcomes = _check_v1(request, transaction)
            if table.is_busy(transaction):
                raise BrokerError(ErrorCode.CONCURRENT_TRANSACTIONS)
        outcome = outcomes.get((transaction.state, request.committed), EndOutcome.INVALID)
        if outcome in _REFUSALS:
            raise BrokerError(_REFUSALS[outcome])
        return transaction, outcome

    def _want_id(self, request: EndTxnRequest, client_version: int, reply: Reply) -> Result:
        return self._table.wait_for_producer_id(
            ProducerIdWanted(
                self._table.context.partition,
                request.transactional_id,
                lambda table, producer_id: Ending(table).end(request, client_version, reply, producer_id),
                lambda error: reply(error.code),
            )
        )


def _check_v1(request: EndTxnRequest, transaction: TransactionMetadata) -> EndTable:
    if request.producer_id != transaction.producer_id:
        raise BrokerError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if request.producer_epoch != transaction.producer_epoch:
        raise BrokerError(ErrorCode.PRODUCER_FENCED)
    return END_V1


def _check_v2(request: EndTxnRequest, transaction: TransactionMetadata) -> EndTable:
    """Each end bumps the epoch: who names the current one speaks of a new transaction, the one before asks again."""
    wrapped = (
        transaction.producer_epoch == 0
        and request.producer_id == transaction.previous_producer_id
        and request.producer_epoch >= LAST_CLIENT_EPOCH
    )
    if request.producer_id != transaction.producer_id and not wrapped:
        raise BrokerError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    # Only where the last end was of this version: else it is about a transaction before the last.
    bumped = (
        request.producer_epoch + 1 == transaction.producer_epoch and transaction.client_transaction_version >= VERSION_2
    )
    is_current = request.producer_epoch == transaction.producer_epoch
    if not (is_current or ((bumped or wrapped) and transaction.state in ENDED)):
        raise BrokerError(ErrorCode.PRODUCER_FENCED)
    return END_V2_AGAIN if bumped or wrapped else END_V2


_REFUSALS: Final = {
    EndOutcome.INVALID: ErrorCode.INVALID_TXN_STATE,
    EndOutcome.FENCED: ErrorCode.PRODUCER_FENCED,
}


def _ended(producer_id: int, producer_epoch: int) -> EndTxnResponse:
    return EndTxnResponse(error_code=ErrorCode.NONE, producer_id=producer_id, producer_epoch=producer_epoch)


def _producer_after(now: Transition) -> tuple[int, int]:
    """The producer id and epoch with which the client goes on when this transition is complete."""
    if now.next_producer_id != NO_PRODUCER_ID:
        return now.next_producer_id, 0
    return now.producer_id, now.producer_epoch
