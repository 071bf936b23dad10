"""Requests about producers' ids and transactions."""

from typing import Final

from kavka.broker.security.acl import Operation
from kavka.protocol.api import ApiKey
from kavka.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kavka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kavka.protocol.messages.describe_transactions import DescribeTransactionsRequest
from kavka.protocol.messages.end_txn import EndTxnRequest
from kavka.protocol.messages.init_producer_id import InitProducerIdRequest
from kavka.protocol.messages.list_transactions import ListTransactionsRequest
from kavka.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kavka.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.integration.oracle.rights.table import (
    GONE,
    NO_TRANSACTION,
    TOO,
    Names,
    cluster,
    group,
    row,
    topic,
    transaction,
)

NOBODY: Final = 4_000_000
"""A producer id that nobody has been given."""


@row(ApiKey.INIT_PRODUCER_ID, transaction(Operation.WRITE))
def init_producer_id(version: int, names: Names) -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id=names.transaction, transaction_timeout_ms=60_000)


@row(ApiKey.INIT_PRODUCER_ID, cluster(Operation.IDEMPOTENT_WRITE), topic(Operation.WRITE, GONE))
def init_producer_id_without_a_transaction(version: int, names: Names) -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)


@row(ApiKey.ADD_PARTITIONS_TO_TXN, transaction(Operation.WRITE) + topic(Operation.WRITE), versions="0-3")
def add_partitions_to_txn(version: int, names: Names) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=names.transaction,
        v3_and_below_producer_id=NOBODY,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=_partitions(names.topic, TOO),
    )


@row(ApiKey.ADD_PARTITIONS_TO_TXN, transaction(Operation.WRITE), versions="0-3")
def add_internal_partitions_to_txn(version: int, names: Names) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=names.transaction,
        v3_and_below_producer_id=NOBODY,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=_partitions("__consumer_offsets", names.topic),
    )


@row(
    ApiKey.ADD_PARTITIONS_TO_TXN,
    cluster(Operation.CLUSTER_ACTION),
    transaction(Operation.WRITE) + topic(Operation.WRITE),
    versions="4-99",
)
def add_partitions_to_txn_by_brokers(version: int, names: Names) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnTransaction(
                transactional_id=names.transaction,
                producer_id=NOBODY,
                producer_epoch=0,
                verify_only=True,
                topics=_partitions(names.topic, TOO),
            )
        ]
    )


@row(ApiKey.ADD_OFFSETS_TO_TXN, transaction(Operation.WRITE) + group(Operation.READ))
def add_offsets_to_txn(version: int, names: Names) -> AddOffsetsToTxnRequest:
    return AddOffsetsToTxnRequest(
        transactional_id=names.transaction, producer_id=NOBODY, producer_epoch=0, group_id=names.group
    )


@row(ApiKey.END_TXN, transaction(Operation.WRITE), versions="0-4")
def end_txn(version: int, names: Names) -> EndTxnRequest:
    return EndTxnRequest(transactional_id=names.transaction, producer_id=NOBODY, producer_epoch=0, committed=True)


@row(
    ApiKey.TXN_OFFSET_COMMIT,
    transaction(Operation.WRITE) + group(Operation.READ) + topic(Operation.READ),
    versions="0-4",
)
def txn_offset_commit(version: int, names: Names) -> TxnOffsetCommitRequest:
    partitions = [TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata=None)]
    return TxnOffsetCommitRequest(
        transactional_id=names.transaction,
        group_id=names.group,
        producer_id=NOBODY,
        producer_epoch=0,
        topics=[TxnOffsetCommitRequestTopic(name=name, partitions=partitions) for name in (names.topic, TOO)],
    )


@row(ApiKey.WRITE_TXN_MARKERS, cluster(Operation.ALTER), cluster(Operation.CLUSTER_ACTION))
def write_txn_markers(version: int, names: Names) -> WriteTxnMarkersRequest:
    topics = [WritableTxnMarkerTopic(name=GONE, partition_indexes=[0, 1])]
    return WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=NOBODY, producer_epoch=0, transaction_result=True, topics=topics, coordinator_epoch=0
            )
        ]
    )


@row(ApiKey.DESCRIBE_TRANSACTIONS, transaction(Operation.DESCRIBE))
def describe_transactions(version: int, names: Names) -> DescribeTransactionsRequest:
    return DescribeTransactionsRequest(transactional_ids=[names.transaction, NO_TRANSACTION])


@row(ApiKey.LIST_TRANSACTIONS, transaction(Operation.DESCRIBE))
def list_transactions(version: int, names: Names) -> ListTransactionsRequest:
    return ListTransactionsRequest(state_filters=[], producer_id_filters=[])


def _partitions(*names: str) -> list[AddPartitionsToTxnTopic]:
    return [AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in names]
