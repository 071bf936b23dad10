"""A broker's clock that stands still while a test wants it to: what counts by the second counts then by requests."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from kavka.broker.clock import Clock


class StandingClock:
    """The system's time, but for how long it has stood still and how far it was sent ahead. Never goes back.

    Timers of the network, by which connections pause, go on by the system's. Threads: any; `_lock` guards all.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ahead_ns = 0
        self._stands_at_ns: int | None = None
        self.clock = Clock(self._now_ms, self.monotonic_ns)
        """To be given to a broker."""

    def monotonic_ns(self) -> int:
        with self._lock:
            return self._now_ns()

    @contextmanager
    def standing(self) -> Iterator[None]:
        """No time passes in the block, but what it is sent ahead."""
        with self._lock:
            self._stands_at_ns = self._now_ns()
        try:
            yield
        finally:
            with self._lock:
                self._ahead_ns = self._now_ns() - time.monotonic_ns()
                self._stands_at_ns = None

    def go(self, ahead_ms: int) -> None:
        """So much time passes now."""
        with self._lock:
            if self._stands_at_ns is None:
                self._ahead_ns += ahead_ms * 1_000_000
            else:
                self._stands_at_ns += ahead_ms * 1_000_000

    def _now_ns(self) -> int:
        return time.monotonic_ns() + self._ahead_ns if self._stands_at_ns is None else self._stands_at_ns

    def _now_ms(self) -> int:
        """Wall time, which goes on together with the other."""
        with self._lock:
            return (time.time_ns() - time.monotonic_ns() + self._now_ns()) // 1_000_000
