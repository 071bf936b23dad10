"""Connections that have to go: each when it has its answers.

Here are those that go because their listener or their thread does: whoever asked for that change may have asked by one
of them, and the answer comes when the change is made. Those whose client ended its sending, or sent what cannot be
read, are closed by `NetworkThread.resume`.
"""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kavka.broker.network.connection import Connection

LONGEST_NS: Final = 5_000_000_000
"""How long a connection may wait for the answers that it is owed: there are requests that wait for minutes."""
CHECK_S: Final = 0.02
ANY_HOST: Final = frozenset({"0.0.0.0", "::"})


class Departure:
    """Closes a network thread's connections as soon as they are owed nothing. Threads: that one alone."""

    def __init__(
        self,
        pause: Callable[["Connection"], None],
        close: Callable[["Connection"], None],
        call_later: Callable[..., object],
    ) -> None:
        """`pause` has a connection not read any more; `call_later(seconds, function, *arguments)` is the loop's."""
        self._pause = pause
        self._close = close
        self._call_later = call_later

    def let_go(self, connections: "Sequence[Connection]", gone: Callable[[], object]) -> None:
        """Read no more of these and close each in its time; `gone()` when the last one is."""
        for connection in connections:
            self._pause(connection)
            connection.closing = True
        self._close_answered(connections, gone, time.monotonic_ns() + LONGEST_NS)

    def _close_answered(
        self, connections: "Sequence[Connection]", gone: Callable[[], object], deadline_ns: int
    ) -> None:
        is_late = time.monotonic_ns() >= deadline_ns
        left: list[Connection] = []
        for connection in connections:
            if is_late or connection.closed or is_owed_nothing(connection):
                self._close(connection)
            else:
                left.append(connection)
        if left:
            self._call_later(CHECK_S, self._close_answered, left, gone, deadline_ns)
        else:
            gone()


def came_to(connection: "Connection", listener_name: str, host: str, port: int) -> bool:
    """Whether a connection was accepted by the listener at that address: one of the same name may be at another."""
    return (
        connection.listener_name == listener_name
        and connection.local_port == port
        and (host in ANY_HOST or host == connection.local_host)
    )


def is_owed_nothing(connection: "Connection") -> bool:
    """Whether all that was read of a connection has been run and answered. It must not be read any more."""
    if connection.is_reset:
        # What runs goes on, and nobody takes its answer.
        return not connection.pending
    # In this order: nobody begins to run it when nothing is pending.
    if connection.pending or (connection.running.locked() and connection.muting is None):
        return False
    answers = connection.answers
    while True:
        # Who takes answers from their slots holds the lock until what the socket refused is in the backlog.
        with connection.write_lock:
            if not answers.slots and not answers.backlog:
                return True
        if not answers.head_ready:
            # Whoever brings the next answer, or has just taken it to write it, asks again.
            return False
        # Who found the lock taken meanwhile leaves the head to its holder, and may have asked already.
        connection.flush()
