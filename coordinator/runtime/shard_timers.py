"""One shard's timers over the broker's timer, whose thread they never hold up."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, Final

from kavka.coordinator.ports import Delays
from kavka.coordinator.runtime.result import Result

RETRY_MS: Final = 5_000

log = logging.getLogger(__name__)


class ScheduledOperation:
    """An operation that waits for its time, or, once that has come, for the shard's lock."""

    __slots__ = ("entry", "key", "operation")

    def __init__(self, key: Hashable, operation: Callable[[], Result]) -> None:
        self.key = key
        self.operation = operation
        self.entry: Any = None


class ShardTimers:
    """Implements `ports.Timers`.

    Threads: the shard's lock guards `_scheduled`. The timer's thread puts what falls due into `_due` and has
    `run_due` called by a background thread unless it is to be called already (`_awake`, guarded by `_gate`); that
    takes the operations out by `next_due`, under the shard's lock.

    No exception ends a timer: an operation that fails comes again after a while (`failed`), and so does the wish to
    run what is due if nobody can be found to run it.
    """

    __slots__ = ("_awake", "_delays", "_due", "_gate", "_scheduled", "_wake")

    def __init__(self, delays: Delays, wake: Callable[[], None]) -> None:
        self._delays = delays
        self._wake = wake
        self._scheduled: dict[Hashable, ScheduledOperation] = {}
        self._due: deque[ScheduledOperation] = deque()
        self._gate = threading.Lock()
        self._awake = False

    def schedule(self, key: Hashable, delay_ms: float, operation: Callable[[], Result]) -> None:
        """See `ports.Timers`."""
        self.cancel(key)
        scheduled = self._scheduled[key] = ScheduledOperation(key, operation)
        scheduled.entry = self._delays.schedule(partial(self._fall_due, scheduled), delay_ms)

    def cancel(self, key: Hashable) -> None:
        """See `ports.Timers`."""
        scheduled = self._scheduled.pop(key, None)
        if scheduled is not None:
            self._delays.cancel(scheduled.entry)

    def is_scheduled(self, key: Hashable) -> bool:
        """See `ports.Timers`."""
        return key in self._scheduled

    def cancel_all(self) -> None:
        """The shard has ended."""
        for key in list(self._scheduled):
            self.cancel(key)

    def next_due(self) -> ScheduledOperation | None:
        """Take out an operation whose time has come, if it is still wanted. Under the shard's lock."""
        while self._due:
            scheduled = self._due.popleft()
            if self._scheduled.get(scheduled.key) is scheduled:
                del self._scheduled[scheduled.key]
                return scheduled
        return None

    def failed(self, scheduled: ScheduledOperation) -> None:
        """It raised an exception: once more after a while, unless it has been scheduled. Under the shard's lock."""
        if scheduled.key not in self._scheduled:
            self.schedule(scheduled.key, RETRY_MS, scheduled.operation)

    def rest(self) -> bool:
        """Whether nothing is due, so that whoever runs what is due may end."""
        with self._gate:
            self._awake = bool(self._due)
            return not self._awake

    def _fall_due(self, scheduled: ScheduledOperation) -> None:
        with self._gate:
            self._due.append(scheduled)
            if self._awake:
                return
            self._awake = True
        self._have_run()

    def _have_run(self) -> None:
        try:
            self._wake()
        except Exception:
            log.exception("what is due cannot be run now")
            self._delays.schedule(self._have_run, RETRY_MS)
