"""A shard's timers: they run as operations do, on a thread that may wait, and end with the shard."""

from collections.abc import Iterator

import pytest

from kavka.coordinator.runtime.result import NOTHING, Result
from kavka.coordinator.runtime.shard_runner import ShardState
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
