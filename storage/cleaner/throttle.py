"""Holding a worker's reading and writing to so many bytes a second."""

import threading
from collections.abc import Callable

LONGEST_PAUSE_S = 1.0


class Throttle:
    """`spent` waits as long as it takes.

    Threads: one thread calls `spent`; another may call `set_rate`, which takes effect within a second. `_changed` wakes
    the waiting one; `_rate`, `_balance` and `_at_s` are guarded by its lock.
    """

    __slots__ = ("_at_s", "_balance", "_changed", "_now_s", "_rate")

    def __init__(self, bytes_per_second: float, now_s: Callable[[], float]) -> None:
        self._changed = threading.Condition()
        self._now_s = now_s
        self._rate = bytes_per_second
        self._balance = 0.0
        """Bytes that may be spent; below zero: time to wait."""
        self._at_s = now_s()

    def set_rate(self, bytes_per_second: float) -> None:
        with self._changed:
            self._settle()
            self._rate = bytes_per_second
            self._changed.notify_all()

    def spent(self, size_bytes: int, keep_on: Callable[[], object]) -> None:
        """Account for bytes read or written; returns when the rate allows more. `keep_on` is asked while waiting."""
        with self._changed:
            self._settle()
            self._balance -= size_bytes
            while self._balance <= -1:
                keep_on()
                self._changed.wait(min(-self._balance / max(self._rate, 1.0), LONGEST_PAUSE_S))
                self._settle()

    def _settle(self) -> None:
        now_s = self._now_s()
        # Nothing is saved up for later: a burst after a pause is what the limit is there to prevent.
        self._balance = min(0.0, self._balance + (now_s - self._at_s) * self._rate)
        self._at_s = now_s
