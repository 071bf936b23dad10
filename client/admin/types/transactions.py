"""Transactions and the producers that write them (KIP-664)."""

import enum
from typing import NamedTuple

from kavka.client.topic_partition import TopicPartition


class TransactionState(enum.StrEnum):
    """How far a transaction is.

    for transaction in admin.list_transactions(states=[TransactionState.ONGOING]):
        print(transaction.transactional_id)
    """

    UNKNOWN = "Unknown"
    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"

    @classmethod
    def _missing_(cls, value: object) -> "TransactionState":
        return cls.UNKNOWN


class ProducerState(NamedTuple):
    """A producer as a partition's leader remembers it. -1 where there is none, the transaction's start offset too.

    visits = TopicPartition("visits", 0)
    for producer in admin.describe_producers([visits])[visits]:
        if producer.current_transaction_start_offset >= 0:
            print(producer.producer_id, "has a transaction open")
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    current_transaction_start_offset: int


class TransactionDescription(NamedTuple):
    """A transactional id as its coordinator knows it. `start_time_ms` is -1 while it has no transaction.

    known = [each.transactional_id for each in admin.list_transactions()]
    for name, transaction in admin.describe_transactions(known).items():
        print(name, transaction.state, transaction.partitions)
    """

    transactional_id: str
    state: TransactionState
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_time_ms: int
    partitions: tuple[TopicPartition, ...]
    coordinator_id: int


class TransactionListing(NamedTuple):
    """A transactional id that a coordinator has.

    for transaction in admin.list_transactions():
        print(transaction.transactional_id, transaction.state)
    """

    transactional_id: str
    producer_id: int
    state: TransactionState


class AbortTransactionSpec(NamedTuple):
    """A transaction that hangs on a partition: nobody will end it, and committed readers wait behind it.

    Its numbers are those that `describe_producers` shows for the partition.

        AbortTransactionSpec(TopicPartition("visits", 0), producer_id=7, producer_epoch=0, coordinator_epoch=3)
    """

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int


class FencedProducer(NamedTuple):
    """What a transactional id has from now on: producers of an older epoch are refused.

    print(admin.fence_producers(["billing"])["billing"].producer_epoch)
    """

    producer_id: int
    producer_epoch: int
