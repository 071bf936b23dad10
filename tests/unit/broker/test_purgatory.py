"""Operations end once: by what they waited for, by the clock, or by their client's going."""

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from kavka.broker.waiting.purgatory import DelayedOperation, Purgatory, WatchList
from kavka.broker.waiting.timer import Timer
from tests.support.processes import wait_until


class Waiting(DelayedOperation):
    def __init__(self, satisfied: Callable[[], bool]) -> None:
        super().__init__()
        self.satisfied = satisfied
        self.responses: list[bool] = []

    def is_satisfied(self) -> bool:
        return self.satisfied()

    def respond(self) -> None:
        self.responses.append(self.expired)


@pytest.fixture
def timer() -> Iterator[Timer]:
    deaths: list[BaseException] = []
    timer = Timer(deaths.append)
    timer.start()
    yield timer
    timer.stop()
    assert not deaths


def until(condition: Callable[[], bool]) -> None:
    wait_until(condition, 60, "it does not come to that")


def test_an_operation_that_is_satisfied_already_does_not_wait(timer: Timer) -> None:
    purgatory, operation, watched = Purgatory(timer), Waiting(lambda: True), WatchList()

    assert purgatory.park(operation, [watched], 600_000)
    assert (operation.responses, purgatory.size, watched.operations) == ([False], 0, {})


def test_a_check_ends_the_wait_and_leaves_nothing_behind(timer: Timer) -> None:
    ready = False
    purgatory, operation, one, two = Purgatory(timer), Waiting(lambda: ready), WatchList(), WatchList()
    assert not purgatory.park(operation, [one, two], 600_000)
    assert one.check() == 0

    ready = True

    assert one.check() == 1
    assert (operation.responses, purgatory.size, two.operations, timer.pending) == ([False], 0, {}, 0)


def test_time_ends_the_wait(timer: Timer) -> None:
    purgatory, operation, watched = Purgatory(timer), Waiting(lambda: False), WatchList()
    started = time.monotonic()
    purgatory.park(operation, [watched], 50)

    until(lambda: bool(operation.responses))

    assert time.monotonic() - started >= 0.05
    assert (operation.responses, purgatory.size, watched.operations) == ([True], 0, {})


def test_an_operation_may_expire_before_its_time(timer: Timer) -> None:
    purgatory, operation, watched = Purgatory(timer), Waiting(lambda: False), WatchList()
    operation.expire_soon()
    purgatory.park(operation, [watched], 600_000)

    operation.expire_soon()
    operation.expire_soon()

    until(lambda: bool(operation.responses) and not timer.pending)
    assert (operation.responses, purgatory.size, watched.operations) == ([True], 0, {})


def test_a_cancelled_operation_never_responds(timer: Timer) -> None:
    purgatory, operation, watched = Purgatory(timer), Waiting(lambda: True), WatchList()
    operation.satisfied = lambda: False
    purgatory.park(operation, [watched], 600_000)
    assert operation.cancel()
    operation.satisfied = lambda: True

    assert watched.check() == 0
    assert not operation.try_complete()
    assert (operation.responses, purgatory.size, timer.pending) == ([], 0, 0)


def test_racing_completions_respond_once(timer: Timer) -> None:
    purgatory = Purgatory(timer)
    for _ in range(200):
        ready = threading.Event()
        operation, watched = Waiting(ready.is_set), WatchList()
        threads = [threading.Thread(target=lambda w=watched, r=ready: (r.set(), w.check())) for _ in range(3)]
        for thread in threads:
            thread.start()
        purgatory.park(operation, [watched], 600_000)
        for thread in threads:
            thread.join()
        assert operation.responses == [False]
    assert (purgatory.size, timer.pending) == (0, 0)


def test_timer_runs_in_order_of_time_and_not_early(timer: Timer) -> None:
    ran: list[tuple[int, float]] = []
    started = time.monotonic()

    def note(delay_ms: int) -> None:
        ran.append((delay_ms, time.monotonic() - started))

    def begin() -> None:
        # On the timer's own thread: none can come before the last is scheduled, however long that takes.
        for delay_ms in (60, 20, 40, 0):
            timer.schedule(partial(note, delay_ms), delay_ms)

    timer.schedule(begin, 0)
    until(lambda: len(ran) == 4)

    assert [delay for delay, _ in ran] == [0, 20, 40, 60]
    assert all(at * 1000 >= delay for delay, at in ran)


def test_a_failing_callback_does_not_stop_the_timer(timer: Timer) -> None:
    ran = threading.Event()

    def fail() -> None:
        raise ZeroDivisionError

    timer.schedule(fail, 0)
    timer.schedule(ran.set, 20)

    assert ran.wait(60)


def test_an_operation_that_fails_does_not_fail_the_one_who_checks(timer: Timer) -> None:
    purgatory, failing, healthy, watched = Purgatory(timer), Waiting(lambda: False), Waiting(lambda: False), WatchList()
    purgatory.park(failing, [watched], 60)
    purgatory.park(healthy, [watched], 600_000)
    failing.satisfied = lambda: bool(1 / 0)
    healthy.satisfied = lambda: True

    assert watched.check() == 1

    assert healthy.responses == [False]
    until(lambda: failing.responses == [True])
