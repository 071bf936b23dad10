"""How kazoo uses threads here, how it ends, and what it may log."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.handlers.threading import SequentialThreadingHandler

log = logging.getLogger(__name__)

CLOSE_TIMEOUT_S: Final = 5.0


class InlineHandler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """kazoo's threads, but for one: callbacks and completions run where they arise, on the connection's thread.

    Nothing that runs there waits, so that nothing is gained by handing it over, and order would be lost.
    """

    def __init__(self, connect_timeout_s: float) -> None:
        super().__init__()
        self._connect_timeout_s = connect_timeout_s
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """No workers: kazoo then calls completions itself."""

    def stop(self) -> None:
        """No workers to stop."""

    def dispatch_callback(self, callback: Any) -> None:
        callback.func(*callback.args)

    def create_connection(self, *args: Any, **options: Any) -> Any:
        return super().create_connection(*args, **{**options, "timeout": self._connect_timeout_s})

    def spawn(self, func: Callable[..., object], *args: Any, **options: Any) -> threading.Thread:
        def run() -> None:
            try:
                func(*args, **options)
            except Exception:
                # The session is closed by then, and another client follows.
                log.exception("the client of ZooKeeper gave up")

        self._thread = thread = threading.Thread(target=run, name="kavka-zookeeper", daemon=True)
        thread.start()
        return thread

    def owns_this_thread(self) -> bool:
        return threading.current_thread() is self._thread


def quiet_logger() -> logging.Logger:
    """kazoo writes requests, with passwords and what nodes hold, at level DEBUG; and what it says else we say, too."""
    quiet = logging.getLogger(f"{__name__}.kazoo")
    quiet.setLevel(logging.ERROR)
    return quiet


def end(client: KazooClient) -> None:
    """Close the session, in so much time; kazoo would wait for a connection's attempt to end."""

    def stop() -> None:
        try:
            client.stop()
            client.close()
        except Exception as error:  # noqa: BLE001 - whatever it is, the session ends by itself
            log.warning("the session with ZooKeeper is left to expire: %r", error)

    stopper = threading.Thread(target=stop, name="kavka-zookeeper-stop", daemon=True)
    stopper.start()
    stopper.join(CLOSE_TIMEOUT_S)
