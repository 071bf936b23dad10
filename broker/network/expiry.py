"""Connections that nobody is behind any more: idle ones, and paused ones whose clients have left."""

import logging
import select
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kavka.broker.network.connection import Connection

IDLE_CHECKS: Final = 4
"""How often in `connections.max.idle.ms` idle connections are looked for."""
HANG_UP_CHECK_S: Final = 1.0
"""How often connections that are not read are asked whether their clients have left."""

log = logging.getLogger(__name__)


class Expiry:
    """Finds and closes a network thread's abandoned connections. Threads: that one alone."""

    def __init__(
        self,
        connections: Mapping[int, "Connection"],
        max_idle_ms: Callable[[], int],
        close: Callable[["Connection"], None],
        call_later: Callable[..., object],
    ) -> None:
        """`max_idle_ms` is asked anew each time; `call_later(seconds, function)` is the loop's."""
        self._connections = connections
        self._max_idle_ms = max_idle_ms
        self._close = close
        self._call_later = call_later
        self._paused: dict[int, Connection] = {}
        self._asks_paused = False

    def paused(self, connection: "Connection") -> None:
        """A connection is not read any more: the loop does not tell of its client's leaving."""
        if not self._asks_paused:
            self._asks_paused = True
            self._call_later(HANG_UP_CHECK_S, self.close_left)
        self._paused[connection.id] = connection

    def resumed(self, connection: "Connection") -> None:
        """A connection is read again, or is closed."""
        self._paused.pop(connection.id, None)

    def close_left(self) -> None:
        """Close paused connections whose clients have left: nobody else would hear of it before they are read again.

        A client that has only ended its sending may have left requests that can run: they do, and then the end is read.
        Where one of its requests waits for what others do, that may be never.
        """
        poll = select.poll()
        watched = {connection.socket.fileno(): connection for connection in self._paused.values()}
        for file_descriptor in watched:
            poll.register(file_descriptor, select.POLLRDHUP)
        for file_descriptor, events in poll.poll(0):
            connection = watched[file_descriptor]
            if events & ~select.POLLRDHUP or connection.parked:
                self._close(connection)
        self._asks_paused = bool(self._paused)
        if self._asks_paused:
            self._call_later(HANG_UP_CHECK_S, self.close_left)

    def close_idle(self) -> None:
        """Close connections over which nothing has gone for too long; and look again, by and by."""
        max_idle_ms = self._max_idle_ms()
        delay_s = max_idle_ms / 1000 / IDLE_CHECKS if max_idle_ms > 0 else 60.0
        self._call_later(min(max(delay_s, 0.05), 60.0), self.close_idle)
        if max_idle_ms > 0:
            oldest_ns = time.monotonic_ns() - max_idle_ms * 1_000_000
            for connection in list(self._connections.values()):
                if connection.last_active_ns < oldest_ns:
                    log.info("closing idle connection peer=%s:%d", connection.peer_host, connection.peer_port)
                    self._close(connection)
