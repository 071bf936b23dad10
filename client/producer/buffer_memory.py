"""The memory of records that wait: bounded by `buffer.memory`, in pieces of `batch.size` that are used again."""

import threading
import time
from collections import deque
from collections.abc import Callable
from io import BytesIO
from typing import Final

from kavka.client.api_errors import ClientClosedError
from kavka.client.producer.errors import BufferExhaustedError


class BufferMemory:
    """Gives buffers out and takes them back. Who has to wait is served first come, first served.

    So a large piece is not overtaken by small ones for ever. Threads: any. `_lock` guards all; it is held for no longer
    than a few steps, and each who waits has a condition of its own.
    """

    def __init__(
        self,
        total_bytes: int,
        piece_bytes: int,
        now_ms: Callable[[], float] = lambda: time.monotonic() * 1000,
        on_wait: Callable[[], None] = lambda: None,
    ) -> None:
        """Buffers of `piece_bytes` are kept when they come back; others are not.

        `on_wait` is called when somebody begins to wait: what lingers has to be sent.
        """
        self.total_bytes: Final = total_bytes
        self.piece_bytes: Final = piece_bytes
        self._now_ms: Final = now_ms
        self._on_wait: Final = on_wait
        self._lock: Final = threading.Lock()
        self._idle: list[BytesIO] = []
        self._unused_bytes = total_bytes
        self._waiting: deque[_Waiting] = deque()
        self._is_closed = False
        self.exhausted = 0
        """How often somebody waited in vain."""
        self.waited_ms = 0.0
        """How long all together have waited."""

    @property
    def available_bytes(self) -> int:
        """What is not given out: the idle buffers too."""
        return self._unused_bytes + len(self._idle) * self.piece_bytes

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def allocate(self, size_bytes: int, deadline_ms: float) -> BytesIO:
        """A buffer that holds `size_bytes` without growing; waits until then for others to give theirs back.

        Raises BufferExhaustedError when there was none in time, ClientClosedError after `close`, ValueError when it is
        more than there is at all.
        """
        if size_bytes > self.total_bytes:
            raise ValueError(f"{size_bytes} bytes are more than buffer.memory, {self.total_bytes}")
        with self._lock:
            self._refuse_closed()
            if not self._waiting and self._take(size_bytes):
                idle = self._idle.pop() if size_bytes == self.piece_bytes and self._idle else None
            else:
                idle = self._wait(size_bytes, deadline_ms)
        return BytesIO(bytes(size_bytes)) if idle is None else idle

    def release(self, stream: BytesIO, size_bytes: int) -> None:
        """Give a buffer back, with the size that was asked for. Nobody may use it any more, but for looking."""
        with self._lock:
            if size_bytes == self.piece_bytes and not self._is_closed:
                self._idle.append(stream)
            else:
                self._unused_bytes += size_bytes
            self._serve()

    def close(self) -> None:
        """Whoever waits, or comes later, gets a ClientClosedError."""
        with self._lock:
            self._is_closed = True
            for waiting in self._waiting:
                waiting.condition.notify()

    def _take(self, size_bytes: int) -> bool:
        """Take so much of what is available off, if it is there. Of a piece that is idle its bytes are left to it."""
        if size_bytes == self.piece_bytes and self._idle:
            return True
        while self._unused_bytes < size_bytes and self._idle:
            self._idle.pop()
            self._unused_bytes += self.piece_bytes
        if self._unused_bytes < size_bytes:
            return False
        self._unused_bytes -= size_bytes
        return True

    def _wait(self, size_bytes: int, deadline_ms: float) -> BytesIO | None:
        waiting = _Waiting(size_bytes, threading.Condition(self._lock))
        self._waiting.append(waiting)
        began_ms = self._now_ms()
        self._on_wait()
        try:
            while not waiting.is_served:
                left_ms = deadline_ms - self._now_ms()
                if left_ms <= 0:
                    self.exhausted += 1
                    raise BufferExhaustedError(
                        f"no {size_bytes} bytes of buffer.memory, {self.total_bytes}, were free within max.block.ms"
                    )
                waiting.condition.wait(min(left_ms / 1000, threading.TIMEOUT_MAX))
                self._refuse_closed()
        except BaseException:
            if waiting.is_served:
                self._give_back(waiting)
            else:
                self._waiting.remove(waiting)
            self._serve()
            raise
        finally:
            self.waited_ms += self._now_ms() - began_ms
        return waiting.idle

    def _serve(self) -> None:
        """Give the first of those who wait what they want, and those behind them, as far as it goes."""
        while self._waiting and self._take(self._waiting[0].size_bytes):
            waiting = self._waiting.popleft()
            waiting.is_served = True
            if waiting.size_bytes == self.piece_bytes and self._idle:
                waiting.idle = self._idle.pop()
            waiting.condition.notify()

    def _give_back(self, waiting: "_Waiting") -> None:
        if waiting.idle is not None:
            self._idle.append(waiting.idle)
        else:
            self._unused_bytes += waiting.size_bytes

    def _refuse_closed(self) -> None:
        if self._is_closed:
            raise ClientClosedError("the producer was closed")


class _Waiting:
    """One thread that waits. Guarded by the memory's lock."""

    __slots__ = ("condition", "idle", "is_served", "size_bytes")

    def __init__(self, size_bytes: int, condition: threading.Condition) -> None:
        self.size_bytes: Final = size_bytes
        self.condition: Final = condition
        self.is_served = False
        self.idle: BytesIO | None = None
