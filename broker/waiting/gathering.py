"""Answers of several coordinators that make one."""

import threading
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar, cast

T = TypeVar("T")
_MISSING: Final[Any] = object()


class Gathering(Generic[T]):
    """Collects `count` values, which come in any order, and calls `done` with them in their own order, once.

    Threads: `put` by any thread; `done` runs on the thread that brings the last value (or makes a gathering of none),
    with no lock held.
    """

    __slots__ = ("_done", "_lock", "_missing", "_values")

    def __init__(self, count: int, done: Callable[[list[T]], None]) -> None:
        self._done = done
        self._lock = threading.Lock()
        self._missing = count
        self._values: list[T] = [cast("T", _MISSING)] * count
        if count == 0:
            done([])

    def put(self, index: int, value: T) -> None:
        """The value of that place; a second one for the same place is dropped."""
        with self._lock:
            if self._values[index] is not _MISSING:
                return
            self._values[index] = value
            self._missing -= 1
            complete = self._missing == 0
        if complete:
            self._done(self._values)
