"""The one queue between network threads and I/O threads: connections that have a request to run.

What is queued is the connection, not the request: it is in the queue at most once, so its requests run in order, and
connections take turns.

`queued.max.requests` bounds the connections in the queue, each for one request, which is what Kafka lets a connection
have there. While there are so many, a connection with more than one request is not read on until its own turns have run
them. It waits for nobody else's, and who brings one request at a time is always read. What a connection brings ahead
of its turns is bounded by its own limits (`connection.py`).
`queued.max.request.bytes` is kept by charging large frames before they are read.
"""

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kavka.broker.network.connection import Connection

LARGE_FRAME_BYTES: Final = 64 * 1024
"""Frames above this are charged to the memory pool; smaller ones are bounded by their number."""


class RequestQueue:
    """The shared queue and its bounds.

    Threads: any. `_lock` guards the memory pool and the connections that wait for it.
    """

    def __init__(self, max_requests: int, max_bytes: int) -> None:
        """`max_bytes`: of large frames together; 0 or less: no limit, as in Kafka."""
        self._queue: SimpleQueue[Connection | None] = SimpleQueue()
        self.put: Final = self._queue.put
        self.get: Final = self._queue.get
        self.qsize: Final = self._queue.qsize
        self.max_requests = max_requests
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self.is_abandoned = False
        """Set when the last I/O thread has ended: whoever has work does it himself."""
        self._charged_bytes = 0
        self._waiting_for_memory: dict[Connection, None] = {}

    def has_room_for(self, connection: "Connection") -> bool:
        """Whether a connection may bring more requests. If not, the end of its own next turn is when to ask again."""
        return len(connection.pending) <= 1 or self.qsize() < self.max_requests

    def defer(
        self, connection: "Connection", work: Callable[[], None], at_end: Callable[[], None] | None = None
    ) -> None:
        """Have an I/O thread do `work`, which may take long, before anything else of a connection.

        By whoever completes what holds the connection's `running`, on a thread that is not to be kept. When no I/O
        thread is left he does `at_end`, which is shorter, or `work` himself.
        """
        if self.is_abandoned:
            (at_end or work)()
            return
        connection.deferred = work
        self.put(connection)

    def go_on(self, connection: "Connection") -> None:
        """Whoever held a connection's `running` until its request was answered gives it to the next one."""
        if connection.pending:
            self.put(connection)
        else:
            connection.running.release()
            # One may have come after the look.
            self.wake(connection)

    def wake(self, connection: "Connection") -> None:
        """Queue a connection if it has requests, may run them, and nobody runs it."""
        if connection.pending and not connection.congested and connection.running.acquire(blocking=False):
            self.put(connection)

    def is_chargeable(self, connection: "Connection", frame_size_bytes: int) -> bool:
        """Whether the pool has a limit, and the frame that a connection receives is large and not yet accounted for."""
        return self._max_bytes > 0 and frame_size_bytes > LARGE_FRAME_BYTES and not connection.charged_size_bytes

    def charge(self, connection: "Connection", frame_size_bytes: int) -> bool:
        """Account for a chargeable frame before reading on; False when the pool is spent, and reading has to wait."""
        with self._lock:
            # A pool that is untouched admits any one frame, else one larger than the pool would wait for ever.
            if self._charged_bytes and self._charged_bytes + frame_size_bytes > self._max_bytes:
                return False
            self._charged_bytes += frame_size_bytes
        connection.charged_size_bytes = frame_size_bytes
        return True

    def wait_for_memory(self, connection: "Connection") -> None:
        """Have a connection that has paused resumed when memory comes back."""
        with self._lock:
            if self._charged_bytes:
                self._waiting_for_memory[connection] = None
                return
        connection.thread.call(connection.thread.resume, connection)

    def forget_charge(self, connection: "Connection") -> None:
        """A connection was closed in the middle of a frame, or while it waited for one's memory."""
        with self._lock:
            self._waiting_for_memory.pop(connection, None)
        charged, connection.charged_size_bytes = connection.charged_size_bytes, 0
        self.release(charged)

    def release(self, charged_size_bytes: int) -> None:
        """A large frame's memory is free again."""
        if not charged_size_bytes:
            return
        with self._lock:
            self._charged_bytes -= charged_size_bytes
            waiting = list(self._waiting_for_memory)
            self._waiting_for_memory.clear()
        for connection in waiting:
            connection.thread.call(connection.thread.resume, connection)
