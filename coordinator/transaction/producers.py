"""InitProducerId with a transactional id: who writes under it from now on."""

from typing import Final

from kavka.coordinator.runtime.result import Reply, Result
from kavka.coordinator.transaction.completion import Completion
from kavka.coordinator.transaction.metadata import (
    LAST_CLIENT_EPOCH,
    NO_EPOCH,
    NO_PRODUCER_ID,
    VERSION_2,
    TransactionMetadata,
    new_metadata,
)
from kavka.coordinator.transaction.ports import ProducerIdWanted
from kavka.coordinator.transaction.states import TransactionState
from kavka.coordinator.transaction.table import TransactionTable
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


class Producers:
    """Gives producers their ids and epochs. Under the shard's lock."""

    def __init__(self, table: TransactionTable) -> None:
        self._table: Final = table
        self._completion: Final = Completion(table)

    def init(self, request: InitProducerIdRequest, reply: Reply, spare_id: int = NO_PRODUCER_ID) -> Result:
        """Decide; `spare_id` is a producer id of which nobody knows yet, once one was needed."""
        try:
            return self._init(request, reply, spare_id)
        except BrokerError as refusal:
            return self._table.answer(reply, refusal.code)

    def _init(self, request: InitProducerIdRequest, reply: Reply, spare_id: int) -> Result:
        table = self._table
        transactional_id = request.transactional_id
        assert transactional_id is not None
        timeout_ms = request.transaction_timeout_ms
        if not 0 < timeout_ms <= table.context.config.transaction_max_timeout_ms:
            raise BrokerError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        now_ms = table.context.now_ms()
        transaction = table.transactions.get(transactional_id)
        if transactional_id in table.waiting or (transaction is not None and transaction.is_decided):
            raise BrokerError(ErrorCode.CONCURRENT_TRANSACTIONS)
        if transaction is None:
            if spare_id == NO_PRODUCER_ID:
                return self._want_id(request, reply)
            transaction = new_metadata(transactional_id, spare_id, timeout_ms, now_ms)
        expected_epoch = _expected_epoch(request, transaction)
        fences = transaction.state is TransactionState.ONGOING
        rotates = transaction.is_exhausted if fences else transaction.may_rotate(expected_epoch)
        if rotates and spare_id == NO_PRODUCER_ID:
            return self._want_id(request, reply)
        if fences:
            # The producer that it belongs to is fenced; who asked comes again when the abort is complete.
            aborted = transaction.prepare_end(False, VERSION_2, now_ms, spare_id if rotates else NO_PRODUCER_ID)
            return self._completion.decide(transaction, aborted, reply, ErrorCode.CONCURRENT_TRANSACTIONS)
        if rotates:
            now = transaction.prepare_rotation(spare_id, timeout_ms, expected_epoch, now_ms)
        else:
            now = transaction.prepare_producer(timeout_ms, expected_epoch, now_ms)
        response = InitProducerIdResponse(
            error_code=ErrorCode.NONE, producer_id=now.producer_id, producer_epoch=now.producer_epoch
        )
        return table.write(transactional_id, now, reply, response)

    def _want_id(self, request: InitProducerIdRequest, reply: Reply) -> Result:
        assert request.transactional_id is not None
        return self._table.wait_for_producer_id(
            ProducerIdWanted(
                self._table.context.partition,
                request.transactional_id,
                lambda table, producer_id: Producers(table).init(request, reply, producer_id),
                lambda error: reply(error.code),
            )
        )


def _expected_epoch(request: InitProducerIdRequest, transaction: TransactionMetadata) -> int | None:
    """The epoch that the client says it has; None: it has none yet. BrokerError PRODUCER_FENCED: it is another's."""
    if request.producer_id == NO_PRODUCER_ID:
        return None
    used_up_before = (
        request.producer_id == transaction.previous_producer_id and request.producer_epoch >= LAST_CLIENT_EPOCH
    )
    if transaction.producer_epoch != NO_EPOCH and request.producer_id != transaction.producer_id and not used_up_before:
        raise BrokerError(ErrorCode.PRODUCER_FENCED)
    return request.producer_epoch
