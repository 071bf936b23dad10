"""A bound on warnings, most of which a client can bring about as often as it likes."""

import logging
import time
from collections.abc import Callable
from threading import Lock
from typing import Final

MOST: Final = 100
PERIOD_S: Final = 60.0


class _Period:
    """What one line of code has said since `began_s`."""

    __slots__ = ("began_s", "count")

    def __init__(self, began_s: float) -> None:
        self.began_s = began_s
        self.count = 0


class FloodGate(logging.Filter):
    """Lets each line of code warn MOST times in PERIOD_S. The first warning of its next period says in `left_out` how
    many others were not logged.

    Errors pass: they are the broker's own, or its disk's. Threads: any; `_lock` guards the periods, one a line of code.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now_s = now_s
        self._lock = Lock()
        self._periods: dict[tuple[str, int], _Period] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is logged."""
        if record.levelno != logging.WARNING:
            return True
        place = record.pathname, record.lineno
        now_s = self._now_s()
        left_out = 0
        with self._lock:
            period = self._periods.get(place)
            if period is None or now_s - period.began_s >= PERIOD_S:
                left_out = 0 if period is None else max(0, period.count - MOST)
                period = self._periods[place] = _Period(now_s)
            period.count += 1
            passes = period.count <= MOST
        if left_out:
            record.fields = {**getattr(record, "fields", {}), "left_out": left_out}
        return passes
