"""What transactions make brokers ask each other: markers and partitions, batched, one request at a time to each."""

from collections.abc import Generator
from functools import partial
from typing import Any

import pytest

from kavka.broker.interbroker.transaction_requests import TransactionRequests
from kavka.client import Node
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from kavka.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tests.support.interbroker_stage import InterBrokerStage
from tests.support.scripted_broker import ScriptedBroker, Visitor

GONE = 7
TIMEOUT_MS = 30_000


@pytest.fixture
def stage() -> Generator[InterBrokerStage, None, None]:
    with InterBrokerStage() as stage:
        yield stage


@pytest.fixture
def broker(stage: InterBrokerStage) -> ScriptedBroker:
    return stage.broker(1)


@pytest.fixture
def requests(stage: InterBrokerStage, broker: ScriptedBroker) -> TransactionRequests:
    nodes: dict[int, Node] = {1: broker.node}
    return TransactionRequests(stage.inter_broker, nodes.get, lambda job: job(), timeout_ms=TIMEOUT_MS)


def write(
    stage: InterBrokerStage,
    requests: TransactionRequests,
    producer_id: int,
    *,
    broker_id: int = 1,
    is_withdrawn: Any = lambda: False,
) -> None:
    marker = WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=0,
        transaction_result=True,
        topics=[WritableTxnMarkerTopic(name="visits", partition_indexes=[0])],
        coordinator_epoch=3,
    )
    promise = requests.write_markers(broker_id, WriteTxnMarkersRequest(markers=[marker]), is_withdrawn)
    promise.watch(lambda answer, error: stage.answers.put((producer_id, answer, error)))


def ask(
    stage: InterBrokerStage,
    requests: TransactionRequests,
    name: str,
    *,
    index: int = 0,
    broker_id: int = 1,
    verify_only: bool = True,
) -> None:
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=name,
        producer_id=5,
        producer_epoch=0,
        verify_only=verify_only,
        topics=[AddPartitionsToTxnTopic(name="visits", partitions=[index])],
    )
    requests.add_partitions(broker_id, transaction).watch(
        lambda codes, _: stage.answers.put((name, codes and codes["visits", index]))
    )


def serve_markers(visitor: Visitor, code: ErrorCode = ErrorCode.NONE) -> list[int]:
    """The producer ids of one request, answered in another order."""
    asked = visitor.asked()
    assert isinstance(asked.request, WriteTxnMarkersRequest)
    ids = [marker.producer_id for marker in asked.request.markers]
    result = WritableTxnMarkerPartitionResult(partition_index=0, error_code=code)
    topics = [WritableTxnMarkerTopicResult(name="visits", partitions=[result])]
    visitor.answer(
        asked,
        WriteTxnMarkersResponse(
            markers=[WritableTxnMarkerResult(producer_id=each, topics=topics) for each in reversed(ids)]
        ),
    )
    return ids


def serve_partitions(visitor: Visitor, code: ErrorCode = ErrorCode.NONE) -> list[tuple[str, int]]:
    """The transactions of one request, and the first partition of each, answered in another order."""
    asked = visitor.asked()
    assert isinstance(asked.request, AddPartitionsToTxnRequest)
    assert asked.header.api_version == 5
    transactions = [(each.transactional_id, each.topics[0].partitions[0]) for each in asked.request.transactions]
    results = [
        AddPartitionsToTxnResult(
            transactional_id=name,
            topic_results=[
                AddPartitionsToTxnTopicResult(
                    name="visits",
                    results_by_partition=[
                        AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
                    ],
                )
            ],
        )
        for name, index in reversed(transactions)
    ]
    visitor.answer(asked, AddPartitionsToTxnResponse(results_by_transaction=results))
    return transactions


def test_markers_that_come_meanwhile_go_together_and_each_gets_its_own_answer(
    stage: InterBrokerStage, broker: ScriptedBroker, requests: TransactionRequests
) -> None:
    write(stage, requests, 1)
    visitor = broker.accept()
    for producer_id in (2, 3, 4):
        write(stage, requests, producer_id)

    assert serve_markers(visitor) == [1]
    assert serve_markers(visitor, ErrorCode.NOT_LEADER_OR_FOLLOWER) == [2, 3, 4]

    answers = {producer_id: answer for producer_id, answer, error in (stage.answer() for _ in range(4)) if not error}
    assert {each: [result.producer_id for result in answer.markers] for each, answer in answers.items()} == {
        each: [each] for each in (1, 2, 3, 4)
    }
    codes = {each: answer.markers[0].topics[0].partitions[0].error_code for each, answer in answers.items()}
    assert codes == {1: 0, **dict.fromkeys((2, 3, 4), ErrorCode.NOT_LEADER_OR_FOLLOWER)}


