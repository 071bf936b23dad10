"""Connections over which nothing goes any more: they are closed after a while, as in Kafka."""

import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kavka.broker.network.connection import Connection

IDLE_CHECKS: Final = 4
"""How often in `connections.max.idle.ms` idle connections are looked for."""

log = logging.getLogger(__name__)


class Expiry:
    """Finds and closes a network thread's idle connections. Threads: that one alone."""

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
