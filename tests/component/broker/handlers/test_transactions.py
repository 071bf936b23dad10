"""The transactions' APIs in every version: fields, error codes by version, authorisation, refusals."""

from typing import Any

import pytest

from kavka.broker.handlers import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    describe_producers,
    describe_transactions,
    end_txn,
    init_producer_id,
    list_transactions,
    write_txn_markers,
)
from kavka.broker.security.acl import Operation
from kavka.cluster.promise import Promise
from kavka.coordinator.regular_expressions import compile_expression
from kavka.coordinator.runtime.result import Producer
from kavka.coordinator.transaction import listing
from kavka.protocol.errors import BrokerError, ErrorCode
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
from kavka.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tests.support.broker_handlers import BROKER_ID, Broker, Denying
from tests.support.staged_groups import StagedGroups
from tests.support.transaction_stage import FIRST_PRODUCER_ID, TransactionStage

HANDLERS = (
    add_offsets_to_txn,
    add_partitions_to_txn,
    describe_producers,
    describe_transactions,
    end_txn,
    init_producer_id,
    list_transactions,
    write_txn_markers,
)
STALE = Producer(FIRST_PRODUCER_ID, -1)


class Staged:
    """Stands for `services.transactions`: one shard on stage. `refuse`: what each operation is refused with."""

    def __init__(self) -> None:
        self.stage = TransactionStage()
        self.refuse: BrokerError | None = None
        self.existing_runtime: Any = self
        self.marker_writer: Any = self
        self.marked: list[WriteTxnMarkersRequest] = []

    def run(self, name: str | int, operation: Any, refused: Any) -> None:
        if self.refuse is not None:
            refused(self.refuse)
            return
        self.stage.run(operation, refused)
        if self.stage.ports.ids:
            self.stage.give_id()

    def states(self) -> dict[int, str]:
        return {0: "active"}

    def write(self, request: WriteTxnMarkersRequest) -> Promise[WriteTxnMarkersResponse]:
        self.marked.append(request)
        partition = WritableTxnMarkerPartitionResult(partition_index=0, error_code=0)
        topic = WritableTxnMarkerTopicResult(name="visits", partitions=[partition])
        promise: Promise[WriteTxnMarkersResponse] = Promise()
        promise.complete(WriteTxnMarkersResponse(markers=[WritableTxnMarkerResult(producer_id=7, topics=[topic])]))
        return promise


@pytest.fixture
def broker() -> Broker:
    made = Broker(visits=[BROKER_ID, BROKER_ID])
    services: Any = made.services
    services.transactions = Staged()
    services.groups = StagedGroups()
    return made


def staged(broker: Broker) -> Staged:
    transactions: Any = broker.services.transactions
    staged: Staged = transactions
    return staged


def stage_of(broker: Broker) -> TransactionStage:
    return staged(broker).stage


def init_request(**fields: Any) -> InitProducerIdRequest:
    return InitProducerIdRequest(**{"transactional_id": "t", "transaction_timeout_ms": 60_000, **fields})


def add_request(producer: Producer, *partitions: int, topic: str = "visits") -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="t",
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
    )


def added(answer: Any) -> list[ErrorCode]:
    return [
        ErrorCode(part.partition_error_code)
        for topic in answer.results_by_topic_v3_and_below
        for part in topic.results_by_partition
    ]


def end_request(producer: Producer, *, committed: bool = True) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id="t",
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        committed=committed,
    )


@pytest.mark.parametrize("version", range(6))
def test_transactional_producers_come_in_every_version(broker: Broker, version: int) -> None:
    for epoch in (0, 1):
        answer = broker.ask(init_request(), version)
        assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, FIRST_PRODUCER_ID, epoch)
    assert broker.ask(init_request(transaction_timeout_ms=0), version).error_code == (
        ErrorCode.INVALID_TRANSACTION_TIMEOUT
    )


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_fenced_producer_is_told_as_its_version_knows_it(broker: Broker, version: int) -> None:
    broker.ask(init_request(), version)
    answer = broker.ask(init_request(producer_id=99, producer_epoch=0), version)

    expected = ErrorCode.PRODUCER_FENCED if version >= 4 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (expected, -1, -1)


