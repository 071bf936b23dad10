"""The token that connections are begun with, replaced in time by a thread of its own."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from kavka.client.api_errors_cluster import SaslAuthenticationError
from kavka.client.security.bearer.refresh import AFTER_FAILURE_MS, RefreshSchedule
from kavka.client.security.bearer.token import BearerToken, TokenError
from kavka.config.thread_names import thread_name

JOIN_S: Final = 1.0
"""A fetch that goes on longer than this is not waited for: it ends by its own time limits."""

log = logging.getLogger(__name__)


class TokenLogin:
    """Threads: `token` by any; `start` and `close` once each. `retrieve(is_over)` is called by who calls `start`, then
    on the login's thread; it raises TokenError, and soon ends once `is_over` is set.
    """

    def __init__(
        self,
        retrieve: Callable[[threading.Event], BearerToken],
        schedule: RefreshSchedule,
        name: str,
        now_ms: Callable[[], float] = lambda: time.time() * 1000,
    ) -> None:
        self._retrieve: Final = retrieve
        self._schedule: Final = schedule
        self._now_ms: Final = now_ms
        self._is_over: Final = threading.Event()
        self._token: BearerToken | None = None
        self._thread: Final = threading.Thread(target=self._run, name=thread_name(f"kavka-login-{name}"), daemon=True)

    @property
    def token(self) -> BearerToken:
        """The newest. Only after `start`."""
        assert self._token is not None
        return self._token

    def start(self) -> None:
        """Wait for the first token, as Kafka's clients do when they are made. Raises SaslAuthenticationError."""
        try:
            self._token = self._retrieve(self._is_over)
        except TokenError as failure:
            raise SaslAuthenticationError(f"there is no token to log in with: {failure}") from None
        self._thread.start()

    def close(self) -> None:
        """End the thread. Again is allowed."""
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join(JOIN_S)

    def _run(self) -> None:
        due_ms = self._schedule.next_ms(self.token, self._now_ms())
        while not self._is_over.wait(min(max(due_ms - self._now_ms(), 0) / 1000, threading.TIMEOUT_MAX)):
            try:
                self._token = self._retrieve(self._is_over)
            except TokenError as failure:
                log.warning("the token could not be replaced; it is tried again reason=%r", str(failure))
                due_ms = self._now_ms() + AFTER_FAILURE_MS
            except Exception:
                log.exception("the token could not be replaced; it is tried again")
                due_ms = self._now_ms() + AFTER_FAILURE_MS
            else:
                due_ms = self._schedule.next_ms(self.token, self._now_ms())
