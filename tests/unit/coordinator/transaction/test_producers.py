"""InitProducerId: ids, epochs, fencing (KIP-360), exhausted epochs, and what waits for a producer id."""

import pytest

from kavka.coordinator.runtime.result import Producer
from kavka.coordinator.transaction.metadata import LAST_CLIENT_EPOCH
from kavka.protocol.errors import ErrorCode
from tests.support.transaction_stage import FIRST_PRODUCER_ID, V1, V2, TransactionStage

VISITS = ("visits", 0)


@pytest.fixture
def stage() -> TransactionStage:
    return TransactionStage()


def at_epoch(stage: TransactionStage, epoch: int, name: str = "t") -> Producer:
    """The id's producer, with so many epochs used up."""
    producer = stage.init(name)
    transaction = stage.shard.transactions[name]
    transaction.producer_epoch = epoch - 1
    now = transaction.prepare_producer(60_000, None, stage.time_ms)
    stage.run(lambda shard: shard.table.write(name, now, lambda _: None, None))
    return producer._replace(producer_epoch=epoch)


def test_a_new_id_gets_a_producer_id_and_epoch_0(stage: TransactionStage) -> None:
    assert stage.init("t") == Producer(FIRST_PRODUCER_ID, 0)
    assert stage.state("t") == "Empty"
    assert stage.init("u") == Producer(FIRST_PRODUCER_ID + 1, 0)


def test_each_producer_of_an_id_fences_the_one_before(stage: TransactionStage) -> None:
    old = stage.init("t")
    new = stage.init("t")

    assert new == old._replace(producer_epoch=1)
    assert stage.ask_add("t", old, VISITS).answer is ErrorCode.PRODUCER_FENCED
    assert stage.ask_end("t", old, committed=False).answer is ErrorCode.PRODUCER_FENCED
    stage.add("t", new, VISITS)


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_beyond_the_maximum_is_refused(stage: TransactionStage, timeout_ms: int) -> None:
    assert stage.ask_init("t", timeout_ms=timeout_ms).answer is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert "t" not in stage.shard.transactions
    assert stage.init("t", timeout_ms=900_000)


def test_a_running_transaction_is_aborted_before_the_next_producer_comes(stage: TransactionStage) -> None:
    old = stage.init("t")
    stage.add("t", old, VISITS)

    assert stage.ask_init("t").answer is ErrorCode.CONCURRENT_TRANSACTIONS
    assert stage.state("t") == "PrepareAbort"
    (wanted,) = stage.ports.markers
    assert (wanted.committed, wanted.producer_epoch, wanted.partitions) == (False, 1, (VISITS,))
    assert stage.ask_init("t").answer is ErrorCode.CONCURRENT_TRANSACTIONS
    stage.mark()

    assert stage.state("t") == "CompleteAbort"
    assert stage.init("t") == old._replace(producer_epoch=2)


def test_an_abort_that_cannot_be_logged_leaves_the_transaction_running(stage: TransactionStage) -> None:
    producer = stage.init("t")
    stage.add("t", producer, VISITS)

    refused = stage.ask_init("t", fails=ErrorCode.COORDINATOR_NOT_AVAILABLE)

    assert refused.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (stage.state("t"), stage.ports.markers) == ("Ongoing", [])
    assert stage.end("t", producer, committed=True).producer_epoch == 1


def test_a_producer_that_says_who_it_is_gets_the_next_epoch_once(stage: TransactionStage) -> None:
    producer = stage.init("t")

    bumped = stage.init("t", producer)
    assert bumped.producer_epoch == 1
    assert stage.init("t", producer) == bumped, "the answer was lost, and the request is sent again"
    assert stage.init("t", bumped).producer_epoch == 2
    assert stage.ask_init("t", producer).answer is ErrorCode.PRODUCER_FENCED


def test_a_producer_that_was_fenced_cannot_come_back_by_its_epoch(stage: TransactionStage) -> None:
    old = stage.init("t")
    stage.init("t")

    assert stage.ask_init("t", old).answer is ErrorCode.PRODUCER_FENCED
    stranger = Producer(old.producer_id + 77, 0)
    assert stage.ask_init("t", stranger).answer is ErrorCode.PRODUCER_FENCED


def test_an_unknown_id_takes_whatever_a_producer_says_it_had(stage: TransactionStage) -> None:
    assert stage.init("t", Producer(5, 9)) == Producer(FIRST_PRODUCER_ID, 0)


def test_a_producer_whose_transaction_timed_out_may_go_on(stage: TransactionStage) -> None:
    producer = stage.init("t", timeout_ms=1000)
    stage.add("t", producer, VISITS)
    stage.advance(20_000)
    stage.mark()

    assert stage.init("t", producer) == producer._replace(producer_epoch=1)


