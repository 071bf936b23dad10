"""A limit of records in a second, kept on average."""

from collections.abc import Callable
from typing import Final

MIN_SLEEP_S: Final = 0.002
"""Shorter sleeps cost more than they give: what is early by less is let pass."""


class Throttle:
    """Holds back whoever is ahead of the rate. One thread. Without a rate (below 0) nobody waits."""

    def __init__(self, per_second: float, now_s: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self._per_second: Final = per_second
        self._now_s: Final = now_s
        self._sleep: Final = sleep
        self._began_s: Final = now_s()
        self.is_on: Final = per_second > 0

    def wait(self, done: int) -> None:
        """Sleep until `done` records are due."""
        ahead_s = done / self._per_second - (self._now_s() - self._began_s)
        if ahead_s >= MIN_SLEEP_S:
            self._sleep(ahead_s)
