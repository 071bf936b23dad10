"""When a run is to stop: asked for by a signal, and answered between two batches."""

import threading


class StopRequested(Exception):  # noqa: N818  # an order, and no error
    """A batch did not begin, because the run is to stop. It comes again in the next run."""


class Stopping:
    """Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked = False
        self._closed = False
        self._busy: set[str] = set()
        self._woken = threading.Condition(self._lock)

    @property
    def is_asked(self) -> bool:
        """Whether the run is to stop."""
        with self._lock:
            return self._asked

    def ask(self) -> None:
        """Batches that run are done first; none begins any more."""
        with self._lock:
            self._asked = True
            self._woken.notify_all()

    def begin(self, query: str) -> None:
        """A batch begins. Raises StopRequested."""
        with self._lock:
            if self._asked or self._closed:
                raise StopRequested("the run is to stop")
            self._busy.add(query)

    def end(self, query: str) -> None:
        """It is done, well or not."""
        with self._lock:
            self._busy.discard(query)
            self._woken.notify_all()

    def wake(self) -> None:
        """Something else has happened that `wait` is waited for with."""
        with self._lock:
            self._woken.notify_all()

    def wait(self, timeout_s: float) -> bool:
        """Until something happens, or the time is up: whether the run is to stop."""
        with self._lock:
            if not self._asked:
                self._woken.wait(timeout_s)
            return self._asked

    def close(self) -> None:
        """No batch begins any more, though nobody has asked for it."""
        with self._lock:
            self._closed = True

    def wait_for_batches(self, timeout_s: float | None) -> bool:
        """Until no batch runs: whether that came within the time."""
        with self._lock:
            return self._woken.wait_for(lambda: not self._busy, timeout_s)
