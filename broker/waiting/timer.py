"""The broker's timer: callbacks after a delay, on a thread that never blocks.

Entries lie in buckets of TICK_MS. Adding and cancelling cost one dictionary operation each, and a bucket that has been
emptied does not wake the thread's work, so a long poll that is answered in time costs no wake-up of its own.
"""

import heapq
import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from kavka.config.thread_names import thread_name

TICK_MS: Final = 10
SPARE_TICKS: Final = 1024
LONGEST_SLEEP_S: Final = 3600.0

log = logging.getLogger(__name__)


class TimerEntry:
    """A callback that has been scheduled; `Timer.cancel` takes it back."""

    __slots__ = ("callback", "tick")

    def __init__(self, callback: Callable[[], None], tick: int) -> None:
        self.callback = callback
        self.tick = tick


class Timer:
    """Runs callbacks when their time has come, never early, at most one tick late on an idle machine.

    Threads: any thread schedules and cancels; the timer's own thread runs callbacks, which must not block. `_lock`
    guards the buckets and is not held while a callback runs. Started by `start`, joined by `stop`.
    """

    def __init__(
        self, on_death: Callable[[BaseException], None], now_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._on_death = on_death
        self._now_ns = now_ns
        self._lock = threading.Lock()
        self._wake = threading.Condition(self._lock)
        self._buckets: dict[int, dict[TimerEntry, None]] = {}
        self._ticks: list[int] = []
        self._sleeping_until: float = float("inf")
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=thread_name("timer"), daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread and join it; entries that are left never run."""
        with self._lock:
            self._stopping = True
            self._wake.notify()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def schedule(self, callback: Callable[[], None], delay_ms: float) -> TimerEntry:
        """Have `callback()` run after `delay_ms`."""
        tick = int((self._now_ns() / 1_000_000 + max(delay_ms, 0)) // TICK_MS) + 1
        entry = TimerEntry(callback, tick)
        with self._lock:
            bucket = self._buckets.get(tick)
            if bucket is None:
                self._buckets[tick] = {entry: None}
                heapq.heappush(self._ticks, tick)
                if tick < self._sleeping_until:
                    self._wake.notify()
            else:
                bucket[entry] = None
        return entry

    def cancel(self, entry: TimerEntry) -> bool:
        """Take a callback back; False, and nothing happens, when it has run or is about to."""
        with self._lock:
            bucket = self._buckets.get(entry.tick)
            if bucket is None or entry not in bucket:
                return False
            del bucket[entry]
            if not bucket:
                del self._buckets[entry.tick]
                if len(self._ticks) > 2 * len(self._buckets) + SPARE_TICKS:
                    # Far ticks whose entries were all taken back would lie here until their time.
                    self._ticks = list(self._buckets)
                    heapq.heapify(self._ticks)
            return True

    def look(self) -> None:
        """The clock has jumped ahead: have the thread look at it now instead of when it was to."""
        with self._lock:
            self._wake.notify()

    def left_ms(self, entry: TimerEntry) -> float:
        """How long it is until an entry is due; nothing is left of one that has run."""
        return max(entry.tick * TICK_MS - self._now_ns() / 1_000_000, 0)

    @property
    def pending(self) -> int:
        """How many callbacks are scheduled."""
        with self._lock:
            return sum(map(len, self._buckets.values()))

    def _run(self) -> None:
        try:
            while True:
                due = self._wait_for_due()
                if due is None:
                    return
                for entry in due:
                    try:
                        entry.callback()
                    except Exception:
                        log.exception("a timer callback failed")
        except BaseException as failure:
            self._on_death(failure)
            raise

    def _wait_for_due(self) -> list[TimerEntry] | None:
        with self._lock:
            while not self._stopping:
                now_ms = self._now_ns() / 1_000_000
                due: list[TimerEntry] = []
                while self._ticks:
                    tick = self._ticks[0]
                    if tick in self._buckets and tick * TICK_MS > now_ms:
                        break
                    heapq.heappop(self._ticks)
                    due.extend(self._buckets.pop(tick, ()))
                if due:
                    return due
                self._sleeping_until = self._ticks[0] if self._ticks else float("inf")
                timeout_s = (self._sleeping_until * TICK_MS - now_ms) / 1000
                self._wake.wait(min(timeout_s, LONGEST_SLEEP_S))
                self._sleeping_until = float("-inf")
            return None
