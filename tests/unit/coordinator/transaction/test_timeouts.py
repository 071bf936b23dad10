"""What time does: late transactions are aborted, unused ids expire."""

from collections.abc import Callable, Hashable

import pytest

from kavka.coordinator.runtime.result import NOTHING, Result
from kavka.coordinator.transaction.metadata import tombstone_of
from kavka.coordinator.transaction.timeouts import EXPIRED_PER_APPEND, IDS_EXPIRED, TRANSACTIONS_TIMED_OUT
from kavka.protocol.errors import ErrorCode
from tests.support.transaction_stage import V1, V2, TransactionStage

VISITS = ("visits", 0)
DAY_MS = 86_400_000
SETTINGS = {
    "transactional.id.expiration.ms": str(2 * DAY_MS),
    "transaction.remove.expired.transaction.cleanup.interval.ms": "3600000",
}


@pytest.mark.parametrize("version", [V1, V2])
def test_a_transaction_that_lasts_too_long_is_aborted_and_its_producer_fenced(version: int) -> None:
    stage = TransactionStage()
    producer = stage.init("t", timeout_ms=15_000)
    stage.add("t", producer, VISITS, version=version)
    stage.advance(14_000)
    assert stage.state("t") == "Ongoing"

    stage.advance(11_001)

    assert stage.state("t") == "PrepareAbort"
    assert [wanted.committed for wanted in stage.ports.markers] == [False]
    assert stage.counts[TRANSACTIONS_TIMED_OUT] == 1
    stage.mark()
    assert stage.ask_add("t", producer, VISITS, version=version).answer is ErrorCode.PRODUCER_FENCED
    assert stage.ask_end("t", producer, committed=True, version=V1).answer is ErrorCode.PRODUCER_FENCED
    assert stage.ask_end("t", producer, committed=True, version=V2).answer is ErrorCode.PRODUCER_FENCED
    assert stage.end("t", producer, committed=False, version=V2).producer_epoch == 1


def test_an_abort_that_fails_is_tried_again_and_keeps_no_other_waiting() -> None:
    stage = TransactionStage()
    for name in ("t", "u", "v"):
        stage.add(name, stage.init(name, timeout_ms=1000), VISITS)
    stage.fail_next_append(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    stage.advance(10_000)
    assert sorted(stage.state(name) for name in "tuv") == ["Ongoing", "PrepareAbort", "PrepareAbort"]
    assert stage.counts[TRANSACTIONS_TIMED_OUT] == 2
    stage.advance(10_000)
    assert {stage.state(name) for name in "tuv"} == {"PrepareAbort"}
    assert stage.refused == []


def test_the_clock_goes_on_after_a_reload() -> None:
    stage = TransactionStage()
    stage.add("t", stage.init("t", timeout_ms=15_000), VISITS)
    stage.advance(9_000)
    stage.reload()
    stage.advance(10_001)

    assert stage.state("t") == "PrepareAbort"


def test_ids_that_nobody_uses_are_forgotten_unless_a_transaction_runs() -> None:
    stage = TransactionStage(SETTINGS)
    stage.init("empty")
    for name in ("committed", "ongoing", "decided"):
        producer = stage.init(name, timeout_ms=900_000)
        stage.add(name, producer, VISITS)
        if name != "ongoing":
            stage.end(name, producer, committed=True)
        if name == "committed":
            stage.mark()
    stage.shard.transactions["ongoing"].timeout_ms = 9 * DAY_MS
    stage.advance(DAY_MS)
    stage.init("used")
    stage.advance(DAY_MS + 3_600_000)

    assert set(stage.shard.transactions) == {"ongoing", "decided", "used"}
    assert set(stage.replayed().transactions) == {"ongoing", "decided", "used"}
    assert stage.counts[IDS_EXPIRED] == 2
    assert stage.init("empty").producer_epoch == 0


def test_many_ids_expire_in_several_appends() -> None:
    stage = TransactionStage(SETTINGS)
    count = 2 * EXPIRED_PER_APPEND + 1
    for number in range(count):
        stage.init(f"id-{number}")
    stage.advance(3 * DAY_MS)

    assert stage.shard.transactions == {}
    assert len(stage.log) == 2 * count


def test_between_two_appends_of_expired_ids_others_have_their_turn() -> None:
    stage = TransactionStage(SETTINGS)
    names = [f"t{number}" for number in range(EXPIRED_PER_APPEND + 2)]
    for name in names:
        stage.init(name)
    last = names[-1]
    stage.advance(2 * DAY_MS - 1)
    used: list[str] = []
    make = stage.timers.schedule

    def use_the_last_before_the_next_turn(key: Hashable, delay_ms: float, operation: Callable[[], Result]) -> None:
        if key == "expired ids" and not used:
            used.append(last)
            make("use", 0, lambda: stage.init(last) and NOTHING)
        make(key, delay_ms, operation)

    stage.timers.schedule = use_the_last_before_the_next_turn  # type: ignore[method-assign]  # listens in
    stage.advance(3_600_000)

    assert used == [last]
    assert set(stage.shard.transactions) == {last}
    assert stage.producer(last).producer_epoch == 1


def test_ids_that_cannot_be_forgotten_now_are_forgotten_later() -> None:
    stage = TransactionStage(SETTINGS)
    stage.init("t")
    stage.advance(2 * DAY_MS - 1)
    stage.fail_next_append(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    stage.advance(3_600_000)
    assert "t" in stage.shard.transactions
    assert stage.counts[IDS_EXPIRED] == 0

    stage.advance(3_600_000)
    assert stage.shard.transactions == {}
    assert stage.counts[IDS_EXPIRED] == 1


def test_an_id_that_is_forgotten_while_it_ends_stops_no_clock() -> None:
    stage = TransactionStage()
    for name in ("t", "u"):
        stage.add(name, stage.init(name, timeout_ms=60_000), VISITS)
    stage.end("t", stage.producer("t"), committed=True)
    stage.run(lambda shard: Result([tombstone_of("t")]))

    stage.advance(90_000)

    assert (stage.state("u"), stage.refused) == ("PrepareAbort", [])
