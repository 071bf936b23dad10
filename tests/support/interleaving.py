"""Threads that take turns where a seed says: the same seed, the same interleaving, one byte code at a time.

Only the code of the modules named is cut into steps. Locks that steps may meet must be `TurnLock`s: a thread that waits
for one passes its turn on instead of blocking all.
"""

import random
import sys
import threading
from collections.abc import Callable, Sequence
from types import FrameType, TracebackType
from typing import Any, Self

MAX_TURNS = 2_000_000
"""Far beyond the longest runs seen: one in a hundred takes 100,000 and comes to its end."""


class StuckError(AssertionError):
    """Nobody gets any further."""


class Interleaving:
    """Runs functions as threads, one at a time; another's turn comes after any step, with `chance`."""

    def __init__(self, seed: int, modules: Sequence[object], *, chance: float = 0.1) -> None:
        self._random = random.Random(seed)
        self._files = {str(getattr(module, "__file__", "")) for module in modules}
        self._chance = chance
        self._batons: dict[int, threading.Semaphore] = {}
        self._alive: list[int] = []
        self._mine = threading.local()
        self._failure: BaseException | None = None
        self._turns = 0

    def run(self, *functions: Callable[[], object]) -> None:
        """Run all to their end. Raises what the first of them raised, or StuckError."""
        threads = [
            threading.Thread(target=self._work, args=(number, function)) for number, function in enumerate(functions)
        ]
        self._alive = list(range(len(functions)))
        self._batons = {number: threading.Semaphore(0) for number in self._alive}
        for thread in threads:
            thread.start()
        self._batons[0].release()
        for thread in threads:
            thread.join()
        if self._failure is not None:
            raise self._failure

    def pass_on(self) -> None:
        """Let others go first; called by a running function that has nothing to do."""
        mine: int | None = getattr(self._mine, "number", None)
        if mine is None:
            return
        self._turns += 1
        if self._turns > MAX_TURNS:
            raise StuckError("the threads go round in circles")
        if self._failure is not None:
            raise StuckError("another thread failed")
        following = self._random.choice(self._alive)
        if following != mine:
            self._batons[following].release()
            self._batons[mine].acquire()

    def _work(self, number: int, function: Callable[[], object]) -> None:
        self._batons[number].acquire()
        self._mine.number = number
        try:
            sys.settrace(self._trace)
            function()
        except BaseException as failure:  # noqa: BLE001 - raised again by run
            if self._failure is None:
                self._failure = failure
        finally:
            sys.settrace(None)
            self._alive.remove(number)
            if self._alive:
                self._batons[self._random.choice(self._alive)].release()

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename not in self._files:
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return self._step

    def _step(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode" and self._random.random() < self._chance:
            self.pass_on()
        return self._step


class TurnLock:
    """A lock whose waiters pass their turn on."""

    def __init__(self, turns: Interleaving) -> None:
        self._turns = turns
        self._lock = threading.Lock()

    def acquire(self, blocking: bool = True) -> bool:
        while not self._lock.acquire(blocking=False):
            if not blocking:
                return False
            self._turns.pass_on()
        return True

    def release(self) -> None:
        self._lock.release()

    def locked(self) -> bool:
        return self._lock.locked()

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class WatchedLock:
    """An ordinary lock that tells when somebody has to wait for it."""

    def __init__(self, has_to_wait: threading.Event) -> None:
        self._lock = threading.Lock()
        self._has_to_wait = has_to_wait

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self._has_to_wait.set()
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
