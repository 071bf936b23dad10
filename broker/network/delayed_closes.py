"""Connections that are closed, unheard, after a while: of addresses that open too many of them (KIP-612).

An address whose connections were closed at once would open the next ones at once.
"""

import socket
import time
from collections import deque
from collections.abc import Callable
from typing import Final

MOST: Final = 1_000
"""So many wait; one more costs the one that would be next. Each has a file descriptor."""


class DelayedCloses:
    """Threads: the acceptor's that owns it, and when that has ended, whoever closes all."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s: Final = now_s
        self._waiting: Final[deque[tuple[float, socket.socket]]] = deque()
        """In the order in which they came. Their times differ by a second at most, and nobody hears of them."""

    def add(self, client: socket.socket, delay_ms: int) -> None:
        """Close that one after so long."""
        if len(self._waiting) >= MOST:
            self._waiting.popleft()[1].close()
        self._waiting.append((self._now_s() + delay_ms / 1000, client))

    def close_due(self) -> float | None:
        """Close those whose time is over: after how long (ms) the next one's is; None if there are none."""
        waiting = self._waiting
        now_s = self._now_s()
        while waiting and waiting[0][0] <= now_s:
            waiting.popleft()[1].close()
        return (waiting[0][0] - now_s) * 1000 + 1 if waiting else None

    def close_all(self) -> None:
        """Close what is left."""
        while self._waiting:
            self._waiting.popleft()[1].close()
