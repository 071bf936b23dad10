"""What `__transaction_state` stores: the state of each transactional id. How it is framed: `record_codec`."""

from typing import Final

from kavka.protocol.internal.record_codec import RecordTypes
from kavka.protocol.schema import Int8, Int16, Int32, Int64, Record, String, Struct, since


class TransactionLogKey(Record, key=0, versions="0"):
    transactional_id: String


class PartitionsSchema(Struct):
    topic: String
    partition_ids: list[Int32]


class TransactionLogValue(Record, key=0, versions="0-1", flexible="1+"):
    """`transaction_status`: 0 Empty, 1 Ongoing, 2 PrepareCommit, 3 PrepareAbort, 4 CompleteCommit, 5 CompleteAbort,
    6 Dead, 7 PrepareEpochFence. The tagged fields belong to transactions of version 2 (KIP-890).
    """

    producer_id: Int64
    previous_producer_id: Int64 = since(1, tag=0, default=-1, ignorable=True)
    next_producer_id: Int64 = since(1, tag=1, default=-1, ignorable=True)
    producer_epoch: Int16
    next_producer_epoch: Int16 = since(1, tag=3, default=-1, ignorable=True)
    transaction_timeout_ms: Int32
    transaction_status: Int8
    transaction_partitions: list[PartitionsSchema] | None
    transaction_last_update_timestamp_ms: Int64
    transaction_start_timestamp_ms: Int64
    client_transaction_version: Int16 = since(1, tag=2, ignorable=True)


TRANSACTION_RECORDS: Final[RecordTypes] = {0: (TransactionLogKey, TransactionLogValue)}
"""By the number that a key begins with: the classes of its body and of its value."""
