"""The signals that stop the daemon, counted from its first moment on.

They are blocked in every thread, and one thread does nothing but wait for them: no handler interrupts anything, and a
signal that comes during a long start is noted when it comes.

    SIGTERM, SIGINT   the first: stop in order, when the start is through; a second one: stop at once
    SIGHUP            renew the certificates of listeners with TLS. Where there are none: stop in order, as Kafka does,
                      and never more than that: terminals send it twice. A broker that was started with SIGHUP ignored
                      (nohup) goes on ignoring it

The same signal again within SAME_REQUEST_S is no second one: `timeout` and some supervisors signal the process and
then its whole group, and the kernel makes one of two that come at once.
"""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Final

SAME_REQUEST_S: Final = 1.0
EXIT_FORCED: Final = 130
_INSISTING: Final = frozenset({signal.SIGTERM, signal.SIGINT})

log = logging.getLogger(__name__)


class StopSignals:
    """Whether the broker is to stop. Made by the main thread before any other thread is started.

    `request` is called by any thread. `_first`, the signal that was counted and when, belongs to the waiting thread;
    the two events are set once and never cleared.
    """

    def __init__(self, *, stop_at_once: Callable[[], object] | None = None) -> None:
        self._stop_at_once = stop_at_once if stop_at_once is not None else _exit_at_once
        self._first: tuple[int, float] | None = None
        self._requested = threading.Event()
        self._is_over = threading.Event()
        self.on_hang_up: Callable[[], bool] = lambda: False
        """What SIGHUP asks for, if it does not ask for a stop; set once there is a broker."""
        self.received: str | None = None
        """The name of the signal that asked first, None if the broker itself did."""

    def start(self) -> None:
        """Block the signals for this thread and those that it starts, and wait for them on another one."""
        waited_for = set(_INSISTING)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            waited_for.add(signal.SIGHUP)
        signal.pthread_sigmask(signal.SIG_BLOCK, waited_for)
        threading.Thread(target=self._wait_for, args=(waited_for,), name="signals", daemon=True).start()

    def request(self) -> None:
        """The broker cannot go on: as if a signal had come. Never counts as the first of two."""
        self._requested.set()

    def wait(self) -> None:
        """Until the broker is to stop."""
        self._requested.wait()

    def stopped(self) -> None:
        """The stop is done: a signal that comes now has nothing left to do."""
        self._is_over.set()

    def note(self, number: int, now_s: float) -> None:
        """Count a signal that came at `now_s` (monotonic)."""
        if number == signal.SIGHUP and self.on_hang_up():
            return
        if self.received is None and not self._requested.is_set():
            self.received = signal.Signals(number).name
        if number in _INSISTING and not self._is_over.is_set():
            if self._first is None:
                self._first = number, now_s
            elif number != self._first[0] or now_s - self._first[1] >= SAME_REQUEST_S:
                log.warning("second signal: stopping at once; the next start recovers the logs")
                self._stop_at_once()
        self._requested.set()

    def _wait_for(self, waited_for: set[signal.Signals]) -> None:
        while True:
            self.note(signal.sigwait(waited_for), time.monotonic())


def _exit_at_once() -> None:
    logging.shutdown()
    os._exit(EXIT_FORCED)
