"""EndTxn in every state, of both versions, once and again."""

from collections.abc import Callable
from typing import Any

import pytest

from kavka.coordinator.runtime.result import Producer
from kavka.protocol.errors import ErrorCode
from tests.support.transaction_stage import V1, V2, TransactionStage

VISITS = ("visits", 0)
NONE, INVALID, CONCURRENT, FENCED = (
    ErrorCode.NONE,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.PRODUCER_FENCED,
)


def reach(stage: TransactionStage, state: str, version: int) -> tuple[Producer, Producer]:
    """The producer of the transaction that led to that state, and the producer as it goes on."""
    producer = following = stage.init("t")
    if state != "Empty":
        stage.add("t", producer, VISITS, version=version)
    if state.startswith(("Prepare", "Complete")):
        following = stage.end("t", producer, committed=state.endswith("Commit"), version=version)
    if state.startswith("Complete"):
        stage.mark()
    assert stage.state("t") == state
    return producer, following


def code_of(answer: Any) -> ErrorCode:
    return answer if isinstance(answer, ErrorCode) else ErrorCode(answer.error_code)


@pytest.mark.parametrize(
    ("state", "commit", "abort"),
    [
        ("Empty", INVALID, INVALID),
        ("Ongoing", NONE, NONE),
        ("PrepareCommit", CONCURRENT, CONCURRENT),
        ("PrepareAbort", CONCURRENT, CONCURRENT),
        ("CompleteCommit", NONE, INVALID),
        ("CompleteAbort", INVALID, NONE),
    ],
)
def test_ends_of_version_1_go_by_the_state(state: str, commit: ErrorCode, abort: ErrorCode) -> None:
    for committed, expected in ((True, commit), (False, abort)):
        stage = TransactionStage()
        producer, following = reach(stage, state, V1)
        assert following == producer

        answer = stage.ask_end("t", producer, committed=committed, version=V1).answer

        assert code_of(answer) is expected
        if expected is NONE and state == "Ongoing":
            assert stage.state("t") == ("PrepareCommit" if committed else "PrepareAbort")
        else:
            assert stage.state("t") == state


@pytest.mark.parametrize(
    ("state", "commit", "abort"),
    [
        ("Empty", INVALID, NONE),
        ("Ongoing", NONE, NONE),
        ("PrepareCommit", CONCURRENT, CONCURRENT),
        ("PrepareAbort", CONCURRENT, CONCURRENT),
        ("CompleteCommit", INVALID, NONE),
        ("CompleteAbort", INVALID, NONE),
    ],
)
def test_ends_of_version_2_with_the_current_epoch_are_new_ends(state: str, commit: ErrorCode, abort: ErrorCode) -> None:
    for committed, expected in ((True, commit), (False, abort)):
        stage = TransactionStage()
        _, producer = reach(stage, state, V2)

        answer = stage.ask_end("t", producer, committed=committed, version=V2).answer

        assert code_of(answer) is expected
        if expected is NONE:
            assert answer.producer_epoch == producer.producer_epoch + 1


@pytest.mark.parametrize(
    ("state", "commit", "abort"),
    [
        ("PrepareCommit", CONCURRENT, CONCURRENT),
        ("PrepareAbort", CONCURRENT, CONCURRENT),
        ("CompleteCommit", NONE, INVALID),
        ("CompleteAbort", FENCED, NONE),
    ],
)
def test_ends_of_version_2_with_the_epoch_before_are_the_same_end_again(
    state: str, commit: ErrorCode, abort: ErrorCode
) -> None:
    for committed, expected in ((True, commit), (False, abort)):
        stage = TransactionStage()
        producer, following = reach(stage, state, V2)
        records = len(stage.log)

        answer = stage.ask_end("t", producer, committed=committed, version=V2).answer

        assert code_of(answer) is expected
        assert len(stage.log) == records
        if expected is NONE:
            assert Producer(answer.producer_id, answer.producer_epoch) == following