def test_two_markers_of_one_producer_go_one_after_the_other(
    stage: InterBrokerStage, broker: ScriptedBroker, requests: TransactionRequests
) -> None:
    for producer_id in (1, 2, 2, 3):
        write(stage, requests, producer_id)
    visitor = broker.accept()

    assert [serve_markers(visitor) for _ in range(3)] == [[1], [2, 3], [2]]


def test_a_marker_that_is_withdrawn_before_it_is_sent_is_not_sent(
    stage: InterBrokerStage, broker: ScriptedBroker, requests: TransactionRequests
) -> None:
    withdrawn: set[int] = set()
    for producer_id in (1, 2, 3):
        write(stage, requests, producer_id, is_withdrawn=partial(withdrawn.__contains__, producer_id))
    withdrawn.add(2)
    visitor = broker.accept()

    assert [serve_markers(visitor) for _ in range(2)] == [[1], [3]]
    refused = {producer_id: error.code for producer_id, _, error in (stage.answer() for _ in range(3)) if error}
    assert refused == {2: ErrorCode.NOT_COORDINATOR}


def test_a_connection_that_ends_fails_what_was_sent_and_nothing_else(
    stage: InterBrokerStage, broker: ScriptedBroker, requests: TransactionRequests
) -> None:
    write(stage, requests, 1)
    visitor = broker.accept()
    visitor.asked()
    write(stage, requests, 2)
    visitor.reset()

    assert serve_markers(broker.accept()) == [2]
    outcomes = {producer_id: error and error.code for producer_id, _, error in (stage.answer() for _ in range(2))}
    assert outcomes == {1: ErrorCode.NETWORK_EXCEPTION, 2: None}


def test_there_is_no_way_to_a_broker_that_nobody_knows(stage: InterBrokerStage, requests: TransactionRequests) -> None:
    write(stage, requests, 1, broker_id=GONE)
    _, _, error = stage.answer()
    assert error.code is ErrorCode.BROKER_NOT_AVAILABLE

    ask(stage, requests, "t", broker_id=GONE)
    assert stage.answer() == ("t", ErrorCode.COORDINATOR_NOT_AVAILABLE)


def test_a_coordinator_is_asked_of_many_transactions_at_once_but_of_each_once(
    stage: InterBrokerStage, broker: ScriptedBroker, requests: TransactionRequests
) -> None:
    for name, index in (("a", 0), ("b", 0), ("b", 1), ("c", 2)):
        ask(stage, requests, name, index=index)
    visitor = broker.accept()

    assert serve_partitions(visitor) == [("a", 0)]
    assert serve_partitions(visitor, ErrorCode.TRANSACTION_ABORTABLE) == [("b", 0), ("c", 2)]
    assert serve_partitions(visitor, ErrorCode.INVALID_PRODUCER_ID_MAPPING) == [("b", 1)]

    assert [stage.answer() for _ in range(4)] == [
        ("a", ErrorCode.NONE),
        ("b", ErrorCode.TRANSACTION_ABORTABLE),
        ("c", ErrorCode.TRANSACTION_ABORTABLE),
        ("b", ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    ]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_refusal_of_the_whole_request_is_one_of_each_partition(
    stage: InterBrokerStage, broker: ScriptedBroker, requests: TransactionRequests, said: ErrorCode, told: ErrorCode
) -> None:
    ask(stage, requests, "a")
    visitor = broker.accept()

    visitor.answer(visitor.asked(), AddPartitionsToTxnResponse(error_code=said, results_by_transaction=[]))

    assert stage.answer() == ("a", told)


def test_a_coordinator_that_does_not_answer_is_a_network_exception(
    stage: InterBrokerStage, broker: ScriptedBroker, requests: TransactionRequests
) -> None:
    ask(stage, requests, "a")
    visitor = broker.accept()
    visitor.asked()
    visitor.reset()

    assert stage.answer() == ("a", ErrorCode.NETWORK_EXCEPTION)


def test_who_waits_hears_of_the_stop(
    stage: InterBrokerStage, broker: ScriptedBroker, requests: TransactionRequests
) -> None:
    requests.close()

    write(stage, requests, 1)
    ask(stage, requests, "a")

    assert stage.answer()[2].code is ErrorCode.BROKER_NOT_AVAILABLE
    assert stage.answer() == ("a", ErrorCode.COORDINATOR_NOT_AVAILABLE)
