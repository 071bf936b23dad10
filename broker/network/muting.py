"""A connection that has to pause (KIP-219): it has its answer, and is neither read nor run until a time is over.

Whoever has run the request that was one too many keeps the connection's `running`, so that nothing that was read before
runs meanwhile; the end of the pause gives it on. Loaded when the first connection has to pause.
"""

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kavka.broker.network.connection import Connection


def mute(connection: "Connection", delay_ms: int, ended: Callable[[], None]) -> None:
    """Have a connection neither read nor run for so long; `ended()` is called when that is over, or it is closed.

    The caller holds `running`, and leaves it so.
    """
    muting = Muting(connection, ended)
    connection.muting = muting.forget
    connection.thread.call(muting.begin, delay_ms)


class Muting:
    """One pause of a connection. Threads: made by who holds `running`; the rest is the owning network thread's."""

    __slots__ = ("_connection", "_ended", "_timer")

    def __init__(self, connection: "Connection", ended: Callable[[], None]) -> None:
        """`ended()` is called once, when the pause is over or the connection closed."""
        self._connection: Final = connection
        self._ended: Callable[[], None] | None = ended
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, delay_ms: int) -> None:
        """Pause for so long from now on."""
        connection = self._connection
        if connection.closed:
            # Maybe before it was known there that it is to pause.
            self.forget()
            return
        connection.thread.pause(connection)
        self._timer = connection.thread.call_later(delay_ms / 1000, self._end)

    def forget(self) -> None:
        """The connection is closed."""
        if self._timer is not None:
            self._timer.cancel()
        self._tell_end()

    def _end(self) -> None:
        connection = self._connection
        connection.muting = None
        self._tell_end()
        # As if it came now: in Kafka it is not received before.
        now_ns = time.monotonic_ns()
        waited = [(frame, now_ns, charged) for frame, _, charged in connection.pending]
        connection.pending.clear()
        connection.pending.extend(waited)
        connection.thread.go_on(connection)
        connection.thread.resume(connection)

    def _tell_end(self) -> None:
        ended, self._ended = self._ended, None
        if ended is not None:
            ended()
