"""No client fills the log: what one line of code warns of is bounded, and what was left out is counted."""

import io
import logging
from collections.abc import Iterator

import pytest

from kavka.broker.metrics.bounded_warnings import MOST, PERIOD_S, FloodGate
from kavka.broker.metrics.log_lines import ROOT, configure


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """What the broker's log says."""
    logger = logging.getLogger(ROOT)
    kept = logger.handlers[:], logger.level, logger.propagate
    stream = io.StringIO()
    configure("INFO", stream)
    yield stream
    logger.handlers[:], logger.propagate = kept[0], kept[2]
    logger.setLevel(kept[1])


def reject(count: int) -> None:
    for number in range(count):
        logging.getLogger("kavka.broker.socket_server").warning("request rejected peer=10.0.0.7:%d", number)


def test_a_warning_that_comes_without_end_is_logged_a_bounded_number_of_times(lines: io.StringIO) -> None:
    reject(10 * MOST)
    logging.getLogger("kavka.broker").warning("another one")

    assert lines.getvalue().count("request rejected") == MOST
    assert "another one" in lines.getvalue()


def test_the_next_period_says_how_many_were_left_out() -> None:
    now_s = [0.0]
    gate = FloodGate(lambda: now_s[0])

    def passed(count: int, level: int = logging.WARNING) -> list[logging.LogRecord]:
        records = [logging.LogRecord("kavka", level, "here.py", 7, "text", (), None) for _ in range(count)]
        return [record for record in records if gate.filter(record)]

    assert len(passed(MOST + 5)) == MOST
    assert len(passed(MOST + 5, logging.ERROR)) == MOST + 5
    now_s[0] = PERIOD_S
    first, second = passed(2)
    assert getattr(first, "fields", None) == {"left_out": 5}
    assert not hasattr(second, "fields")
    now_s[0] = 2 * PERIOD_S
    assert not hasattr(passed(1)[0], "fields")
