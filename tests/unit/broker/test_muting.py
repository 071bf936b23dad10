"""A connection that is to pause: whoever counts those that do hears of each end, and of each one once."""

from types import SimpleNamespace
from typing import Any

import pytest

from kavka.broker.network.muting import Muting, mute


class PausingThread:
    """A network thread that does at once what it is called for, and whose time does not pass."""

    def __init__(self) -> None:
        self.cancelled = 0

    def call(self, function: Any, *arguments: Any) -> None:
        function(*arguments)

    def call_later(self, _delay_s: float, _function: Any) -> Any:
        return SimpleNamespace(cancel=self._cancel)

    def pause(self, _connection: Any) -> None:
        pass

    def _cancel(self) -> None:
        self.cancelled += 1


@pytest.mark.parametrize("closed", [False, True])
def test_a_pause_of_a_connection_that_is_closed_before_it_begins_or_after_it_ends_once(closed: bool) -> None:
    ends: list[str] = []
    thread = PausingThread()
    connection: Any = SimpleNamespace(closed=closed, thread=thread, muting=None)

    mute(connection, 1000, lambda: ends.append("end"))
    assert len(ends) == closed
    if not closed:
        connection.muting()
    assert ends == ["end"]
    assert thread.cancelled == (not closed)


def test_a_pause_that_its_thread_hears_of_when_the_connection_was_closed_ends_once() -> None:
    ends: list[str] = []
    connection: Any = SimpleNamespace(closed=False, thread=PausingThread(), muting=None)
    muting = Muting(connection, lambda: ends.append("end"))

    connection.closed = True
    muting.forget()
    muting.begin(1000)
    assert ends == ["end"]