@pytest.mark.parametrize("version", [V1, V2])
@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda known: known._replace(producer_id=5), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (lambda known: known._replace(producer_epoch=known.producer_epoch + 1), FENCED),
        (lambda known: known._replace(producer_epoch=known.producer_epoch - 1), FENCED),
    ],
)
def test_a_stranger_ends_nothing(version: int, change: Callable[[Producer], Producer], error: ErrorCode) -> None:
    stage = TransactionStage()
    stage.init("t")
    producer = stage.init("t")
    stage.add("t", producer, VISITS)

    assert stage.ask_end("t", change(producer), committed=True, version=version).answer is error
    assert stage.ask_end("u", producer, committed=True, version=version).answer is (
        ErrorCode.INVALID_PRODUCER_ID_MAPPING
    )
    assert stage.state("t") == "Ongoing"


def test_a_producer_that_goes_on_before_its_end_is_complete_is_told_to_wait() -> None:
    stage = TransactionStage()
    producer = stage.init("t")
    stage.add("t", producer, VISITS)
    following = stage.end("t", producer, committed=True)

    assert stage.ask_end("t", following, committed=False).answer is CONCURRENT
    stage.mark()
    assert stage.end("t", following, committed=False).producer_epoch == following.producer_epoch + 1


def test_a_commit_that_comes_after_the_coordinators_abort_is_fenced() -> None:
    stage = TransactionStage()
    producer = stage.init("t", timeout_ms=1000)
    stage.add("t", producer, VISITS)
    stage.advance(20_000)
    stage.mark()

    assert stage.ask_end("t", producer, committed=True).answer is FENCED
    assert stage.end("t", producer, committed=False) == producer._replace(producer_epoch=1)


def test_an_end_sent_again_says_nothing_of_a_later_transaction_of_version_1() -> None:
    stage = TransactionStage()
    producer = stage.init("t")
    stage.add("t", producer, VISITS)
    following = stage.end("t", producer, committed=False)
    stage.mark()
    stage.add("t", following, VISITS, version=V1)
    stage.end("t", following, committed=True, version=V1)
    stage.mark()

    assert stage.ask_end("t", producer, committed=True, version=V2).answer is FENCED


def test_an_abort_of_nothing_needs_no_markers_and_completes_at_once() -> None:
    stage = TransactionStage()
    producer = stage.init("t")

    following = stage.end("t", producer, committed=False)

    assert following == producer._replace(producer_epoch=1)
    assert (stage.state("t"), stage.ports.markers) == ("CompleteAbort", [])
    stage.add("t", following, VISITS)


def test_each_transaction_of_version_2_has_an_epoch_of_its_own() -> None:
    stage = TransactionStage()
    producer = stage.init("t")
    for number in range(3):
        stage.add("t", producer, VISITS)
        assert producer.producer_epoch == number
        producer = stage.end("t", producer, committed=True)
        assert stage.ports.markers[0].producer_epoch == number + 1
        assert stage.ports.markers[0].transaction_version == V2
        stage.mark()


def test_a_transaction_of_version_1_keeps_its_epoch() -> None:
    stage = TransactionStage()
    producer = stage.init("t")
    stage.add("t", producer, VISITS, version=V1)

    assert stage.end("t", producer, committed=True, version=V1) == producer
    assert (stage.ports.markers[0].producer_epoch, stage.ports.markers[0].transaction_version) == (0, 0)


def test_the_answer_waits_for_the_log_and_the_markers_too() -> None:
    stage = TransactionStage()
    producer = stage.init("t")
    stage.add("t", producer, VISITS)
    stage.holds_replies = True

    ended = stage.ask_end("t", producer, committed=True)

    assert ended.waits
    assert stage.ports.markers == []
    stage.holds_replies = False
    stage.commit()
    assert not ended.waits
    assert [wanted.committed for wanted in stage.ports.markers] == [True]


@pytest.mark.parametrize("code", [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR])
def test_a_decision_that_cannot_be_logged_is_none(code: ErrorCode) -> None:
    stage = TransactionStage()
    producer = stage.init("t")
    stage.add("t", producer, VISITS)
    stage.fail_next_append(code)

    assert stage.ask_end("t", producer, committed=True).error is code
    assert (stage.state("t"), stage.ports.markers) == ("Ongoing", [])
    assert stage.end("t", producer, committed=False).producer_epoch == 1
