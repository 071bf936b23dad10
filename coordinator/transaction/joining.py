"""AddPartitionsToTxn, AddOffsetsToTxn, and what Produce and TxnOffsetCommit ask: which partitions take part."""

from typing import TYPE_CHECKING, Final

from kavka.coordinator.runtime.result import Producer, Reply, Result
from kavka.coordinator.transaction.metadata import TopicPartition
from kavka.coordinator.transaction.states import TransactionState
from kavka.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kavka.coordinator.transaction.shard import TransactionShard


class Joining:
    """Has partitions take part in transactions. Under the shard's lock."""

    def __init__(self, shard: "TransactionShard") -> None:
        self._shard: Final = shard

    def add(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: frozenset[TopicPartition],
        client_version: int,
        reply: Reply,
    ) -> Result:
        """See TransactionShard.add."""
        shard = self._shard
        transaction = shard.transactions.get(transactional_id)
        if transaction is None:
            return shard.answer(reply, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if shard.is_busy(transaction):
            # Before the producer is compared: where its epochs are used up, it may know of an id already that becomes
            # its own only when the transition ends.
            return shard.answer(reply, ErrorCode.CONCURRENT_TRANSACTIONS)
        if transaction.producer_id != producer.producer_id:
            return shard.answer(reply, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if transaction.producer_epoch != producer.producer_epoch:
            return shard.answer(reply, ErrorCode.PRODUCER_FENCED)
        if transaction.state is TransactionState.ONGOING and partitions <= transaction.partitions:
            return shard.answer(reply, ErrorCode.NONE)
        now = transaction.prepare_add(partitions, client_version, shard.context.now_ms())
        return shard.write(transactional_id, now, reply, ErrorCode.NONE)

    def verify(
        self, transactional_id: str, producer: Producer, partitions: frozenset[TopicPartition], reply: Reply
    ) -> Result:
        """See TransactionShard.verify."""
        shard = self._shard
        transaction = shard.transactions.get(transactional_id)
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
            return shard.answer(reply, codes)
        return shard.answer(reply, dict.fromkeys(partitions, code))
