"""Producers and transactions: requests as brokers see them, answers as callers do."""

from kavka.client.admin import (
    AbortTransactionSpec,
    FencedProducer,
    ProducerState,
    TopicPartition,
    TransactionListing,
    TransactionState,
)
from kavka.client.admin.areas.transactions import TransactionsArea
from kavka.client.node import Node
from kavka.protocol.messages import (
    describe_producers,
    describe_transactions,
    init_producer_id,
    list_transactions,
    write_txn_markers,
)
from tests.support.admin_stage import AdminStage, Said, in_turn, nodes_of

P0 = TopicPartition("t", 0)


def test_producers_of_leaders_and_of_one_broker() -> None:
    stage = AdminStage()
    stage.leaders = {"t": [2]}
    state = describe_producers.ProducerState(
        producer_id=7, producer_epoch=1, last_sequence=5, last_timestamp=9, coordinator_epoch=3
    )
    row = describe_producers.PartitionResponse(partition_index=0, error_code=0, active_producers=[state])
    response = describe_producers.DescribeProducersResponse(
        topics=[describe_producers.TopicResponse(name="t", partitions=[row])]
    )
    stage.network.answer(describe_producers.DescribeProducersRequest, in_turn(response))
    area = stage.area(TransactionsArea)

    assert area.describe_producers([P0]) == {P0: (ProducerState(7, 1, 5, 9, 3, -1),)}
    area.describe_producers([P0], broker_id=3)
    assert nodes_of(stage.network.requests(describe_producers.DescribeProducersRequest)) == [2, 3]


def test_transactions_are_listed_described_and_ended() -> None:
    stage = AdminStage()
    stage.coordinators = {"x": 2}
    stage.leaders = {"t": [3]}
    area = stage.area(TransactionsArea)
    listed = list_transactions.ListTransactionsResponse(
        error_code=0,
        unknown_state_filters=[],
        transaction_states=[
            list_transactions.TransactionState(transactional_id="x", producer_id=7, transaction_state="Ongoing")
        ],
    )
    stage.network.answer(list_transactions.ListTransactionsRequest, in_turn(listed))
    assert area.list_transactions(states=[TransactionState.ONGOING], longer_than_ms=5) == [
        TransactionListing("x", 7, TransactionState.ONGOING)
    ]
    assert len(stage.network.requests(list_transactions.ListTransactionsRequest)) == 3

    described = describe_transactions.DescribeTransactionsResponse(
        transaction_states=[
            describe_transactions.TransactionState(
                error_code=0,
                transactional_id="x",
                transaction_state="Strange",
                transaction_timeout_ms=1,
                transaction_start_time_ms=2,
                producer_id=7,
                producer_epoch=0,
                topics=[describe_transactions.TopicData(topic="t", partitions=[0])],
            )
        ]
    )
    stage.network.answer(describe_transactions.DescribeTransactionsRequest, in_turn(described))
    found = area.describe_transactions(["x"])["x"]
    assert (found.state, found.partitions, found.coordinator_id) == (TransactionState.UNKNOWN, (P0,), 2)

    busy, fenced = (
        init_producer_id.InitProducerIdResponse(error_code=code, producer_id=7, producer_epoch=4) for code in (51, 0)
    )
    stage.network.answer(init_producer_id.InitProducerIdRequest, in_turn(busy, fenced))
    assert area.fence_producers(["x"]) == {"x": FencedProducer(7, 4)}
    assert nodes_of(stage.network.requests(init_producer_id.InitProducerIdRequest)) == [2, 2]

    stage.network.answer(write_txn_markers.WriteTxnMarkersRequest, marked)
    area.abort_transaction(AbortTransactionSpec(P0, 7, 0, 3))
    (asked,) = stage.network.requests(write_txn_markers.WriteTxnMarkersRequest)
    assert (asked.node.id, asked.request.markers[0].transaction_result) == (3, False)


def marked(_node: Node, request: write_txn_markers.WriteTxnMarkersRequest) -> Said:
    row = write_txn_markers.WritableTxnMarkerPartitionResult(partition_index=0, error_code=0)
    topic = write_txn_markers.WritableTxnMarkerTopicResult(name="t", partitions=[row])
    marker = write_txn_markers.WritableTxnMarkerResult(producer_id=request.markers[0].producer_id, topics=[topic])
    return write_txn_markers.WriteTxnMarkersResponse(markers=[marker])
