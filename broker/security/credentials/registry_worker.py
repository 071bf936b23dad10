"""One thread for requests that wait for the registry: it may be out of reach long, and I/O threads serve everyone.

Another one is for those that wait for a resolver.
"""

import logging
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Final, TypeVar

from kavka.cluster.promise import Promise
from kavka.config.thread_names import thread_name
from kavka.protocol.errors import BrokerError, ErrorCode

log = logging.getLogger(__name__)

MOST_WAITING: Final = 1_000
RETRY_S: Final = 5.0
STOP_PATIENCE_S: Final = 30.0
T = TypeVar("T")


class RegistryWorker:
    """Does one thing after the other. Its thread starts with the first, and `stop` joins it.

    Threads: any; `_gate` guards `_thread` and `_is_stopped`. `_again` and `_again_s` are the thread's own.
    """

    def __init__(self, name: str = "kavka-credentials") -> None:
        """`name`: its thread's."""
        self._name = name
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._gate = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_stopped = False
        self._again: Callable[[], bool] | None = None
        self._again_s = 0.0
        """When `_again` is due, whatever else waits."""

    def run(self, work: Callable[[], T]) -> Promise[T]:
        """A promise of what `work` returns or raises, settled on the thread.

        REQUEST_TIMED_OUT: too many wait already. KAFKA_STORAGE_ERROR: the broker stops. Raises RuntimeError if the
        thread cannot be started.
        """
        promise: Promise[T] = Promise()
        if self._queue.qsize() >= MOST_WAITING:
            promise.fail(BrokerError(ErrorCode.REQUEST_TIMED_OUT, "Too many requests wait already."))
        elif not self._put(lambda: promise.settle_by(work)):
            promise.fail(BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "The broker stops."))
        return promise

    def look(self, look: Callable[[], bool]) -> None:
        """Have `look` called; where it returns False, again after RETRY_S. For watches, which may not wait."""
        self._put(lambda: self._look(look))

    def stop(self) -> None:
        """Do no more. What waits is done with by the registry, which is out of reach for it by then."""
        with self._gate:
            self._is_stopped = True
            self._queue.put(None)
            thread = self._thread
        if thread is not None:
            thread.join(STOP_PATIENCE_S)
            if thread.is_alive():
                log.error("the stop goes on without a request that the registry still holds up")

    def _put(self, job: Callable[[], None]) -> bool:
        with self._gate:
            if self._is_stopped:
                return False
            if self._thread is None:
                thread = threading.Thread(target=self._run, name=thread_name(self._name), daemon=True)
                # There may be no room for one now, and the next job needs it: nothing waits for one that never began.
                thread.start()
                self._thread = thread
            self._queue.put(job)
        return True

    def _run(self) -> None:
        while True:
            again, left_s = self._again, self._again_s - time.monotonic()
            if again is not None and left_s <= 0:
                self._again = None
                self._look(again)
                continue
            try:
                job = self._queue.get(timeout=None if again is None else left_s)
            except Empty:
                continue
            if job is None:
                return
            job()

    def _look(self, look: Callable[[], bool]) -> None:
        try:
            is_done = look()
        except Exception:
            log.exception("a look at the registry failed")
            is_done = False
        if not is_done:
            self._again, self._again_s = look, time.monotonic() + RETRY_S
