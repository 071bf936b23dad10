"""Which threads are running requests, for who may go on only when what began before is over.

A request looks at the rights that count, and acts upon that a moment later: meanwhile it may wait for the processor, or
for a log's lock. So an append may follow a revocation that came in between. Who answers that something is revoked waits
for the turns that go on at that moment; those that begin later see it. Nobody's thread is kept waiting: who ends the
last of these turns tells so. A turn may hang on a disk for ever, though: who waits gives up some time.
"""

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Lock
from types import TracebackType
from typing import Final, Self
from weakref import WeakSet


class Turn:
    """One thread's. `goes_on` is its own, `at_end` is filled by any."""

    __slots__ = ("__weakref__", "at_end", "goes_on")

    def __init__(self) -> None:
        self.goes_on = False
        """Set before anything is decided, and taken away when all is done that was; whoever does looks at `at_end`."""
        self.at_end: Final[deque[Wait]] = deque()
        """Bounded by how long each of them waits, see `Wait.give_up`."""

    def __enter__(self) -> Self:
        self.goes_on = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.goes_on = False
        self.tell()

    def tell(self) -> None:
        """Tell who waits for its end. The turn's own thread, while it does not go on; each is told once."""
        while self.at_end:
            try:
                wait = self.at_end.popleft()
            except IndexError:
                # Who waited has found that it did not go on, or gives up.
                return
            wait.one_is_over()

    def let_go(self, wait: "Wait") -> None:
        """Tell this one alone, who found that it does not go on: it may by now, for others who wait. Any thread."""
        try:
            self.at_end.remove(wait)
        except ValueError:
            # It has been told.
            return
        wait.one_is_over()


class Turns:
    """Those of all threads that run requests. Threads: any; `_lock` guards the set of turns."""

    def __init__(self) -> None:
        self._lock: Final = Lock()
        self._turns: Final[WeakSet[Turn]] = WeakSet()

    def new(self) -> Turn:
        """That of a thread which begins to run requests; forgotten with it."""
        turn = Turn()
        with self._lock:
            self._turns.add(turn)
        return turn

    def when_over(self, done: Callable[[], object]) -> "Wait":
        """Call `done`, which must be short, when all turns are over that go on now: by who ends the last of them.

        At once, by this thread, if there are none.
        """
        with self._lock:
            turns = list(self._turns)
        wait = Wait(turns, done)
        for turn in turns:
            turn.at_end.append(wait)
            if not turn.goes_on:
                turn.let_go(wait)
        wait.one_is_over()
        return wait


class Wait:
    """For the end of all of some turns. Threads: any; `_lock` guards all."""

    __slots__ = ("_count", "_done", "_lock", "_turns")

    def __init__(self, turns: Sequence[Turn], done: Callable[[], object]) -> None:
        self._turns = turns
        self._count = len(turns) + 1
        """And one for who begins to wait."""
        self._done: Callable[[], object] | None = done
        self._lock: Final = Lock()

    def one_is_over(self) -> None:
        """One of the turns is; or it is waited for each of them."""
        with self._lock:
            self._count -= 1
            if self._count:
                return
            done = self._forget()
        if done is not None:
            done()

    def give_up(self) -> None:
        """Nobody wants to know any more: a turn that hangs is to keep nothing of it."""
        with self._lock:
            turns = self._turns
            self._forget()
        for turn in turns:
            with suppress(ValueError):
                # Else it is over.
                turn.at_end.remove(self)

    def _forget(self) -> Callable[[], object] | None:
        done, self._done, self._turns = self._done, None, ()
        return done
