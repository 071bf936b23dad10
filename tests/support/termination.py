"""SIGTERM for a program that looks for it. No handler runs, which may come between any two steps of the main thread.

A handler that sets an Event waits for ever where the main thread was just in that Event's `wait`: both take its lock.
"""

import signal
from collections.abc import Set
from typing import Final

_AWAITED: Final[Set[signal.Signals]] = frozenset({signal.SIGTERM})


class Termination:
    """Whether SIGTERM has come. Made before other threads are started: all are to leave it alone. One thread looks."""

    def __init__(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
        self._has_come = False

    def wait(self, timeout_s: float = 0.0) -> bool:
        """Wait for it so long; whether it has come by now."""
        self._has_come = self._has_come or signal.sigtimedwait(_AWAITED, timeout_s) is not None
        return self._has_come
