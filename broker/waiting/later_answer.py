"""An answer that its handler can make only once something has come, which may be at once."""

import threading
from collections.abc import Callable
from typing import Final, Generic, TypeVar, cast

from kavka.broker.waiting.promise import Promise

T = TypeVar("T")


class LaterAnswer(Generic[T]):
    """An answer that is made once something has come, which may have been at once.

    Threads: `come` once, by any thread; `has_come` once, by the thread that has to answer. `_lock` guards both flags.
    Whoever is second makes the answer: `has_come` returns True and leaves it to its caller, or `come` does it.
    """

    __slots__ = ("_has_come", "_is_awaited", "_lock", "_make", "promise")

    def __init__(self, make: Callable[[], "T | Promise[T] | None"]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._has_come = False
        self._is_awaited = False
        self.promise: Final[Promise[T]] = Promise()
        """The connection's next request waits: the effects are still to come."""

    def has_come(self) -> bool:
        """Whether it has; if not, `promise` will be kept."""
        with self._lock:
            self._is_awaited = not self._has_come
            return self._has_come

    def come(self) -> None:
        """Now it has."""
        with self._lock:
            self._has_come = True
            if not self._is_awaited:
                return
        try:
            answer = self._make()
        except Exception as failure:  # noqa: BLE001 - handed on to the one who answers
            self.promise.fail(failure)
            return
        if isinstance(answer, Promise):
            answer.watch(self._settle)
        else:
            self._settle(answer, None)

    def _settle(self, answer: T | None, error: BaseException | None) -> None:
        if error is not None:
            self.promise.fail(error)
        else:
            # None is an answer too: none at all, for acks=0.
            self.promise.complete(cast("T", answer))
