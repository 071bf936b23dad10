"""Lines between a client and a broker that does what it is told."""

from collections.abc import Callable, Generator

import pytest

from kavka.client import ClientSettings
from tests.support.client_line import SETTINGS, Clock, Line


def lines(settings: ClientSettings, clock: Callable[[], float] | None = None) -> Generator[Line, None, None]:
    line = Line(settings, clock)
    with line.broker:
        yield line
        line.client.close()


@pytest.fixture
def line() -> Generator[Line, None, None]:
    yield from lines(SETTINGS)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def negotiating(clock: Clock) -> Generator[Line, None, None]:
    yield from lines(SETTINGS._replace(discover_versions=True), clock)


@pytest.fixture
def timed(clock: Clock) -> Generator[Line, None, None]:
    """With the clock of the test; a back-off of a second, no chance about its order of magnitude."""
    settings = SETTINGS._replace(reconnect_backoff_ms=1000, reconnect_backoff_max_ms=100_000)
    yield from lines(settings, clock)
