"""What a network client waits with, and how long that takes."""

import selectors
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any, Final, Protocol


class Selecting(Protocol):
    """The part of the standard library's selectors that is used."""

    def register(self, fileobj: Any, events: int, data: Any = None, /) -> object: ...
    def modify(self, fileobj: Any, events: int, data: Any = None, /) -> object: ...
    def unregister(self, fileobj: Any, /) -> object: ...
    def select(self, timeout: float | None = None, /) -> Iterable[tuple[selectors.SelectorKey, int]]: ...
    def close(self) -> None: ...


class TimedSelector:
    """A selector that knows how long it has waited, and how long what it found has taken.

    Threads: the client's owner; any reads the numbers, each of which is one value.
    """

    def __init__(self) -> None:
        """Raises OSError when no descriptors are left."""
        self._selector: Final = selectors.DefaultSelector()
        self.register: Final = self._selector.register
        self.modify: Final = self._selector.modify
        self.unregister: Final = self._selector.unregister
        self.close: Final = self._selector.close
        self.turn: threading.Lock | None = None
        """The owner's, but for while it waits: who takes it meanwhile stands in for the owner."""
        self.selects = 0
        self.waited_ns = 0
        self.busy_ns = 0

    def select(self, timeout: float | None = None) -> Iterator[tuple[selectors.SelectorKey, int]]:
        """What is ready, one after the other; who asks for the next one is through with the one before."""
        turn, began_ns = self.turn, time.perf_counter_ns()
        if turn is None or timeout == 0:
            found = self._selector.select(timeout)
        else:
            turn.release()
            try:
                found = self._selector.select(timeout)
            finally:
                turn.acquire()
        waited_ns = time.perf_counter_ns()
        self.selects += 1
        self.waited_ns += waited_ns - began_ns
        if found:
            try:
                yield from found
            finally:
                self.busy_ns += time.perf_counter_ns() - waited_ns
