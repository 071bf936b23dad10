"""One fault: how often it has hit, and how often it still will."""

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self

from kavka.broker.waiting.purgatory import WatchList


class Fault:
    """A fault that was asked for, and the handle of who asked. `with` clears it at the end.

    Threads: any. `_lock` guards the counts and what is done when it is cleared.
    """

    def __init__(
        self,
        fault_id: int,
        kind: str,
        *,
        times: int | None = None,
        words: str = "",
    ) -> None:
        """`times`: how many requests it hits, None for all until it is cleared. `words`: what it is about, for people.

        Raises ValueError for a number below one.
        """
        if times is not None and times < 1:
            raise ValueError(f"times is how many requests are hit: not {times}")
        self.id: Final = fault_id
        self.kind: Final = kind
        self.words: Final = words
        self.waiting: Final = WatchList()
        """Requests that it holds back; they go on when it is cleared."""
        self._lock = threading.Lock()
        self._left = times
        self._hits = 0
        self._is_cleared = False
        self._on_clear: list[Callable[[], object]] = []

    @property
    def hits(self) -> int:
        """How many requests it has hit so far."""
        return self._hits

    @property
    def left(self) -> int | None:
        """How many more it will hit; None: all, until it is cleared."""
        return 0 if self._is_cleared else self._left

    @property
    def is_cleared(self) -> bool:
        """Whether it was taken back."""
        return self._is_cleared

    @property
    def is_spent(self) -> bool:
        """Whether it hits no request any more. What it has held back before may still wait."""
        return self._is_cleared or self._left == 0

    def take(self) -> bool:
        """Count one request as hit; False if it hits no more."""
        with self._lock:
            if self._is_cleared or self._left == 0:
                return False
            self._hits += 1
            if self._left is not None:
                self._left -= 1
            return True

    def note_hit(self) -> None:
        """Count what is no request: a write that was refused."""
        with self._lock:
            self._hits += 1

    def when_cleared(self, do: Callable[[], object]) -> None:
        """Have `do()` called when it is cleared, by who clears it; at once if it is."""
        with self._lock:
            if not self._is_cleared:
                self._on_clear.append(do)
                return
        do()

    def clear(self) -> None:
        """Take it back: it hits nothing more, and what it held back goes on. Again is allowed."""
        with self._lock:
            if self._is_cleared:
                return
            self._is_cleared = True
            todo, self._on_clear = self._on_clear, []
        for do in todo:
            do()
        self.waiting.check()

    def described(self) -> dict[str, Any]:
        """What it is and how far it is, for JSON."""
        return {
            "id": self.id,
            "fault": self.kind,
            "about": self.words,
            "hits": self.hits,
            "left": self.left,
            "cleared": self.is_cleared,
        }

    def __repr__(self) -> str:
        return f"<Fault {self.id} {self.kind} {self.words} hits={self.hits} left={self.left}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()
