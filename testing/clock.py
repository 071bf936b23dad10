"""A clock that a test sends ahead: wall time, monotonic time and timers of one broker, or of all of a cluster's."""

import threading
import time
from collections.abc import Callable
from typing import Final

from kavka.broker.clock import Clock


class TravelClock:
    """The system's time, and how far ahead of it the test has gone. Never goes back.

    Threads: any. `_lock` guards the offset's changes and the listeners.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._offset_ns = 0
        self._listeners: list[Callable[[], None]] = []
        self.clock: Final = Clock(self.now_ms, self.monotonic_ns)
        """To be given to brokers."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return (time.time_ns() + self._offset_ns) // 1_000_000

    def monotonic_ns(self) -> int:
        """Goes on together with `now_ms`."""
        return time.monotonic_ns() + self._offset_ns

    def on_travel(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have `listener()` called after each jump; the result takes that back."""
        with self._lock:
            self._listeners.append(listener)

        def forget() -> None:
            with self._lock:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return forget

    def travel(self, ahead_ms: float) -> None:
        """Go ahead. Raises ValueError for a time that is past: brokers are not made for that."""
        if ahead_ms < 0:
            raise ValueError(f"a broker's clock goes ahead alone, not by {ahead_ms} ms")
        with self._lock:
            self._offset_ns += int(ahead_ms * 1_000_000)
            listeners = list(self._listeners)
        for listener in listeners:
            listener()
