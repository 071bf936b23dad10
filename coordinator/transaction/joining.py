"""AddPartitionsToTxn, AddOffsetsToTxn, and what Produce and TxnOffsetCommit ask: which partitions take part."""

from typing import Final

from kavka.coordinator.runtime.result import Producer, Reply, Result
from kavka.coordinator.transaction.metadata import TopicPartition
from kavka.coordinator.transaction.states import TransactionState
from kavka.coordinator.transaction.table import TransactionTable
from kavka.protocol.errors import ErrorCode


class Joining:
    """Has partitions take part in transactions. Under the shard's lock."""

    def __init__(self, table: TransactionTable) -> None:
        self._table: Final = table

    def add(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: frozenset[TopicPartition],
        client_version: int,
        reply: Reply,
    ) -> Result:
        """See TransactionShard.add."""
        table = self._table
        transaction = table.transactions.get(transactional_id)
        if transaction is None:
            return table.answer(reply, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if table.is_busy(transaction):
            # Before the producer is compared: where its epochs are used up, it may know of an id already that becomes
            # its own only when the transition ends.
            return table.answer(reply, ErrorCode.CONCURRENT_TRANSACTIONS)
        if transaction.producer_id != producer.producer_id:
            return table.answer(reply, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if transaction.producer_epoch != producer.producer_epoch:
            return table.answer(reply, ErrorCode.PRODUCER_FENCED)
        if transaction.state is TransactionState.ONGOING and partitions <= transaction.partitions:
            return table.answer(reply, ErrorCode.NONE)
        now = transaction.prepare_add(partitions, client_version, table.context.now_ms())
        return table.write(transactional_id, now, reply, ErrorCode.NONE)

    def verify(
        self, transactional_id: str, producer: Producer, partitions: frozenset[TopicPartition], reply: Reply
    ) -> Result:
        """See TransactionShard.verify."""
        table = self._table
        transaction = table.transactions.get(transactional_id)
        if transaction is None or transaction.producer_id != producer.producer_id:
            code = ErrorCode.INVALID_PRODUCER_ID_MAPPING
        elif transaction.producer_epoch != producer.producer_epoch:
            code = ErrorCode.PRODUCER_FENCED
        elif transaction.is_decided:
            code = ErrorCode.CONCURRENT_TRANSACTIONS
        else:
            taking_part = transaction.partitions
            codes = {
                partition: ErrorCode.NONE if partition in taking_part else ErrorCode.TRANSACTION_ABORTABLE
                for partition in partitions
            }
            return table.answer(reply, codes)
        return table.answer(reply, dict.fromkeys(partitions, code))
