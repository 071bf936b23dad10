"""What the controller's thread has to do next.

Requests queue in order, up to a bound. Notices (a watch fired, answers came) say only that something is to be looked
at: a second one of a kind adds nothing while the first one waits, so there are never more of them than kinds. Notices
go first: a request then sees the cluster as it is.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Final

Event = Callable[[], None]

MAX_QUEUED_REQUESTS: Final = 5_000


class EventQueue:
    """Filled by any thread, drained by one.

    Threads: `_condition` guards all attributes; the length is read without it.
    """

    __slots__ = ("_condition", "_is_closed", "_notices", "_requests")

    def __init__(self) -> None:
        self._condition = threading.Condition(threading.Lock())
        self._requests: deque[Event] = deque()
        self._notices: dict[Event, None] = {}
        self._is_closed = False

    def request(self, event: Event) -> bool:
        """False, and nothing done, when the queue is full or closed."""
        with self._condition:
            if self._is_closed or len(self._requests) >= MAX_QUEUED_REQUESTS:
                return False
            self._requests.append(event)
            self._condition.notify()
        return True

    def notice(self, event: Event) -> None:
        """Never blocks; `event` is a bound method, equal to itself the next time."""
        with self._condition:
            if not self._is_closed:
                self._notices[event] = None
                self._condition.notify()

    def next(self) -> Event | None:
        """Wait for the next event; None once the queue is closed and its requests are drained."""
        with self._condition:
            while not self._notices and not self._requests:
                if self._is_closed:
                    return None
                self._condition.wait()
            if self._notices:
                event = next(iter(self._notices))
                del self._notices[event]
                return event
            return self._requests.popleft()

    def __len__(self) -> int:
        return len(self._notices) + len(self._requests)

    def close(self) -> None:
        """No new events; what waits is still handed out, but for notices."""
        with self._condition:
            self._is_closed = True
            self._notices.clear()
            self._condition.notify()