@pytest.mark.parametrize("says_who_it_is", [False, True])
def test_with_the_epochs_used_up_there_is_another_producer_id(stage: TransactionStage, says_who_it_is: bool) -> None:
    last = at_epoch(stage, LAST_CLIENT_EPOCH)

    fresh = stage.init("t", last if says_who_it_is else None)

    assert fresh == Producer(FIRST_PRODUCER_ID + 1, 0)
    if says_who_it_is:
        assert stage.init("t", last) == Producer(FIRST_PRODUCER_ID + 1, 0), "sent again"


def test_the_last_epoch_can_still_be_fenced(stage: TransactionStage) -> None:
    last = at_epoch(stage, LAST_CLIENT_EPOCH)
    stage.add("t", last, VISITS, version=V1)

    assert stage.ask_init("t").answer is ErrorCode.CONCURRENT_TRANSACTIONS
    assert stage.ports.markers[0].producer_epoch == 32_767
    stage.mark()
    assert stage.init("t") == Producer(FIRST_PRODUCER_ID + 1, 1)


@pytest.mark.parametrize("committed", [True, False])
def test_an_end_with_the_last_epoch_goes_on_with_another_producer_id(stage: TransactionStage, committed: bool) -> None:
    last = at_epoch(stage, LAST_CLIENT_EPOCH)
    stage.add("t", last, VISITS)

    following = stage.end("t", last, committed=committed, version=V2)

    assert following == Producer(FIRST_PRODUCER_ID + 1, 0)
    assert (stage.ports.markers[0].producer_id, stage.ports.markers[0].producer_epoch) == (FIRST_PRODUCER_ID, 32_767)
    assert stage.ask_end("t", last, committed=committed).answer is ErrorCode.CONCURRENT_TRANSACTIONS
    assert stage.ask_add("t", following, VISITS).answer is ErrorCode.CONCURRENT_TRANSACTIONS
    stage.mark()
    assert stage.end("t", last, committed=committed) == following, "sent again"
    stage.add("t", following, VISITS)


def test_the_id_that_follows_survives_a_reload(stage: TransactionStage) -> None:
    last = at_epoch(stage, LAST_CLIENT_EPOCH)
    stage.add("t", last, VISITS)
    following = stage.end("t", last, committed=True)
    stage.ports.markers.clear()

    stage.reload()
    stage.mark()

    assert stage.end("t", last, committed=True) == following
    stage.add("t", following, VISITS)


def test_while_a_producer_id_is_awaited_everybody_else_is_told_so() -> None:
    stage = TransactionStage(gives_ids=False)
    first = stage.ask_init("t")

    assert first.waits
    assert stage.ask_init("t").answer is ErrorCode.CONCURRENT_TRANSACTIONS
    stage.give_id()
    assert first.answer.producer_id == FIRST_PRODUCER_ID
    assert stage.ask_init("t").answer.producer_epoch == 1


def test_without_a_producer_id_the_client_comes_again() -> None:
    stage = TransactionStage(gives_ids=False)
    first = stage.ask_init("t")
    stage.refuse_id()

    assert first.answer is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    again = stage.ask_init("t")
    stage.give_id()
    assert again.answer.producer_epoch == 0


def test_a_producer_id_that_comes_after_a_reload_is_used_by_the_new_shard() -> None:
    stage = TransactionStage(gives_ids=False)
    asked = stage.ask_init("t")

    stage.reload()
    stage.give_id()

    assert asked.answer.producer_id == FIRST_PRODUCER_ID
    assert stage.replayed().transactions["t"].producer_id == FIRST_PRODUCER_ID


def test_an_end_that_waits_for_a_producer_id_is_decided_anew_when_it_comes() -> None:
    stage = TransactionStage()
    last = at_epoch(stage, LAST_CLIENT_EPOCH)
    stage.add("t", last, VISITS)
    stage.gives_ids = False
    ended = stage.ask_end("t", last, committed=True)

    assert ended.waits
    assert stage.ask_end("t", last, committed=True).answer is ErrorCode.CONCURRENT_TRANSACTIONS
    stage.reload()
    ended_id = stage.ports.ids.pop()
    fencing = stage.ask_init("t")
    stage.give_id()
    assert fencing.answer is ErrorCode.CONCURRENT_TRANSACTIONS
    stage.ports.ids.append(ended_id)
    stage.give_id()
    assert ended.answer is ErrorCode.CONCURRENT_TRANSACTIONS, "the transaction was aborted meanwhile"
