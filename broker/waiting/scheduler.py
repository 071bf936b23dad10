"""Background work: jobs that repeat at an interval, and single ones, on `background.threads` threads.

The timer says when; the work, which may block on the disk, runs here. A job that repeats is scheduled again only
when it has ended, so it never runs beside itself and nothing piles up. No exception keeps it from coming again.

fsyncs that others asked for take half of the threads at most: on a slow disk there may be one for each partition.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from kavka.broker.waiting.timer import Timer, TimerEntry
from kavka.config.thread_names import thread_name

RETRY_MS: Final = 5_000

log = logging.getLogger(__name__)


class Scheduler:
    """Runs jobs. `stop` waits for those that run.

    Threads: any thread adds jobs; `_lock` guards all attributes.
    """

    def __init__(
        self, timer: Timer, threads: int, on_death: Callable[[BaseException], None], name: str = "background"
    ) -> None:
        """`name`: of its threads. `on_death` hears of what is meant to end one: the pool would keep it to itself."""
        self._timer = timer
        self._on_death = on_death
        self._name = name
        self._executor = self._pool(threads)
        self._most_flushing = _most_flushing(threads)
        self._flushing = 0
        """Threads that run what waits in `_flushes`: one at least, where there is anything."""
        self._flushes: deque[Callable[[], object]] = deque()
        self._unfinished: dict[ThreadPoolExecutor, int] = {self._executor: 0}
        """Work that each pool still has: the one in use, and those that were too large or too small."""
        self._lock = threading.Lock()
        self._entries: dict[str, TimerEntry] = {}
        self._repeating: dict[str, tuple[Callable[[], float], Callable[[], object]]] = {}
        self._stopped = False

    def every(
        self, name: str, interval_ms: Callable[[], float], job: Callable[[], object], first_ms: float | None = None
    ) -> None:
        """Run `job` after each `interval_ms()`, which is asked anew each time; the first time after `first_ms`."""
        self._repeating[name] = (interval_ms, job)
        self._arm(name, interval_ms() if first_ms is None else first_ms)

    def intervals_changed(self) -> None:
        """Wait no longer than the intervals that are configured now. A job that is due or runs is left alone.

        Nor longer than before: changes that follow each other closely must not hold the jobs back.
        """
        for name, (interval_ms, _) in list(self._repeating.items()):
            new_ms = interval_ms()
            with self._lock:
                entry = self._entries.get(name)
                sooner = entry is not None and new_ms < self._timer.left_ms(entry) and self._timer.cancel(entry)
            if sooner:
                self._arm(name, new_ms)

    @property
    def stopped(self) -> bool:
        """Whether `soon` would run a job in its caller's thread."""
        return self._stopped

    def soon(self, job: Callable[[], object]) -> None:
        """Run `job` once, as soon as a thread is free; at once, by the caller, when the scheduler has stopped."""
        with self._lock:
            if not self._stopped:
                self._submit(partial(_logged, "single", job))
                return
        job()

    def flush_soon(self, job: Callable[[], object]) -> None:
        """As `soon`, for what waits for an fsync: jobs that share half of the threads, and so leave the others free."""
        with self._lock:
            if not self._stopped:
                self._flushes.append(job)
                if self._flushing < self._most_flushing:
                    self._flushing += 1
                    self._submit(self._run_flushes)
                return
        job()

    def resize(self, threads: int) -> None:
        """Use that many threads from now on; what runs ends where it runs."""
        with self._lock:
            if self._stopped:
                return
            old, self._executor = self._executor, self._pool(threads)
            self._most_flushing = _most_flushing(threads)
            self._unfinished[self._executor] = 0
            self._forget_if_done(old)
        old.shutdown(wait=False)

    def stop(self) -> None:
        """Start nothing more and wait for what runs."""
        with self._lock:
            self._stopped = True
            for entry in self._entries.values():
                self._timer.cancel(entry)
            self._entries.clear()
            pools = list(self._unfinished)
        for pool in pools:
            pool.shutdown(wait=True)

    def _arm(self, name: str, delay_ms: float) -> None:
        interval_ms, job = self._repeating[name]

        def run() -> None:
            try:
                _logged(name, job)
            finally:
                self._arm(name, _next_ms(name, interval_ms))

        def due() -> None:
            with self._lock:
                if not self._stopped:
                    self._submit(run)

        with self._lock:
            if not self._stopped:
                self._entries[name] = self._timer.schedule(due, delay_ms)

    def _run_flushes(self) -> None:
        while True:
            with self._lock:
                if not self._flushes or self._flushing > self._most_flushing:
                    self._flushing -= 1
                    return
                job = self._flushes.popleft()
            _logged("flush", job)

    def _submit(self, work: Callable[[], None]) -> None:
        """Under the lock."""
        pool = self._executor
        self._unfinished[pool] += 1
        try:
            pool.submit(self._run, pool, work)
        except RuntimeError:
            # No thread can be started now. The work lies in the queue already: the next thread takes it.
            log.exception("no background thread can be started")
            self._timer.schedule(self._start_a_thread, RETRY_MS)

    def _run(self, pool: ThreadPoolExecutor, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as failure:
            self._on_death(failure)
            raise
        finally:
            with self._lock:
                self._unfinished[pool] -= 1
                self._forget_if_done(pool)

    def _forget_if_done(self, pool: ThreadPoolExecutor) -> None:
        """Under the lock: a pool that is out of use and has no work left needs nobody to wait for it."""
        if pool is not self._executor and not self._unfinished[pool]:
            del self._unfinished[pool]

    def _start_a_thread(self) -> None:
        with self._lock:
            if not self._stopped:
                self._submit(_nothing)

    def _pool(self, threads: int) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(max_workers=threads, thread_name_prefix=thread_name(self._name))


def _most_flushing(threads: int) -> int:
    return max(1, threads // 2)


def _next_ms(name: str, interval_ms: Callable[[], float]) -> float:
    try:
        return interval_ms()
    except Exception:
        log.exception("background job has no interval job=%s", name)
        return RETRY_MS


def _nothing() -> None:
    """Work for a thread that is only to be started."""


def _logged(name: str, job: Callable[[], object]) -> None:
    try:
        job()
    except Exception:
        log.exception("background job failed job=%s", name)
