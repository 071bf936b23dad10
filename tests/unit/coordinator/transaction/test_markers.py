"""Carrying decisions out: markers that stand, fail, are dropped or get lost, and reloads at each step."""

import pytest

from kavka.coordinator.runtime.result import Producer
from kavka.coordinator.transaction.completion import MARKERS_DROPPED, MARKERS_RETRIED, RETRY_LONGEST_MS
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.end_txn import EndTxnRequest
from tests.support.transaction_stage import V1, V2, TransactionStage

A0, B0, B1 = ("a", 0), ("b", 0), ("b", 1)


def decided(stage: TransactionStage, *, committed: bool = True) -> Producer:
    producer = stage.init("t")
    stage.add("t", producer, A0, B0, B1)
    return stage.end("t", producer, committed=committed)


@pytest.mark.parametrize("committed", [True, False])
def test_a_transaction_is_complete_when_all_markers_stand(committed: bool) -> None:
    stage = TransactionStage()
    decided(stage, committed=committed)
    (wanted,) = stage.ports.markers
    assert (wanted.committed, wanted.partitions, wanted.coordinator_epoch) == (committed, (A0, B0, B1), 0)

    stage.mark()

    assert stage.state("t") == ("CompleteCommit" if committed else "CompleteAbort")
    stage.advance(60_000)
    assert stage.ports.markers == []


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_markers_that_fail_are_sent_again_until_they_stand(code: ErrorCode) -> None:
    stage = TransactionStage()
    decided(stage)
    for attempt in range(12):
        stage.mark({B0: code})
        assert (stage.state("t"), stage.ports.markers) == ("PrepareCommit", [])
        stage.advance(RETRY_LONGEST_MS)
        (wanted,) = stage.ports.markers
        assert wanted.partitions == (B0,)
        assert stage.counts[MARKERS_RETRIED] == attempt + 1
    stage.mark()

    assert stage.state("t") == "CompleteCommit"


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ],
)
def test_markers_with_no_place_are_dropped(code: ErrorCode) -> None:
    stage = TransactionStage()
    decided(stage)

    stage.mark({A0: code})

    assert stage.state("t") == "CompleteCommit"
    assert stage.counts[MARKERS_DROPPED] == 1


@pytest.mark.parametrize("version", [V1, V2])
def test_answers_about_another_transaction_change_nothing(version: int) -> None:
    stage = TransactionStage()
    producer = stage.init("t")
    stage.add("t", producer, A0, version=version)
    producer = stage.end("t", producer, committed=True, version=version)
    old = list(stage.ports.markers)
    stage.mark()
    stage.add("t", producer, A0, version=version)
    stage.end("t", producer, committed=False, version=version)

    new, stage.ports.markers[:] = list(stage.ports.markers), old
    stage.mark()
    assert stage.state("t") == "PrepareAbort"
    stage.ports.markers[:] = new
    stage.mark()
    assert stage.state("t") == "CompleteAbort"


