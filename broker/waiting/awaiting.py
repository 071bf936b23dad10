"""Answers that wait for the controller, for a bounded time."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, Generic, TypeVar

from kavka.broker.waiting.promise import Promise
from kavka.broker.waiting.purgatory import DelayedOperation, Purgatory, WatchList

S = TypeVar("S")
T = TypeVar("T")


class _Awaited(DelayedOperation, Generic[S, T]):
    """Waits for one future; answers with `done(future)`, or `late()` when its time is up."""

    __slots__ = ("_done", "_future", "_late", "promise")

    def __init__(self, future: "Future[S]", done: Callable[["Future[S]"], T], late: Callable[[], T]) -> None:
        super().__init__()
        self._future = future
        self._done = done
        self._late = late
        self.promise: Final[Promise[T]] = Promise()

    def is_satisfied(self) -> bool:
        return self._future.done()

    def respond(self) -> None:
        self.promise.settle_by(lambda: self._done(self._future) if self._future.done() else self._late())


def answer_within(
    purgatory: Purgatory,
    future: "Future[S]",
    timeout_ms: float,
    *,
    done: Callable[["Future[S]"], T],
    late: Callable[[], T],
) -> Promise[T]:
    """A promise of `done(future)` once that is done, or of `late()` after `timeout_ms`.

    Either runs on the thread that completes the future (the controller's, mostly) or the timer's: it must be short.
    What it raises fails the promise. The connection's next request waits meanwhile.
    """
    operation = _Awaited(future, done, late)
    if future.done():
        operation.respond()
        return operation.promise
    watched = WatchList()
    future.add_done_callback(lambda _: watched.check())
    purgatory.park(operation, [watched], timeout_ms)
    return operation.promise
