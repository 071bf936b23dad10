"""Adding and verifying partitions, in every state."""

from collections.abc import Callable

import pytest

from kavka.coordinator.runtime.result import Producer
from kavka.protocol.errors import ErrorCode
from tests.support.transaction_stage import V1, V2, TransactionStage

A0, A1, B0 = ("a", 0), ("a", 1), ("b", 0)
STATES: dict[str, Callable[[TransactionStage], Producer]] = {}


def reaches(function: Callable[[TransactionStage], Producer]) -> Callable[[TransactionStage], Producer]:
    STATES[function.__name__.title().replace("_", "")] = function
    return function


@reaches
def empty(stage: TransactionStage) -> Producer:
    return stage.init("t")


@reaches
def ongoing(stage: TransactionStage) -> Producer:
    producer = stage.init("t")
    stage.add("t", producer, A0, version=V1)
    return producer


@reaches
def prepare_commit(stage: TransactionStage) -> Producer:
    return stage.end("t", ongoing(stage), committed=True, version=V1)


@reaches
def prepare_abort(stage: TransactionStage) -> Producer:
    return stage.end("t", ongoing(stage), committed=False, version=V1)


@reaches
def complete_commit(stage: TransactionStage) -> Producer:
    producer = prepare_commit(stage)
    stage.mark()
    return producer


@reaches
def complete_abort(stage: TransactionStage) -> Producer:
    producer = prepare_abort(stage)
    stage.mark()
    return producer


@pytest.mark.parametrize("state", list(STATES))
def test_partitions_are_added_unless_a_transaction_is_ending(state: str) -> None:
    stage = TransactionStage()
    producer = STATES[state](stage)
    assert stage.state("t") == state

    answer = stage.ask_add("t", producer, A1, B0).answer

    if state.startswith("Prepare"):
        assert answer is ErrorCode.CONCURRENT_TRANSACTIONS
        assert stage.state("t") == state
    else:
        assert answer is ErrorCode.NONE
        assert stage.state("t") == "Ongoing"
        assert stage.shard.transactions["t"].partitions == {A1, B0} | ({A0} if state == "Ongoing" else set())


@pytest.mark.parametrize("state", list(STATES))
def test_verification_asks_whether_a_partition_takes_part(state: str) -> None:
    stage = TransactionStage()
    producer = STATES[state](stage)
    records = len(stage.log)

    codes = stage.verify("t", producer, A0, A1)

    expected = {A0: ErrorCode.TRANSACTION_ABORTABLE, A1: ErrorCode.TRANSACTION_ABORTABLE}
    if state.startswith("Prepare"):
        expected = dict.fromkeys([A0, A1], ErrorCode.CONCURRENT_TRANSACTIONS)
    elif state == "Ongoing":
        expected[A0] = ErrorCode.NONE
    assert codes == expected
    assert (stage.state("t"), len(stage.log)) == (state, records)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda known: known._replace(producer_id=5), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (lambda known: known._replace(producer_epoch=1), ErrorCode.PRODUCER_FENCED),
        (lambda known: known._replace(producer_epoch=-1), ErrorCode.PRODUCER_FENCED),
    ],
)
def test_a_strange_producer_is_refused(change: Callable[[Producer], Producer], error: ErrorCode) -> None:
    stage = TransactionStage()
    stranger = change(ongoing(stage))

    assert stage.ask_add("t", stranger, B0).answer is error
    assert stage.verify("t", stranger, A0) == {A0: error}


def test_an_unknown_id_has_no_transaction() -> None:
    stage = TransactionStage()

    assert stage.ask_add("t", Producer(1, 0), A0).answer is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert stage.verify("t", Producer(1, 0), A0) == {A0: ErrorCode.INVALID_PRODUCER_ID_MAPPING}


def test_partitions_that_take_part_already_cost_no_record() -> None:
    stage = TransactionStage()
    producer = stage.init("t")
    stage.add("t", producer, A0, B0)
    records = len(stage.log)

    stage.add("t", producer, A0)

    assert len(stage.log) == records
    stage.add("t", producer, A0, A1)
    assert len(stage.log) == records + 1


def test_the_transaction_begins_with_its_first_partition() -> None:
    stage = TransactionStage()
    producer = stage.init("t")
    stage.advance(5000)
    began_ms = stage.time_ms
    stage.add("t", producer, A0)
    stage.advance(1000)
    stage.add("t", producer, A1)

    transaction = stage.shard.transactions["t"]
    assert (transaction.start_ms, transaction.last_update_ms) == (began_ms, began_ms + 1000)
    assert transaction.client_transaction_version == V2


def test_partitions_that_cannot_be_logged_take_no_part() -> None:
    stage = TransactionStage()
    producer = stage.init("t")
    stage.fail_next_append(ErrorCode.NOT_COORDINATOR)

    assert stage.ask_add("t", producer, A0).error is ErrorCode.NOT_COORDINATOR
    assert stage.state("t") == "Empty"
    assert stage.verify("t", producer, A0) == {A0: ErrorCode.TRANSACTION_ABORTABLE}


def test_an_answer_waits_until_what_it_tells_of_is_committed() -> None:
    stage = TransactionStage()
    producer = stage.init("t")
    stage.holds_replies = True

    first = stage.ask_add("t", producer, A0)
    second = stage.ask_add("t", producer, A0)

    assert first.waits
    assert second.waits
    stage.holds_replies = False
    stage.commit()
    assert (first.answer, second.answer) == (ErrorCode.NONE, ErrorCode.NONE)
