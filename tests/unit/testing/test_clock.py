"""A clock that goes ahead when a test says so, and whoever waits by it."""

import threading

import pytest

from kavka.broker.waiting.timer import Timer
from kavka.testing.clock import TravelClock
from tests.support.processes import wait_until

HOUR_MS = 3_600_000


def test_wall_time_and_monotonic_time_go_ahead_together() -> None:
    clock = TravelClock()
    wall_ms, monotonic_ns = clock.clock.now_ms(), clock.clock.monotonic_ns()
    clock.travel(HOUR_MS)
    assert clock.now_ms() - wall_ms >= HOUR_MS
    assert clock.monotonic_ns() - monotonic_ns >= HOUR_MS * 1_000_000


def test_it_never_goes_back() -> None:
    with pytest.raises(ValueError, match="ahead"):
        TravelClock().travel(-1)


def test_a_timer_runs_what_is_due_after_a_jump_and_nothing_else() -> None:
    clock = TravelClock()
    timer = Timer(lambda failure: None, clock.monotonic_ns)
    forget = clock.on_travel(timer.look)
    timer.start()
    try:
        due, later = threading.Event(), threading.Event()
        timer.schedule(due.set, HOUR_MS)
        timer.schedule(later.set, 3 * HOUR_MS)
        clock.travel(2 * HOUR_MS)
        assert due.wait(60)
        assert not later.is_set()
        assert timer.pending == 1
        forget()
        clock.travel(2 * HOUR_MS)
        timer.look()
        wait_until(later.is_set, 60, lambda: "the second was not run")
    finally:
        timer.stop()
