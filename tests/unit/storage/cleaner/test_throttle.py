"""A worker spends no more bytes a second than it may, and hears of a new rate while it waits."""

import threading

import pytest

from kavka.storage.cleaner.throttle import Throttle


class Seconds:
    """A clock that goes on by what is waited for."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> Seconds:
    clock = Seconds()

    def wait(_self: threading.Condition, timeout: float) -> bool:
        clock.now += timeout
        return False

    monkeypatch.setattr(threading.Condition, "wait", wait)
    return clock


def test_bytes_take_their_time(seconds: Seconds) -> None:
    throttle = Throttle(1000.0, seconds)
    for _ in range(10):
        throttle.spent(500, lambda: None)
    assert seconds.now == pytest.approx(5.0)


def test_a_pause_is_not_saved_up(seconds: Seconds) -> None:
    throttle = Throttle(1000.0, seconds)
    seconds.now = 100.0
    throttle.spent(3000, lambda: None)
    assert seconds.now == pytest.approx(103.0)


def test_no_limit_is_no_wait(seconds: Seconds) -> None:
    Throttle(float("inf"), seconds).spent(1 << 40, lambda: None)
    assert seconds.now == pytest.approx(0.0)


def test_a_new_rate_counts_from_now_on(seconds: Seconds) -> None:
    throttle = Throttle(1.0, seconds)
    asked = 0

    def keep_on() -> None:
        nonlocal asked
        asked += 1
        if asked == 3:
            # From another thread it would wake the waiting one.
            throttle._rate = 1e9

    throttle.spent(1000, keep_on)
    assert seconds.now < 4


def test_waiting_ends_with_the_round(seconds: Seconds) -> None:
    class EndedError(Exception):
        pass

    def keep_on() -> None:
        raise EndedError

    with pytest.raises(EndedError):
        Throttle(1.0, seconds).spent(1000, keep_on)