@pytest.mark.parametrize("version", range(4))
def test_partitions_are_added_in_every_version_of_clients(broker: Broker, version: int) -> None:
    producer = stage_of(broker).init("t")

    assert added(broker.ask(add_request(producer, 0, 1), version)) == [ErrorCode.NONE] * 2
    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert added(broker.ask(add_request(STALE, 0), version)) == [fenced]
    assert added(broker.ask(add_request(producer, 0, 7), version)) == [
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert stage_of(broker).shard.transactions["t"].client_transaction_version == 0


@pytest.mark.parametrize(
    ("denied", "code"),
    [
        ((Operation.WRITE, "t"), ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ((Operation.WRITE, "visits"), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ],
)
def test_who_may_not_write_adds_nothing(broker: Broker, denied: tuple[Operation, str], code: ErrorCode) -> None:
    producer = stage_of(broker).init("t")

    assert added(broker.ask(add_request(producer, 0), 3, authorizer=Denying(denied))) == [code]
    assert stage_of(broker).state("t") == "Empty"


@pytest.mark.parametrize("version", [4, 5])
def test_brokers_add_and_verify_for_several_transactions(broker: Broker, version: int) -> None:
    producer = stage_of(broker).init("t")

    def asked(name: str, *partitions: int, verify_only: bool) -> AddPartitionsToTxnTransaction:
        return AddPartitionsToTxnTransaction(
            transactional_id=name,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            verify_only=verify_only,
            topics=[AddPartitionsToTxnTopic(name="visits", partitions=list(partitions))],
        )

    transactions = [
        asked("t", 0, verify_only=False),
        asked("t", 0, 1, verify_only=True),
        asked("u", 1, verify_only=True),
    ]
    answer = broker.ask(AddPartitionsToTxnRequest(transactions=transactions), version)

    assert answer.error_code == 0
    codes = [
        [part.partition_error_code for part in each.topic_results[0].results_by_partition]
        for each in answer.results_by_transaction
    ]
    assert codes == [[0], [0, ErrorCode.TRANSACTION_ABORTABLE], [ErrorCode.INVALID_PRODUCER_ID_MAPPING]]
    stranger = Denying((Operation.CLUSTER_ACTION, "*"))
    refused = broker.ask(AddPartitionsToTxnRequest(transactions=transactions), version, authorizer=stranger)
    assert (refused.error_code, refused.results_by_transaction) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])


@pytest.mark.parametrize("version", range(5))
def test_offsets_are_added_in_every_version(broker: Broker, version: int) -> None:
    producer = stage_of(broker).init("t")

    def add(who: Producer, **more: Any) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id="t", producer_id=who.producer_id, producer_epoch=who.producer_epoch, group_id="four"
        )
        code: int = broker.ask(request, version, **more).error_code
        return code

    assert add(producer) == ErrorCode.NONE
    assert stage_of(broker).shard.transactions["t"].partitions == {("__consumer_offsets", 4)}
    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert add(STALE) == fenced
    assert add(producer, authorizer=Denying((Operation.READ, "four"))) == ErrorCode.GROUP_AUTHORIZATION_FAILED


@pytest.mark.parametrize("version", range(6))
def test_transactions_end_in_every_version(broker: Broker, version: int) -> None:
    producer = stage_of(broker).init("t")
    stage_of(broker).add("t", producer, ("visits", 0))
    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert broker.ask(end_request(STALE), version).error_code == fenced

    answer = broker.ask(end_request(producer), version)

    assert answer.error_code == ErrorCode.NONE
    assert stage_of(broker).state("t") == "PrepareCommit"
    if version >= 5:
        assert (answer.producer_id, answer.producer_epoch) == (FIRST_PRODUCER_ID, 1)
    assert broker.ask(end_request(producer), version).error_code == ErrorCode.CONCURRENT_TRANSACTIONS


