"""A shard's timers: they run as operations do, on a thread that may wait, and end with the shard."""

from collections.abc import Iterator

import pytest

from kavka.coordinator.runtime.result import NOTHING, Result
from kavka.coordinator.runtime.shard_runner import ShardState
from kavka.coordinator.runtime.shard_timers import RETRY_MS, ShardTimers
from kavka.protocol.errors import BrokerError, ErrorCode
from tests.support.internal_log import MemoryLog
from tests.support.tiny_shard import Answers, TinyShard, TinyWorld, not_refused, record_of


class Scene:
    def __init__(self) -> None:
        self.world = TinyWorld()
        self.log = MemoryLog()
        self.world.lead(self.log)
        (self.shard,) = self.world.runtime.shards()
        self.answers = Answers()

    def schedule(self, key: str, delay_ms: float, offset: int) -> None:
        def schedule(shard: TinyShard) -> Result:
            shard.context.timers.schedule(key, delay_ms, lambda: shard.put(key, offset, self.answers.reply))
            return NOTHING

        self.world.runtime.run(0, schedule, not_refused)


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene = Scene()
    yield scene
    scene.world.runtime.stop()


def test_an_operation_runs_when_its_time_has_come(scene: Scene) -> None:
    scene.schedule("a", 100, 1)
    scene.world.delays.advance(99)
    scene.world.run_jobs()
    assert scene.log.end_offset == 0
    assert scene.shard.context.timers.is_scheduled("a")

    scene.world.delays.advance(1)
    assert scene.log.end_offset == 0, "the timer's thread must not append"
    scene.world.run_jobs()

    assert (scene.world.offsets(), scene.answers.replies) == ({"a": 1}, [1])
    assert not scene.shard.context.timers.is_scheduled("a")


def test_the_last_operation_of_a_key_counts(scene: Scene) -> None:
    scene.schedule("a", 100, 1)
    scene.schedule("a", 50, 2)

    scene.world.delays.advance(1000)
    scene.world.run_jobs()

    assert (scene.world.offsets(), scene.log.end_offset, scene.world.delays.entries) == ({"a": 2}, 1, [])


def test_what_is_cancelled_or_replaced_after_it_fell_due_does_not_run(scene: Scene) -> None:
    scene.schedule("a", 10, 1)
    scene.schedule("b", 10, 1)
    scene.world.delays.advance(10)

    scene.shard.context.timers.cancel("a")
    scene.schedule("b", 10, 2)
    scene.world.run_jobs()
    assert scene.world.offsets() == {}

    scene.world.delays.advance(10)
    scene.world.run_jobs()
    assert scene.world.offsets() == {"b": 2}


def test_many_that_fall_due_together_take_one_job(scene: Scene) -> None:
    for number in range(100):
        scene.schedule(f"g{number}", 10, number)

    scene.world.delays.advance(10)

    assert len(scene.world.jobs) == 1
    scene.world.run_jobs()
    assert len(scene.world.offsets()) == 100
    scene.schedule("later", 10, 1)
    scene.world.delays.advance(10)
    assert len(scene.world.jobs) == 1


def test_an_operation_that_fails_leaves_the_others_alone(scene: Scene) -> None:
    def fail() -> Result:
        raise ZeroDivisionError

    def refuse() -> Result:
        raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)

    scene.shard.context.timers.schedule("fail", 10, fail)
    scene.shard.context.timers.schedule("refuse", 10, refuse)
    scene.schedule("a", 10, 1)

    scene.world.delays.advance(10)
    scene.world.run_jobs()

    assert scene.world.offsets() == {"a": 1}


def test_an_operation_may_schedule_itself_again(scene: Scene) -> None:
    runs = []

    def again() -> Result:
        runs.append(1)
        scene.shard.context.timers.schedule("again", 10, again)
        return Result([record_of("g", len(runs))])

    scene.shard.context.timers.schedule("again", 10, again)
    for _ in range(3):
        scene.world.delays.advance(10)
        scene.world.run_jobs()

    assert scene.world.offsets() == {"g": 3}


def test_timers_end_with_their_shard(scene: Scene) -> None:
    scene.schedule("a", 10, 1)
    scene.schedule("b", 20, 1)
    scene.world.delays.advance(10)

    scene.world.runtime.resigns(0)
    scene.world.run_jobs()

    assert (scene.world.delays.entries, scene.log.end_offset) == ([], 0)
    scene.world.lead(scene.log, leader_epoch=0)
    assert scene.world.runtime.states() == {0: ShardState.ACTIVE}


@pytest.mark.parametrize("error", [ZeroDivisionError(), BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)])
def test_an_operation_that_fails_comes_again(scene: Scene, error: Exception) -> None:
    runs: list[int] = []

    def fail_twice() -> Result:
        runs.append(1)
        if len(runs) < 3:
            raise error
        return Result([record_of("g", len(runs))])

    scene.shard.context.timers.schedule("fails", 10, fail_twice)
    for _ in range(4):
        scene.world.delays.advance(RETRY_MS)
        scene.world.run_jobs()

    assert (len(runs), scene.world.offsets(), scene.world.delays.entries) == (3, {"g": 3}, [])


def test_what_an_operation_that_fails_has_scheduled_stays(scene: Scene) -> None:
    runs: list[int] = []

    def again() -> Result:
        runs.append(1)
        scene.shard.context.timers.schedule("again", 100, again)
        raise ZeroDivisionError

    scene.shard.context.timers.schedule("again", 10, again)
    for _ in range(3):
        scene.world.delays.advance(100)
        scene.world.run_jobs()

    assert len(runs) == 3


def test_what_is_due_is_run_later_where_no_thread_can_be_had() -> None:
    world = TinyWorld()
    wakes: list[bool] = []

    def wake() -> None:
        wakes.append(len(wakes) > 0)
        if not wakes[-1]:
            raise RuntimeError("can't start new thread")

    timers = ShardTimers(world.delays, wake)
    timers.schedule("a", 10, lambda: NOTHING)
    world.delays.advance(10)
    assert wakes == [False]
    world.delays.advance(RETRY_MS)

    assert wakes == [False, True]
    assert timers.next_due() is not None


def test_a_shard_that_cannot_begin_serves_nobody_until_it_is_loaded_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    world = TinyWorld()
    states: list[str] = []
    whole = TinyShard.loaded

    def loaded(self: TinyShard) -> Result:
        if not states:
            self.context.timers.schedule("left behind", 10, lambda: NOTHING)
            states.append("fails")
            raise ZeroDivisionError
        states.append(str(len(world.delays.entries)) + " " + world.runtime.states()[0].value)
        return whole(self)

    monkeypatch.setattr(TinyShard, "loaded", loaded)
    world.runtime.leads(0, 0, MemoryLog())
    world.wait_for(ShardState.FAILED)
    assert world.get("g").errors == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    world.wait_for(ShardState.ACTIVE)

    assert states == ["fails", "0 active"]
    world.runtime.stop()
