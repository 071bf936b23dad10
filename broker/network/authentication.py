"""Clients that connect and never say who they are: they are closed after `kavka.authentication.timeout.ms`.

Kafka waits for them as long as for any idle connection, ten minutes, and a byte now and then makes that for ever.
"""

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kavka.broker.network.settings import NetworkSettings

if TYPE_CHECKING:
    from kavka.broker.network.connection import Connection

CHECKS: Final = 10
"""How often in the time that a client has it is looked for."""

log = logging.getLogger(__name__)


class Authentications:
    """A network thread's connections that are not authenticated yet, of listeners that ask for it.

    Threads: that one alone.
    """

    def __init__(
        self,
        settings: Callable[[], NetworkSettings],
        close: Callable[["Connection"], None],
        call_later: Callable[..., object],
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """`settings` is asked anew each time; `call_later(seconds, function)` is the loop's."""
        self._settings = settings
        self._close = close
        self._call_later = call_later
        self._now_ns = now_ns
        self._waiting: dict[Connection, int] = {}
        """When each came (ns), the oldest first."""
        self._is_looking = False

    def watch(self, connection: "Connection") -> None:
        """A client has connected, and is to authenticate."""
        self._waiting[connection] = self._now_ns()
        if not self._is_looking:
            self._is_looking = True
            self._look_later()

    def look(self) -> None:
        """Forget those that are authenticated or gone, and close those whose time is up."""
        oldest_ns = self._now_ns() - self._settings().authentication_timeout_ms * 1_000_000
        for connection, came_ns in list(self._waiting.items()):
            if connection.closed or connection.is_authenticated:
                del self._waiting[connection]
            elif came_ns <= oldest_ns:
                del self._waiting[connection]
                log.info(
                    "closing a connection that did not authenticate peer=%s:%d listener=%s",
                    connection.peer_host,
                    connection.peer_port,
                    connection.listener_name,
                )
                self._close(connection)
        if self._waiting:
            self._look_later()
        else:
            self._is_looking = False

    def _look_later(self) -> None:
        self._call_later(min(max(self._settings().authentication_timeout_ms / 1000 / CHECKS, 0.02), 1.0), self.look)
