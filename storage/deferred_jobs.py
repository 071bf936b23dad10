"""Jobs for later: files that are unlinked `file.delete.delay.ms` after nobody needs them any more."""

import heapq
import logging
import threading
from collections.abc import Callable
from typing import Final, NamedTuple

from kavka.protocol.errors import BrokerError
from kavka.storage.files import PASSING

RETRY_DELAY_MS: Final = 5_000
"""A job that failed is tried again after that, then after twice as long each time."""
MOST_DOUBLINGS: Final = 4
MOST_TRIES: Final = 5
"""Of a job that fails for a reason that doesn't pass by itself; the next start does what it should have done."""

_log: Final = logging.getLogger(__name__)


class _Job(NamedTuple):
    due_ms: int
    number: int
    run: Callable[[], None]
    failures: int = 0


class DeferredJobs:
    """Jobs by the time they are due.

    What is still here when the broker stops is lost, so a job must be one that the next start does by itself (it sweeps
    what is called `.deleted` and `-delete`), and one that may be run again where it failed half way. Bounded by the
    files on the disk: each job unlinks some. Threads: any; `_lock` guards `_heap` and `_count`, and is not held while a
    job runs.
    """

    __slots__ = ("_count", "_heap", "_lock", "_now_ms")

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._heap: list[_Job] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, delay_ms: int, job: Callable[[], None]) -> None:
        """Let `run_due` run the job once `delay_ms` have passed."""
        self._add(delay_ms, job, 0)

    def run_due(self) -> int:
        """Run what is due, in order, and return how many.

        What failed is tried again; some times only, unless the reason passes. Its first failure is logged, and where it
        is left to the next start, that.
        """
        done = 0
        while (job := self._take()) is not None:
            try:
                job.run()
            except (OSError, BrokerError) as error:
                self._failed(job, error)
            done += 1
        return done

    def _failed(self, job: _Job, error: OSError | BrokerError) -> None:
        passes = isinstance(error, OSError) and error.errno in PASSING
        if not passes and job.failures + 1 >= MOST_TRIES:
            _log.warning("could not delete, left to the next start: %s", error)
            return
        if not job.failures:
            _log.warning("could not delete, tried again: %s", error)
        self._add(RETRY_DELAY_MS << min(job.failures, MOST_DOUBLINGS), job.run, job.failures + 1)

    def _add(self, delay_ms: int, job: Callable[[], None], failures: int) -> None:
        with self._lock:
            self._count += 1
            heapq.heappush(self._heap, _Job(self._now_ms() + delay_ms, self._count, job, failures))

    def _take(self) -> _Job | None:
        with self._lock:
            if not self._heap or self._heap[0].due_ms > self._now_ms():
                return None
            return heapq.heappop(self._heap)
