"""What a broker takes its time from: wall time and monotonic time, which belong together."""

import time
from collections.abc import Callable
from typing import Final, NamedTuple


class Clock(NamedTuple):
    """Both may be asked by any thread, and go on together. A test's clock may jump ahead: see `Broker.time_moved`.

    Retention, sessions, transactions and whatever waits on the timer go by it. What times one request or one
    connection (its metrics, its idleness, how far a follower is behind) goes by the system's.
    """

    now_ms: Callable[[], int]
    """Milliseconds since the epoch."""
    monotonic_ns: Callable[[], int]
    """Nanoseconds since some moment; nobody sets it back."""


SYSTEM_CLOCK: Final = Clock(lambda: time.time_ns() // 1_000_000, time.monotonic_ns)
