"""No more rows a second than was said, by a clock that is given."""

import pytest

from kavka.pipeline.sending.pace import Pace


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def wait(self, duration_s: float) -> None:
        self.now_s += duration_s


def test_rows_take_as_long_as_their_rate_says() -> None:
    clock = Clock()
    pace = Pace(50.0, lambda: clock.now_s, clock.wait)
    assert pace.piece == 5
    for _ in range(20):
        pace.sent(pace.piece)
    assert clock.now_s == pytest.approx(102.0)


def test_what_was_not_sent_in_time_is_not_made_up_for() -> None:
    clock = Clock()
    pace = Pace(50.0, lambda: clock.now_s, clock.wait)
    pace.sent(5)
    clock.now_s += 60
    began = clock.now_s
    pace.sent(50)
    assert clock.now_s - began == pytest.approx(1.0)


def test_without_a_rate_nothing_is_waited_for() -> None:
    clock = Clock()
    pace = Pace(None, lambda: clock.now_s, clock.wait)
    pace.sent(10**9)
    assert (pace.piece, clock.now_s) == (0, 100.0)


@pytest.mark.parametrize("rate", [0.0, -1.0])
def test_a_rate_of_nothing_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="more than nothing"):
        Pace(rate)
