"""An answer that comes later.

A handler that cannot answer yet returns a `Promise`; whoever can answer completes it, from any thread, once.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, Generic, TypeVar

T = TypeVar("T")
S = TypeVar("S")


class Promise(Generic[T]):
    """The response that a handler owes.

    `effects_complete` says that what the request does has been done and only the waiting is left: then the connection's
    next request may run meanwhile. Left False, the connection holds its next request until this one is answered.

    Threads: completed by any thread, watched by one. `_settled` is taken by the first completion and never
    released, so that later ones change nothing; `_gate` is held while outcome and watcher are exchanged.
    """

    __slots__ = ("_gate", "_outcome", "_settled", "_watcher", "effects_complete")

    def __init__(self, *, effects_complete: bool = False) -> None:
        self.effects_complete: Final = effects_complete
        self._settled = threading.Lock()
        self._gate = threading.Lock()
        self._outcome: tuple[T | None, BaseException | None] | None = None
        self._watcher: Callable[[T | None, BaseException | None], None] | None = None

    def complete(self, response: T) -> bool:
        """Settle with `response`; False when it was settled before."""
        return self._settle(response, None)

    def fail(self, error: BaseException) -> bool:
        """Settle with an error, answered as if the handler had raised it; False when it was settled before."""
        return self._settle(None, error)

    def settle_by(self, answer: Callable[[], T]) -> None:
        """Settle with what `answer()` returns or raises."""
        try:
            response = answer()
        except Exception as failure:  # noqa: BLE001 - handed on to the one who answers
            self.fail(failure)
        else:
            self.complete(response)

    def watch(self, watcher: Callable[[T | None, BaseException | None], None]) -> None:
        """Have `watcher(response, error)` called once when settled: at once, by this thread, if it is already."""
        with self._gate:
            outcome = self._outcome
            if outcome is None:
                self._watcher = watcher
                return
        watcher(*outcome)

    @property
    def done(self) -> bool:
        """Whether it is settled."""
        return self._outcome is not None

    def or_response(self) -> "T | Promise[T]":
        """The response if it is there already, which spares the dispatcher the way of those that come later."""
        outcome = self._outcome
        if outcome is None or outcome[0] is None:
            return self
        return outcome[0]

    def _settle(self, response: T | None, error: BaseException | None) -> bool:
        if not self._settled.acquire(blocking=False):
            return False
        with self._gate:
            self._outcome = (response, error)
            watcher = self._watcher
            self._watcher = None
        if watcher is not None:
            watcher(response, error)
        return True

    @classmethod
    def of_future(
        cls, future: "Future[S]", transform: Callable[[S], T], *, effects_complete: bool = False
    ) -> "Promise[T]":
        """A promise of `transform(future.result())`; what either raises fails it."""
        promise = cls(effects_complete=effects_complete)

        def settle(done: "Future[S]") -> None:
            error = done.exception()
            if error is not None:
                promise.fail(error)
                return
            try:
                response = transform(done.result())
            except Exception as failure:  # noqa: BLE001 - handed on to the one who answers
                promise.fail(failure)
            else:
                promise.complete(response)

        future.add_done_callback(settle)
        return promise