def test_a_coordinator_that_does_not_serve_refuses_each_request(broker: Broker) -> None:
    staged(broker).refuse = BrokerError(ErrorCode.NOT_COORDINATOR)
    me = Producer(1, 0)

    assert broker.ask(init_request(), 5).error_code == ErrorCode.NOT_COORDINATOR
    assert added(broker.ask(add_request(me, 0), 3)) == [ErrorCode.NOT_COORDINATOR]
    assert broker.ask(end_request(me), 5).error_code == ErrorCode.NOT_COORDINATOR
    (state,) = broker.ask(DescribeTransactionsRequest(transactional_ids=["t"]), 0).transaction_states
    assert state.error_code == ErrorCode.NOT_COORDINATOR
    empty = ListTransactionsRequest(state_filters=[], producer_id_filters=[])
    assert broker.ask(empty, 2).error_code == ErrorCode.NONE, "its partitions are another broker's by now"
    staged(broker).refuse = BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert broker.ask(empty, 2).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_transactions_are_described_to_those_who_may_know(broker: Broker) -> None:
    producer = stage_of(broker).init("t")
    stage_of(broker).add("t", producer, ("visits", 0), ("secret", 1))
    client = Denying((Operation.DESCRIBE, "secret"), (Operation.DESCRIBE, "u"))

    answer = broker.ask(DescribeTransactionsRequest(transactional_ids=["t", "u", "v"]), 0, authorizer=client)

    assert [(each.transactional_id, ErrorCode(each.error_code)) for each in answer.transaction_states] == [
        ("t", ErrorCode.NONE),
        ("u", ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ("v", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND),
    ]
    assert [each.topic for each in answer.transaction_states[0].topics] == ["visits"]


@pytest.mark.parametrize("version", range(3))
def test_transactions_are_listed_to_those_who_may_know(broker: Broker, version: int) -> None:
    for name in ("t", "u"):
        stage_of(broker).init(name)
    request = ListTransactionsRequest(state_filters=["Empty", "Odd"], producer_id_filters=[])

    answer = broker.ask(request, version, authorizer=Denying((Operation.DESCRIBE, "u")))

    assert [(each.transactional_id, each.transaction_state) for each in answer.transaction_states] == [("t", "Empty")]
    assert answer.unknown_state_filters == ["Odd"]


@pytest.mark.parametrize("pattern", ["[a-z]{1,9}" * 3_000, "t" * 2_001, r"(?:\pN|\pL)" * 181])
def test_a_pattern_that_would_take_long_to_compile_is_refused(broker: Broker, pattern: str) -> None:
    request = ListTransactionsRequest(state_filters=[], producer_id_filters=[], transactional_id_pattern=pattern)

    assert broker.ask(request, 2).error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_pattern_is_compiled_once_for_all_partitions(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    stage_of(broker).init("t")
    monkeypatch.setattr(staged(broker), "states", lambda: dict.fromkeys(range(3), "active"))
    made: list[str] = []

    def compile_one(text: str) -> Any:
        made.append(text)
        return compile_expression(text)

    monkeypatch.setattr(listing, "compile_expression", compile_one)
    request = ListTransactionsRequest(state_filters=[], producer_id_filters=[], transactional_id_pattern="[t]")

    answer = broker.ask(request, 2)

    assert [each.transactional_id for each in answer.transaction_states] == ["t"] * 3
    assert made == ["[t]"]


def test_a_pattern_that_takes_too_long_to_match_is_refused(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    stage_of(broker).init("t")
    monkeypatch.setattr(listing, "MATCHING_S", -1.0)
    request = ListTransactionsRequest(state_filters=[], producer_id_filters=[], transactional_id_pattern="[t]")

    assert broker.ask(request, 2).error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


@pytest.mark.parametrize("version", range(3))
def test_markers_come_from_brokers_only(broker: Broker, version: int) -> None:
    topic = WritableTxnMarkerTopic(name="visits", partition_indexes=[0])
    marker = WritableTxnMarker(
        producer_id=7, producer_epoch=0, transaction_result=True, topics=[topic], coordinator_epoch=0
    )
    request = WriteTxnMarkersRequest(markers=[marker])

    def code(**more: Any) -> ErrorCode:
        return ErrorCode(broker.ask(request, version, **more).markers[0].topics[0].partitions[0].error_code)

    assert code() is ErrorCode.NONE
    assert code(authorizer=Denying((Operation.ALTER, "*"))) is ErrorCode.NONE
    stranger = Denying((Operation.ALTER, "*"), (Operation.CLUSTER_ACTION, "*"))
    assert code(authorizer=stranger) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert len(staged(broker).marked) == 2
