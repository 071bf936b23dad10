"""A thread that copies logs to other directories of this broker, one after the other."""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from kavka.broker.log_moves.log_copy import LogCopy, Progress
from kavka.config.thread_names import thread_name
from kavka.protocol.errors import BrokerError

if TYPE_CHECKING:
    from kavka.broker.replication.throttle import ReplicationThrottle
    from kavka.broker.settings.dynamic_config import DynamicConfig

log: Final = logging.getLogger(__name__)

THROTTLED_MS: Final = 100
"""How long a thread waits before it looks whether the throttle lets it go on."""


class _Waiting:
    """A copy and when it is to go on."""

    __slots__ = ("complaint", "copy", "resume_ms")

    def __init__(self, copy: LogCopy) -> None:
        self.copy: Final = copy
        self.resume_ms = 0.0
        self.complaint: str | None = None
        """What it met last, which is logged once."""


class LogMover:
    """Copies until nothing is left, then ends. `throttle` is that of all of them.

    Threads: `_run` and what it calls on its own thread; the rest any. `_changed` guards `_waiting` and `_has_ended`.
    """

    def __init__(
        self,
        name: str,
        config: "DynamicConfig",
        throttle: "ReplicationThrottle",
        on_death: Callable[[BaseException], None],
    ) -> None:
        self.throttle: Final = throttle
        self._config: Final = config
        self._on_death: Final = on_death
        self._changed: Final = threading.Condition()
        self._waiting: dict[tuple[str, int], _Waiting] = {}
        self._has_ended = False
        self._is_stopping = False
        self._thread: Final = threading.Thread(target=self._run, name=thread_name(name), daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def failed_count(self) -> int:
        """How many copies met an error and wait for another try."""
        with self._changed:
            return sum(each.complaint is not None for each in self._waiting.values())

    def add(self, copy: LogCopy) -> bool:
        """Copy it from now on, in the place of another one of its partition. False: this thread has ended."""
        with self._changed:
            if self._has_ended:
                return False
            known = self._waiting.get(copy.key)
            if known is None or (known.copy.current, known.copy.future) != (copy.current, copy.future):
                self._waiting[copy.key] = _Waiting(copy)
            self._changed.notify()
            return True

    def drop(self, keys: Iterable[tuple[str, int]]) -> None:
        """Copy these no more; a step that is under way comes to its end, and finds that it is out of date."""
        with self._changed:
            for key in keys:
                self._waiting.pop(key, None)
            self._changed.notify()

    def begin_stop(self) -> None:
        """End after the step that is under way."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify()

    def join(self) -> None:
        """Wait until the thread has ended, if it was ever started."""
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            while (waiting := self._next()) is not None:
                self._step(waiting)
        except BaseException as failure:  # noqa: BLE001 - whoever owns the broker is told of any
            self._on_death(failure)
        finally:
            with self._changed:
                self._has_ended = True

    def _next(self) -> _Waiting | None:
        """The first that need not wait, once the throttle allows; None when there is nothing to do any more."""
        with self._changed:
            while not self._is_stopping:
                if not self._waiting:
                    # Under the lock: who adds one now makes another thread.
                    self._has_ended = True
                    return None
                now_ms = time.monotonic() * 1000
                first = min(self._waiting.values(), key=lambda each: each.resume_ms)
                if first.resume_ms > now_ms:
                    self._changed.wait((first.resume_ms - now_ms) / 1000)
                elif self.throttle.is_limited and self.throttle.is_exceeded():
                    self._changed.wait(THROTTLED_MS / 1000)
                else:
                    # The one that was begun goes on: one after the other is soonest done.
                    return next(each for each in self._waiting.values() if each.resume_ms <= now_ms)
            return None

    def _step(self, waiting: _Waiting) -> None:
        copy, config = waiting.copy, self._config.current
        limit = config.replica_alter_log_dirs_io_max_bytes_per_second
        max_bytes = max(min(config.replica_fetch_max_bytes, limit), 1)
        try:
            progress, copied_bytes = copy.step(max_bytes)
        except BrokerError as failure:
            self._pause(waiting, config.replica_fetch_backoff_ms, str(failure))
            return
        except Exception as failure:
            # One log's trouble, which the others that move are not to share.
            log.exception("a move met what nobody expected log=%s", copy.current)
            self._pause(waiting, config.replica_fetch_backoff_ms, repr(failure))
            return
        if copied_bytes:
            self.throttle.record(copy.current, copied_bytes)
        if progress is Progress.DONE:
            with self._changed:
                if self._waiting.get(copy.key) is waiting:
                    del self._waiting[copy.key]
        elif progress is Progress.STUCK:
            self._pause(waiting, config.replica_fetch_backoff_ms, None)
        else:
            waiting.complaint = None

    def _pause(self, waiting: _Waiting, backoff_ms: int, complaint: str | None) -> None:
        if complaint is not None and complaint != waiting.complaint:
            log.error("cannot move log=%s, tried again: %s", waiting.copy.current, complaint)
        with self._changed:
            waiting.complaint = complaint
            waiting.resume_ms = time.monotonic() * 1000 + backoff_ms
