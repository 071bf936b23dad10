"""DescribeProducers, DescribeTransactions, ListTransactions, WriteTxnMarkers, and InitProducerId as a fence."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from kavka.client.admin.operation import (
    ALWAYS_RETRIED,
    Answered,
    Operation,
    Outcome,
    by_topic,
    check,
    error_or,
)
from kavka.client.admin.operations.groups import NOT_LOADED
from kavka.client.admin.targets import Broker, Coordinator, Target
from kavka.client.admin.types.transactions import (
    AbortTransactionSpec,
    FencedProducer,
    ProducerState,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from kavka.client.coordinators import CoordinatorKind
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from kavka.protocol.messages.describe_transactions import DescribeTransactionsRequest
from kavka.protocol.messages.init_producer_id import InitProducerIdRequest
from kavka.protocol.messages.list_transactions import ListTransactionsRequest
from kavka.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kavka.protocol.schema import Request

_CONCURRENT: Final = NOT_LOADED | {ErrorCode.CONCURRENT_TRANSACTIONS}
DURATION_SINCE: Final = 1
PATTERN_SINCE: Final = 2
NEWEST_STABLE: Final = 5
"""InitProducerId 6 is Kafka's two-phase commit, which it holds to be unstable."""


def _coordinator(transactional_id: str) -> Coordinator:
    return Coordinator(CoordinatorKind.TRANSACTION, transactional_id)


def describe_producers(
    partitions: Sequence[TopicPartition], broker_id: int | None
) -> Operation[TopicPartition, tuple[ProducerState, ...]]:
    """Of the partitions' leaders, or of their replicas on one broker."""

    def request(asked: Sequence[TopicPartition], _timeout_ms: int) -> Request:
        topics = [TopicRequest(name=name, partition_indexes=indexes) for name, indexes in by_topic(asked).items()]
        return DescribeProducersRequest(topics=topics)

    def read(answered: Answered[TopicPartition]) -> Iterator[tuple[TopicPartition, Outcome[tuple[ProducerState, ...]]]]:
        for topic in answered.body.topics:
            for row in topic.partitions:
                states = tuple(map(_producer, row.active_producers))
                yield TopicPartition(topic.name, row.partition_index), error_or(row, states)

    def target(partition: TopicPartition) -> Target:
        return TopicPartition(*partition) if broker_id is None else Broker(broker_id)

    return Operation("describing producers", partitions, request=request, read=read, target=target)


def _producer(row: Any) -> ProducerState:
    return ProducerState(
        row.producer_id,
        row.producer_epoch,
        row.last_sequence,
        row.last_timestamp,
        row.coordinator_epoch,
        row.current_txn_start_offset,
    )


def describe_transactions(transactional_ids: Sequence[str]) -> Operation[str, TransactionDescription]:
    def request(asked: Sequence[str], _timeout_ms: int) -> Request:
        return DescribeTransactionsRequest(transactional_ids=list(asked))

    def read(answered: Answered[str]) -> Iterator[tuple[str, Outcome[TransactionDescription]]]:
        for row in answered.body.transaction_states:
            yield row.transactional_id, error_or(row, _transaction(row, answered.node.id))

    return Operation(
        "describing transactions",
        transactional_ids,
        request=request,
        read=read,
        target=_coordinator,
        retried=NOT_LOADED,
    )


def _transaction(row: Any, coordinator_id: int) -> TransactionDescription:
    return TransactionDescription(
        row.transactional_id,
        TransactionState(row.transaction_state),
        row.producer_id,
        row.producer_epoch,
        row.transaction_timeout_ms,
        row.transaction_start_time_ms,
        tuple(TopicPartition(topic.topic, index) for topic in row.topics for index in topic.partitions),
        coordinator_id,
    )


def list_transactions(
    broker_ids: Sequence[int],
    states: Sequence[TransactionState],
    producer_ids: Sequence[int],
    longer_than_ms: int,
    pattern: str | None,
) -> Operation[int, list[TransactionListing]]:
    def request(_items: Sequence[int], _timeout_ms: int) -> Request:
        return ListTransactionsRequest(
            state_filters=[state.value for state in states],
            producer_id_filters=list(producer_ids),
            duration_filter=longer_than_ms,
            transactional_id_pattern=pattern,
        )

    def read(answered: Answered[int]) -> Iterator[tuple[int, list[TransactionListing]]]:
        check(answered.body.error_code)
        rows = answered.body.transaction_states
        yield (
            answered.items[0],
            [
                TransactionListing(row.transactional_id, row.producer_id, TransactionState(row.transaction_state))
                for row in rows
            ],
        )

    oldest = PATTERN_SINCE if pattern is not None else DURATION_SINCE if longer_than_ms >= 0 else 0
    return Operation(
        "listing transactions",
        broker_ids,
        request=request,
        read=read,
        target=Broker,
        versions=(oldest, 2),
        at_once=1,
        retried=NOT_LOADED,
    )


def abort_transaction(hanging: AbortTransactionSpec) -> Operation[AbortTransactionSpec, None]:
    def request(_items: Sequence[AbortTransactionSpec], _timeout_ms: int) -> Request:
        topic, partition = hanging.partition
        marker = WritableTxnMarker(
            producer_id=hanging.producer_id,
            producer_epoch=hanging.producer_epoch,
            coordinator_epoch=hanging.coordinator_epoch,
            transaction_result=False,
            topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])],
        )
        return WriteTxnMarkersRequest(markers=[marker])

    def read(answered: Answered[AbortTransactionSpec]) -> Iterator[tuple[AbortTransactionSpec, Outcome[None]]]:
        for marker in answered.body.markers:
            for topic in marker.topics:
                for row in topic.partitions:
                    if (marker.producer_id, topic.name, row.partition_index) == (
                        hanging.producer_id,
                        *hanging.partition,
                    ):
                        yield hanging, error_or(row, None)

    return Operation(
        "aborting a transaction",
        [hanging],
        request=request,
        read=read,
        target=TopicPartition(*hanging.partition),
        retried=ALWAYS_RETRIED,
        # A second marker would end whatever that producer has begun since the first one.
        repeatable=False,
    )


def fence_producers(transactional_ids: Sequence[str]) -> Operation[str, FencedProducer]:
    def request(asked: Sequence[str], timeout_ms: int) -> Request:
        return InitProducerIdRequest(transactional_id=asked[0], transaction_timeout_ms=timeout_ms)

    def read(answered: Answered[str]) -> Iterator[tuple[str, FencedProducer]]:
        check(answered.body.error_code)
        yield answered.items[0], FencedProducer(answered.body.producer_id, answered.body.producer_epoch)

    return Operation(
        "fencing producers",
        transactional_ids,
        request=request,
        read=read,
        target=_coordinator,
        versions=(0, NEWEST_STABLE),
        at_once=1,
        retried=_CONCURRENT,
    )
