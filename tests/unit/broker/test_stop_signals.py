"""Which signals stop the broker in order, and which at once."""

import signal

import pytest

from kavka.broker.stop_signals import SAME_REQUEST_S, StopSignals

TERM, INT, HUP = signal.SIGTERM, signal.SIGINT, signal.SIGHUP


@pytest.mark.parametrize(
    ("signals", "forced"),
    [
        ([(TERM, 0)], False),
        ([(HUP, 0)], False),
        ([(TERM, 0), (TERM, 0.9)], False),
        ([(TERM, 0), (TERM, 1.0)], True),
        ([(INT, 0), (INT, 0.1), (INT, 1.5)], True),
        ([(TERM, 0), (INT, 0)], True),
        ([(HUP, 0), (HUP, 5)], False),
        ([(TERM, 0), (HUP, 5)], False),
        ([(HUP, 0), (TERM, 5)], False),
        ([(HUP, 0), (TERM, 5), (TERM, 7)], True),
    ],
)
def test_a_second_signal_that_insists_stops_at_once(signals: list[tuple[int, float]], forced: bool) -> None:
    at_once: list[bool] = []
    stop = StopSignals(stop_at_once=lambda: at_once.append(True))

    for number, second in signals:
        stop.note(number, 100.0 + second * SAME_REQUEST_S)

    assert bool(at_once) is forced
    assert stop.received == signal.Signals(signals[0][0]).name
    stop.wait()


def test_a_signal_that_comes_when_the_stop_is_done_changes_nothing() -> None:
    at_once: list[bool] = []
    stop = StopSignals(stop_at_once=lambda: at_once.append(True))
    stop.note(TERM, 100.0)
    stop.stopped()

    stop.note(TERM, 200.0)

    assert not at_once


def test_a_broker_that_cannot_go_on_stops_without_a_signal_and_the_first_signal_waits_for_it() -> None:
    at_once: list[bool] = []
    stop = StopSignals(stop_at_once=lambda: at_once.append(True))
    stop.request()

    stop.wait()
    stop.note(TERM, 100.0)

    assert stop.received is None
    assert not at_once
