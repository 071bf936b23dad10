"""An answer that comes later.

Who cannot answer yet, a handler or the controller, returns a `Promise`; whoever can answer settles it, once.
"""

import logging
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, Generic, TypeVar

from kavka.protocol.errors import BrokerError

T = TypeVar("T")
S = TypeVar("S")

log = logging.getLogger(__name__)

MOST_CAUSES: Final = 16
"""A chain of causes may be a circle."""


class Promise(Generic[T]):
    """A response that is owed, or the error in its place.

    `effects_complete` says that what was asked for has been done and only the waiting is left: then the connection's
    next request may run meanwhile. Left False, the connection holds its next request until this one is answered.

    Threads: settled by any thread, and the first one counts; watched by any. Watchers run in their order on the thread
    that settles it, or at once on theirs if it is settled already, with no lock held: they must be short. What they
    raise is logged when another thread's work would suffer. `_gate` guards outcome and watchers. An error is kept
    without the frames it came through (`without_frames`).
    """

    __slots__ = ("_error", "_gate", "_response", "_watchers", "done", "effects_complete")

    def __init__(self, *, effects_complete: bool = False) -> None:
        self.effects_complete: Final = effects_complete
        self.done = False
        """Whether it is settled. Set last, so that who sees it sees the outcome too."""
        self._gate = threading.Lock()
        self._response: Any = None
        self._error: BaseException | None = None
        self._watchers: list[Callable[[Any, BaseException | None], object]] | None = None

    def complete(self, response: T) -> bool:
        """Settle with `response`; False when it was settled before."""
        return self.settle(response, None)

    def fail(self, error: BaseException) -> bool:
        """Settle with an error, answered as if the handler had raised it; False when it was settled before."""
        return self.settle(None, error)

    def settle_by(self, answer: Callable[[], T]) -> None:
        """Settle with what `answer()` returns or raises."""
        try:
            response = answer()
        except Exception as failure:  # noqa: BLE001 - handed on to the one who answers
            self.fail(failure)
        else:
            self.complete(response)

    def settle(self, response: T | None, error: BaseException | None) -> bool:
        """Settle as another one was, whose watcher this may be; False when it was settled before."""
        if error is not None:
            without_frames(error)
        with self._gate:
            if self.done:
                return False
            self._response = response
            self._error = error
            self.done = True
            watchers, self._watchers = self._watchers, None
        for watcher in watchers or ():
            try:
                watcher(response, error)
            except Exception:
                # Not the fault of the one who settles, nor of the other watchers.
                log.exception("an answer came, and who waited for it failed")
        return True

    def watch(self, watcher: Callable[[T | None, BaseException | None], object]) -> None:
        """Have `watcher(response, error)` called once when settled: at once, by this thread, if it is already."""
        with self._gate:
            if not self.done:
                if self._watchers is None:
                    self._watchers = [watcher]
                else:
                    self._watchers.append(watcher)
                return
        watcher(self._response, self._error)

    def then(
        self,
        respond: "Callable[[T], S | Promise[S]]",
        otherwise: "Callable[[BaseException], S | Promise[S]] | None" = None,
    ) -> "Promise[S]":
        """A promise of `respond(response)`, or of `otherwise(error)`: of a value, or of what a further promise brings.

        Without `otherwise` the error is handed on; so is what either raises. Both run as watchers do.
        """
        later: Promise[S] = Promise()

        def settle(response: Any, error: BaseException | None) -> None:
            try:
                if error is None:
                    made = respond(response)
                elif otherwise is not None:
                    made = otherwise(error)
                else:
                    later.fail(error)
                    return
            except Exception as failure:  # noqa: BLE001 - handed on to the one who answers
                later.fail(failure)
                return
            if isinstance(made, Promise):
                made.watch(later.settle)
            else:
                later.complete(made)

        self.watch(settle)
        return later

    def or_response(self) -> "T | Promise[T]":
        """The response if it is there already, which spares the dispatcher the way of those that come later.

        Raises the error if that is.
        """
        return self.result() if self.done else self

    def result(self, timeout_s: float = 0) -> T:
        """Wait for the response. Raises the error, TimeoutError. For who starts or stops a broker; no other waits."""
        if not self.done and timeout_s > 0:
            settled = threading.Event()
            self.watch(lambda *_: settled.set())
            settled.wait(timeout_s)
        if not self.done:
            raise TimeoutError(f"no answer came within {timeout_s} s")
        if self._error is not None:
            raise self._error
        return self._response  # type: ignore[no-any-return]  # a T, as there is no error


def without_frames(error: BaseException) -> None:
    """Have an error let go of the frames that it came through.

    Their variables hold the request, its bytes and mostly the error itself, which only the garbage collector would find
    then, at its leisure: it counts objects, not bytes. What is no BrokerError keeps its traceback as text, for the log.
    """
    if error.__traceback__ is not None and not isinstance(error, BrokerError) and not hasattr(error, "__notes__"):
        error.add_note("".join(traceback.format_exception(error)))
    each: BaseException | None = error
    for _ in range(MOST_CAUSES):
        if each is None:
            return
        each.__traceback__ = None
        each = each.__cause__ or each.__context__


def gather(
    promises: Sequence[Promise[T]], respond: Callable[[list[T]], S], *, effects_complete: bool = False
) -> Promise[S]:
    """A promise of `respond(responses)`, in the order of `promises`, once all of them are settled.

    The first error in that order, or what `respond` raises, fails it.

    Threads: `respond` runs on the thread that settles the last one, or at once on this one, with no lock held.
    """
    gathered: Promise[S] = Promise(effects_complete=effects_complete)
    _gather_rest(iter(promises), promises, respond, gathered)
    return gathered


def _gather_rest(
    rest: Iterator[Promise[T]],
    promises: Sequence[Promise[T]],
    respond: Callable[[list[T]], S],
    gathered: Promise[S],
    *_: object,
) -> None:
    """Also a watcher: one promise is watched at a time, so that no two threads come here at once.

    No closure, which would know itself: requests would be left to the garbage collector.
    """
    for promise in rest:
        if not promise.done:
            promise.watch(partial(_gather_rest, rest, promises, respond, gathered))
            return
    gathered.settle_by(lambda: respond([promise.result() for promise in promises]))
