"""A program that looks for SIGTERM meets it, whenever it came."""

import signal
from collections.abc import Iterator

import pytest

from tests.support.termination import Termination


@pytest.fixture
def termination() -> Iterator[Termination]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    yield Termination()
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def test_nothing_has_come_before_the_signal(termination: Termination) -> None:
    assert not termination.wait()
    assert not termination.wait(0.001)


def test_a_signal_that_came_between_two_looks_is_met_and_stays(termination: Termination) -> None:
    signal.raise_signal(signal.SIGTERM)

    assert termination.wait(60)
    assert termination.wait(0)
