"""No more rows a second than somebody allows."""

import threading
import time
from collections.abc import Callable
from typing import Final

_PIECES_A_SECOND: Final = 10


def _wait(duration_s: float) -> None:
    threading.Event().wait(duration_s)


class Pace:
    """Rows a second, counted from the first on. Threads: one."""

    def __init__(
        self,
        rows_per_second: float | None,
        now_s: Callable[[], float] = time.monotonic,
        wait_s: Callable[[float], None] = _wait,
    ) -> None:
        """None: as quick as it goes. Raises ValueError."""
        if rows_per_second is not None and rows_per_second <= 0:
            raise ValueError(f"a rate is more than nothing: {rows_per_second}")
        self._rate: Final = rows_per_second
        self._now_s: Final = now_s
        self._wait_s: Final = wait_s
        self._due_s = 0.0

    @property
    def piece(self) -> int:
        """How many rows to send at once, so that a second's are spread over it; 0: any number."""
        return 0 if self._rate is None else max(int(self._rate / _PIECES_A_SECOND), 1)

    def sent(self, rows: int) -> None:
        """Wait until more may be sent. What was not sent in time is not made up for later."""
        if self._rate is None:
            return
        self._due_s = max(self._due_s, self._now_s()) + rows / self._rate
        while (left_s := self._due_s - self._now_s()) > 0:
            self._wait_s(left_s)