def test_a_completion_that_cannot_be_logged_is_tried_again() -> None:
    stage = TransactionStage()
    decided(stage)
    stage.fail_next_append(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    stage.mark()

    assert (stage.state("t"), stage.ports.markers) == ("PrepareCommit", [])
    stage.advance(RETRY_LONGEST_MS)
    assert (stage.state("t"), stage.ports.markers) == ("CompleteCommit", [])


def test_markers_that_are_still_being_written_are_not_sent_beside_themselves() -> None:
    # Else the slower ones would end the next transaction, which has the same epoch in version 1.
    stage = TransactionStage()
    producer = stage.init("t")
    stage.add("t", producer, A0, version=V1)
    stage.end("t", producer, committed=True, version=V1)

    stage.advance(40_000)
    assert len(stage.ports.markers) == 1
    stage.mark({A0: ErrorCode.REQUEST_TIMED_OUT})
    stage.advance(40_000)
    assert len(stage.ports.markers) == 1
    stage.set_clock(60_000)
    stage.advance(5_000)
    stage.mark()

    stage.add("t", producer, A0, version=V1)
    stage.advance(20_000)
    assert (stage.state("t"), stage.ports.markers) == ("Ongoing", [])


def test_markers_that_wait_for_the_decision_to_be_committed_are_not_wanted_twice() -> None:
    stage = TransactionStage()
    producer = stage.init("t")
    stage.add("t", producer, A0, B0, B1)
    stage.holds_replies = True
    end = EndTxnRequest(transactional_id="t", producer_id=producer.producer_id, producer_epoch=0, committed=True)
    stage.ask(lambda shard, reply: shard.end(end, V1, reply))

    stage.advance(40_000)
    stage.holds_replies = False
    stage.commit()

    assert [wanted.partitions for wanted in stage.ports.markers] == [(A0, B0, B1)]


def test_markers_of_a_decision_that_was_not_committed_in_time_are_sent_after_a_while() -> None:
    stage = TransactionStage()
    producer = stage.init("t")
    stage.add("t", producer, A0, B0, B1)
    end = EndTxnRequest(transactional_id="t", producer_id=producer.producer_id, producer_epoch=0, committed=True)
    stage.holds_replies = True
    stage.ask(lambda shard, reply: shard.end(end, V1, reply))

    stage.time_out()
    stage.holds_replies = False
    stage.advance(8_000)
    assert stage.ports.markers == []
    stage.advance(12_100)

    assert [wanted.partitions for wanted in stage.ports.markers] == [(A0, B0, B1)]
    stage.mark()
    assert stage.state("t") == "CompleteCommit"


def test_markers_that_are_never_answered_are_withdrawn_and_sent_anew() -> None:
    stage = TransactionStage()
    producer = stage.init("t")
    stage.add("t", producer, A0, version=V1)
    stage.end("t", producer, committed=True, version=V1)
    (lost,) = stage.ports.markers

    stage.advance(80_000)

    first, again = stage.ports.markers
    assert first is lost
    assert (lost.dispatch.is_withdrawn(), again.dispatch.is_withdrawn()) == (True, False)
    stage.ports.markers[:] = [lost]
    stage.mark()
    assert stage.state("t") == "PrepareCommit", "what comes late says nothing of those that were sent since"
    stage.ports.markers[:] = [again]
    stage.mark()
    assert stage.state("t") == "CompleteCommit"
    assert again.dispatch.is_withdrawn() is False


def test_whoever_stops_coordinating_withdraws_the_markers_that_are_on_their_way() -> None:
    stage = TransactionStage()
    decided(stage)
    (old,) = stage.ports.markers
    assert not old.dispatch.is_withdrawn()

    stage.reload()

    old_again, new = stage.ports.markers
    assert old_again is old
    assert (old.dispatch.is_withdrawn(), new.dispatch.is_withdrawn()) == (True, False)


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("answered", ["before any answer", "half way", "before the completion is logged"])
def test_whoever_loads_a_decision_carries_it_out(committed: bool, answered: str) -> None:
    stage = TransactionStage()
    decided(stage, committed=committed)
    if answered == "half way":
        stage.mark({B1: ErrorCode.NOT_LEADER_OR_FOLLOWER})
    elif answered == "before the completion is logged":
        stage.fail_next_append(ErrorCode.NOT_COORDINATOR)
        stage.mark()
    stage.ports.markers.clear()

    stage.reload()

    (wanted,) = stage.ports.markers
    assert (wanted.committed, wanted.partitions, wanted.coordinator_epoch) == (committed, (A0, B0, B1), 1)
    stage.mark()
    assert stage.state("t") == ("CompleteCommit" if committed else "CompleteAbort")
    assert {wanted.committed for wanted, _ in stage.written} == {committed}


def test_a_decision_about_nothing_is_completed_after_a_reload() -> None:
    stage = TransactionStage()
    producer = stage.init("t")
    stage.end("t", producer, committed=False)
    del stage.log[-1]  # the completion did not come into the log

    stage.reload()
    assert stage.state("t") == "PrepareAbort"
    stage.advance(RETRY_LONGEST_MS)

    assert stage.state("t") == "CompleteAbort"


def test_an_answer_to_the_shard_that_was_says_nothing_to_the_one_that_is() -> None:
    stage = TransactionStage()
    decided(stage)
    old = list(stage.ports.markers)
    stage.ports.markers.clear()
    stage.reload()
    (again,) = stage.ports.markers

    stage.ports.markers[:] = old
    stage.mark()
    assert stage.state("t") == "PrepareCommit"
    stage.ports.markers[:] = [again]
    stage.mark()

    assert stage.state("t") == "CompleteCommit"


def test_the_markers_of_a_decision_that_was_loaded_wait_until_it_is_committed() -> None:
    stage = TransactionStage()
    decided(stage)
    stage.ports.markers.clear()
    stage.holds_replies = True

    # A new leader: what is at the end of its log may be on no other replica.
    stage.reload()
    assert stage.ports.markers == []

    stage.holds_replies = False
    stage.commit()
    (wanted,) = stage.ports.markers
    assert (wanted.partitions, wanted.coordinator_epoch) == ((A0, B0, B1), 1)
    stage.mark()
    assert stage.state("t") == "CompleteCommit"


def test_the_markers_of_a_decision_that_is_not_committed_in_time_are_sent_later() -> None:
    stage = TransactionStage()
    decided(stage)
    stage.ports.markers.clear()
    stage.holds_replies = True
    stage.reload()

    stage.time_out()
    stage.holds_replies = False
    assert stage.ports.markers == []

    stage.advance(60_000)
    (wanted,) = stage.ports.markers
    stage.mark()
    assert (wanted.partitions, stage.state("t")) == ((A0, B0, B1), "CompleteCommit")


@pytest.mark.parametrize(("agreed", "version"), [(0, 0), (1, 1), (2, 1)])
def test_records_are_such_as_all_brokers_of_the_cluster_read(agreed: int, version: int) -> None:
    stage = TransactionStage()
    stage.ports.transaction_version = agreed

    producer = stage.init("t")
    stage.add("t", producer, A0, version=V1)
    stage.end("t", producer, committed=True, version=V1)
    stage.mark()

    assert {record.value_version for record in stage.records()} == {version}
    stage.reload()
    assert (stage.producer("t"), stage.state("t")) == (producer, "CompleteCommit")
