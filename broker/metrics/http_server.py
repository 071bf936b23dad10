"""/metrics, /healthz and /readyz over HTTP.

/metrics  what Prometheus scrapes
/healthz  200 while the broker lives, 503 with the reason after a fatal error
/readyz   200 while it serves clients, 503 before and after
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from kavka.broker.network.bounded_http import TEXT, BoundedHandler, BoundedHttpServer

WORKERS: Final = 8
EXPOSITION: Final = "text/plain; version=0.0.4; charset=utf-8"

log = logging.getLogger(__name__)


class MetricsServer:
    """Serves one broker's metrics and health, from `start` to `stop`, by its owner; `stop` joins its threads.

    `render()` gives the exposition; `failure()` the reason why the broker is not healthy, or None; `is_ready()`
    whether it serves. The server's threads call those three.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        render: Callable[[], bytes],
        failure: Callable[[], str | None],
        is_ready: Callable[[], bool],
    ) -> None:
        self._address = host, port
        self._server: BoundedHttpServer | None = None
        self._render = render
        self._failure = failure
        self._is_ready = is_ready

    def start(self) -> int:
        """Listen and serve; the port. Raises OSError, which names the settings, where the address cannot be had."""
        server = BoundedHttpServer("metrics", *self._address, WORKERS, partial(_Handler, page=self._page))
        server.start()
        self._server = server
        return server.server_port

    def stop(self) -> None:
        """Close all connections. Nothing happens where `start` failed."""
        if self._server is not None:
            self._server.stop()

    def _page(self, path: str) -> tuple[int, str, bytes]:
        """Status, content type and body."""
        if path == "/metrics":
            try:
                return 200, EXPOSITION, self._render()
            except Exception:
                log.exception("cannot render the metrics")
                return 500, TEXT, b"the metrics could not be rendered; the log says why\n"
        if path == "/healthz":
            reason = self._failure()
            return (200, TEXT, b"ok\n") if reason is None else (503, TEXT, f"{reason}\n".encode())
        if path == "/readyz":
            return (200, TEXT, b"ready\n") if self._is_ready() else (503, TEXT, b"not ready\n")
        return 404, TEXT, b"there are /metrics, /healthz and /readyz\n"


class _Handler(BoundedHandler):
    """One request; `page` gives status, content type and body of a path."""

    def __init__(
        self, connection: Any, address: Any, server: Any, *, page: Callable[[str], tuple[int, str, bytes]]
    ) -> None:
        self._page = page
        super().__init__(connection, address, server)

    def do_GET(self) -> None:  # noqa: N802 - the library's name
        self.answer(*self._page(self.path.partition("?")[0]))

    do_HEAD = do_GET  # noqa: N815 - the library's name
