"""Jobs for later: files that are unlinked `file.delete.delay.ms` after nobody needs them any more."""

import heapq
import logging
import threading
from collections.abc import Callable
from typing import Final

from kavka.protocol.errors import BrokerError
from kavka.storage.files import PASSING

RETRY_DELAY_MS: Final = 5_000
"""A job that failed for want of descriptors or room is tried again after that."""

_log: Final = logging.getLogger(__name__)


class DeferredJobs:
    """Jobs by the time they are due.

    What is still here when the broker stops is lost, so a job must be one that the next start does by itself. Bounded
    by the files on the disk: each job unlinks some. Threads: any; `_lock` guards `_heap` and `_count`, and is not held
    while a job runs.
    """

    __slots__ = ("_count", "_heap", "_lock", "_now_ms")

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, delay_ms: int, job: Callable[[], None]) -> None:
        """Let `run_due` run the job once `delay_ms` have passed."""
        with self._lock:
            self._count += 1
            heapq.heappush(self._heap, (self._now_ms() + delay_ms, self._count, job))

    def run_due(self) -> int:
        """Run what is due, in order, and return how many.

        What failed for a reason that passes is tried again; other failures are logged and left to the next start.
        """
        done = 0
        while (job := self._take()) is not None:
            try:
                job()
            except (OSError, BrokerError) as error:
                passes = isinstance(error, OSError) and error.errno in PASSING
                _log.warning("could not delete; tried again %s: %s", "soon" if passes else "at the next start", error)
                if passes:
                    self.add(RETRY_DELAY_MS, job)
            done += 1
        return done

    def _take(self) -> Callable[[], None] | None:
        with self._lock:
            if not self._heap or self._heap[0][0] > self._now_ms():
                return None
            return heapq.heappop(self._heap)[2]
