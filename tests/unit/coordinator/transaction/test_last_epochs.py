"""Where no epoch is left: whoever ends a transaction, its producer goes on with another id, and 32,767 is nobody's."""

import pytest

from kavka.coordinator.runtime.result import Producer
from kavka.coordinator.transaction.metadata import LAST_CLIENT_EPOCH, MAX_EPOCH
from kavka.coordinator.transaction.states import AT_REST, TransactionState
from kavka.protocol.errors import ErrorCode
from tests.support.transaction_stage import FIRST_PRODUCER_ID, V1, V2, TransactionStage

VISITS = ("visits", 0)
FRESH = Producer(FIRST_PRODUCER_ID + 1, 0)


def at_epoch(
    stage: TransactionStage, epoch: int, state: TransactionState = TransactionState.EMPTY, name: str = "t"
) -> Producer:
    """The id's producer, as a log says that has that epoch in that state."""
    producer = stage.init(name)
    now = stage.shard.transactions[name].prepare_producer(1000, None, stage.time_ms)
    partitions = frozenset() if state in AT_REST else frozenset({VISITS})
    begun = -1 if state is TransactionState.EMPTY else stage.time_ms
    now = now._replace(
        producer_epoch=epoch, state=state, partitions=partitions, start_ms=begun, client_transaction_version=V2
    )
    stage.run(lambda shard: shard.table.write(name, now, lambda _: None, None))
    stage.reload()
    return producer._replace(producer_epoch=epoch)


@pytest.fixture
def stage() -> TransactionStage:
    return TransactionStage()


@pytest.mark.parametrize("version", [V1, V2])
def test_a_timeout_at_the_last_epoch_goes_on_with_another_producer_id(stage: TransactionStage, version: int) -> None:
    last = at_epoch(stage, LAST_CLIENT_EPOCH)
    stage.add("t", last, VISITS, version=version)
    stage.advance(20_000)
    (wanted,) = stage.ports.markers
    assert (wanted.producer_id, wanted.producer_epoch) == (FIRST_PRODUCER_ID, MAX_EPOCH)
    stage.mark()

    assert stage.end("t", last, committed=False) == FRESH, "the producer's own abort, which came late"
    assert stage.init("t", last) == FRESH
    stage.add("t", FRESH, VISITS, version=version)
    assert stage.end("t", FRESH, committed=True, version=version).producer_id == FRESH.producer_id


def test_a_fence_at_the_last_epoch_goes_on_with_another_producer_id(stage: TransactionStage) -> None:
    last = at_epoch(stage, LAST_CLIENT_EPOCH)
    stage.add("t", last, VISITS)
    assert stage.ask_init("t").answer is ErrorCode.CONCURRENT_TRANSACTIONS
    stage.mark()

    assert stage.end("t", last, committed=False) == FRESH
    assert stage.init("t") == FRESH._replace(producer_epoch=1)
    assert stage.ask_end("t", last, committed=False).answer is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_a_timeout_without_a_producer_id_is_tried_again() -> None:
    stage = TransactionStage()
    last = at_epoch(stage, LAST_CLIENT_EPOCH)
    stage.add("t", last, VISITS)
    stage.gives_ids = False
    stage.advance(20_000)
    assert stage.ask_end("t", last, committed=True).answer is ErrorCode.CONCURRENT_TRANSACTIONS
    stage.refuse_id()
    assert stage.state("t") == "Ongoing"

    stage.advance(20_000)
    stage.reload()
    stage.give_id()

    assert stage.state("t") == "PrepareAbort"


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("version", [V1, V2])
def test_a_transaction_of_the_epoch_that_is_nobodys_ends(
    stage: TransactionStage, committed: bool, version: int
) -> None:
    producer = at_epoch(stage, MAX_EPOCH, TransactionState.ONGOING)

    stage.end("t", producer, committed=committed, version=version)

    assert [(each.producer_epoch, each.committed) for each in stage.ports.markers] == [(MAX_EPOCH, committed)]
    stage.mark()
    assert stage.init("t").producer_id == FIRST_PRODUCER_ID + 1


def test_a_transaction_of_the_epoch_that_is_nobodys_times_out(stage: TransactionStage) -> None:
    producer = at_epoch(stage, MAX_EPOCH, TransactionState.ONGOING)
    stage.advance(20_000)
    stage.mark()

    assert stage.state("t") == "CompleteAbort"
    assert stage.end("t", producer, committed=False) == FRESH


def test_a_transaction_of_the_epoch_that_is_nobodys_is_fenced(stage: TransactionStage) -> None:
    at_epoch(stage, MAX_EPOCH, TransactionState.ONGOING)
    assert stage.ask_init("t").answer is ErrorCode.CONCURRENT_TRANSACTIONS
    stage.mark()

    assert stage.init("t") == FRESH._replace(producer_epoch=1)


@pytest.mark.parametrize("state", [TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT])
def test_what_was_aborted_at_the_epoch_that_is_nobodys_goes_on(
    stage: TransactionStage, state: TransactionState
) -> None:
    before = at_epoch(stage, MAX_EPOCH, state)._replace(producer_epoch=LAST_CLIENT_EPOCH)
    stage.mark()

    assert stage.init("t", before) == FRESH
    assert stage.init("t", before) == FRESH, "sent again"


def test_an_abort_sent_again_never_gives_the_epoch_that_is_nobodys(stage: TransactionStage) -> None:
    before = at_epoch(stage, MAX_EPOCH, TransactionState.COMPLETE_ABORT)._replace(producer_epoch=LAST_CLIENT_EPOCH)

    assert stage.ask_end("t", before, committed=True).answer is ErrorCode.PRODUCER_FENCED
    assert stage.end("t", before, committed=False) == FRESH
    assert stage.end("t", before, committed=False) == FRESH, "sent again"
    stage.add("t", FRESH, VISITS)


def test_a_producer_at_rest_with_the_epoch_that_is_nobodys_is_replaced(stage: TransactionStage) -> None:
    producer = at_epoch(stage, MAX_EPOCH)

    assert stage.ask_init("t", producer._replace(producer_epoch=5)).answer is ErrorCode.PRODUCER_FENCED
    assert stage.init("t", producer) == FRESH


@pytest.mark.parametrize("epoch", [7, LAST_CLIENT_EPOCH])
@pytest.mark.parametrize("is_decided", [True, False])
def test_a_producer_whose_transaction_timed_out_may_go_on_after_a_restart(
    stage: TransactionStage, epoch: int, is_decided: bool
) -> None:
    producer = at_epoch(stage, epoch)
    stage.add("t", producer, VISITS)
    stage.advance(20_000)
    if is_decided:
        stage.reload()
        stage.ports.markers.pop(0)
    stage.mark()
    stage.reload()

    following = FRESH if epoch == LAST_CLIENT_EPOCH else producer._replace(producer_epoch=epoch + 1)
    assert stage.init("t", producer) == following
    assert stage.ask_init("t", producer._replace(producer_epoch=3)).answer is ErrorCode.PRODUCER_FENCED
