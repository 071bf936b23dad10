"""A byte stream cut into frames: 4 bytes of size (i32, big endian), then that many bytes. No socket in here.

Small frames are parsed where they were received, in their thread's read-ahead arena, all whole ones at once. A
frame that did not arrive whole moves to a buffer of its own, which grows with what has arrived: a lying length costs
its sender, not us. Buffers are used again (buffer_pool.py).
"""

import struct
from collections.abc import Sequence
from typing import Final

from kavka.protocol.buffer_pool import BufferPool
from kavka.protocol.errors import DecodeError

SIZE: Final = struct.Struct(">i")
ARENA_SIZE_BYTES: Final = 128 * 1024
ARENAS_KEPT_BYTES: Final = 8 * ARENA_SIZE_BYTES
BUFFERS_KEPT_BYTES: Final = 8 * 1024 * 1024
ARENA_LOW_BYTES: Final = 16 * 1024
SMALL_FRAME_BYTES: Final = 16 * 1024
GROWTH: Final = 4
TLS_HELLO: Final = b"\x16\x03"
HTTP_METHODS: Final = frozenset({b"GET ", b"HEAD", b"POST", b"PUT ", b"PRI ", b"OPTI", b"DELE", b"CONN", b"HTTP"})
FIRST_BUFFER_BYTES: Final = 64 * 1024


class Arena:
    """Where one thread receives. Frames are handed out as views of it, so it is never written twice.

    Threads: its owner alone; the views live on wherever frames go, and keep the memory alive.
    """

    __slots__ = ("_pool", "_position", "_view")

    def __init__(self) -> None:
        self._pool = BufferPool(ARENAS_KEPT_BYTES)
        self._view = self._fresh()
        self._position = 0

    def space(self) -> memoryview:
        """Room for the next receive, ARENA_LOW_BYTES at least."""
        if ARENA_SIZE_BYTES - self._position < ARENA_LOW_BYTES:
            self._view = self._fresh()
            self._position = 0
        return self._view[self._position :]

    def keep(self, size_bytes: int) -> None:
        """The first `size_bytes` of the last `space()` are in use from now on."""
        self._position += size_bytes

    def _fresh(self) -> memoryview:
        buffer = self._pool.take(ARENA_SIZE_BYTES)
        if buffer is None:
            buffer = bytearray(ARENA_SIZE_BYTES)
            self._pool.keep(buffer)
        return memoryview(buffer)


class FrameReader:
    """Cuts one connection's stream. `max_size_bytes` may be raised once the peer is authenticated.

    While `buffer` is not None a frame has begun that is not whole: then receive into `own_space()`, else into the
    arena.

    Threads: the connection's owner alone.
    """

    __slots__ = ("_filled", "_needed", "_pool", "buffer", "failure", "max_size_bytes")

    def __init__(self, max_size_bytes: int, pool: BufferPool | None = None) -> None:
        """`pool` is its thread's; without one, nothing is used again."""
        self.max_size_bytes = max_size_bytes
        self._pool = pool if pool is not None else BufferPool(0)
        self.buffer: bytearray | None = None
        self.failure: DecodeError | None = None
        """A bad size has come, and no frame can be told from here on."""
        self._filled = 0
        self._needed = 0

    @property
    def partial_size_bytes(self) -> int:
        """How much of the frame that has begun must be held until it is whole (0: its size is not known yet)."""
        return self._needed

    def own_space(self) -> memoryview:
        """Room for more of the frame that has begun, ending where it ends as far as that is known."""
        buffer = self.buffer
        if buffer is None:
            raise RuntimeError("no frame has begun")
        if self._filled == len(buffer):
            smaller, buffer = buffer, self._room_for(self._filled)
            buffer[: self._filled] = smaller
            self.buffer = buffer
        return memoryview(buffer)[self._filled : self._needed or SIZE.size]

    def arrived_own(self, size_bytes: int) -> memoryview | None:
        """`size_bytes` came into `own_space()`: the frame, if it is whole now. After a bad size see `failure`."""
        buffer = self.buffer
        if buffer is None:
            raise RuntimeError("no frame has begun")
        self._filled += size_bytes
        if self._needed == 0:
            if self._filled < SIZE.size:
                return None
            size = SIZE.unpack_from(buffer)[0]
            if not 0 <= size <= self.max_size_bytes:
                self._fail(size)
                return None
            self._needed = SIZE.size + size
        if self._filled < self._needed:
            return None
        frame = memoryview(buffer)[SIZE.size : self._needed]
        self._pool.keep(buffer)
        self.buffer = None
        self._filled = self._needed = 0
        return frame

    def arrived(self, data: memoryview) -> list[memoryview]:
        """`data` came into the arena and no frame had begun: its whole frames. What is left over begins one.

        After a bad size these are the frames before it, and `failure` says the rest.
        """
        frames: list[memoryview] = []
        position, end = 0, len(data)
        while end - position >= SIZE.size:
            size = SIZE.unpack_from(data, position)[0]
            if not 0 <= size <= self.max_size_bytes:
                self._fail(size)
                return frames
            frame_end = position + SIZE.size + size
            if frame_end > end:
                self._needed = SIZE.size + size
                break
            frames.append(data[position + SIZE.size : frame_end])
            position = frame_end
        if position < end:
            self._begin(data[position:end])
        return frames

    def forget(self) -> None:
        """The connection is closed: the rest of the frame that has begun will not come."""
        # The failure, once it is raised, knows the frames that have the connection, and so this reader.
        self.buffer = self.failure = None
        self._filled = self._needed = 0

    def _begin(self, head: memoryview) -> None:
        filled = len(head)
        buffer = self._room_for(filled)
        buffer[:filled] = head
        self.buffer, self._filled = buffer, filled

    def _room_for(self, filled: int) -> bytearray:
        """A buffer for the whole frame, if one is free; else a new one, only so much larger than what has arrived."""
        needed = max(self._needed, SIZE.size)
        pooled = self._pool.take(needed) if needed > FIRST_BUFFER_BYTES else None
        return pooled if pooled is not None else bytearray(min(needed, max(FIRST_BUFFER_BYTES, filled * GROWTH)))

    def _fail(self, size: int) -> None:
        self.buffer = None
        beyond = f", more than the {self.max_size_bytes} allowed" if size > 0 else ""
        spoken = what_speaks(SIZE.pack(size))
        told = "" if spoken is None else f": the other side speaks {spoken}, which nobody understands here"
        self.failure = DecodeError(f"a frame of {size} bytes{beyond}{told}")


def what_speaks(first_bytes: bytes) -> str | None:
    """What protocol a stream is of that begins so, among those that come by mistake; None for none of them."""
    if first_bytes[:2] == TLS_HELLO:
        return "TLS"
    return "HTTP" if first_bytes in HTTP_METHODS else None


def apart(frames: Sequence[memoryview]) -> list[memoryview]:
    """Frames that will wait for long: small ones as copies, for a view would keep all of its arena."""
    return [memoryview(bytearray(frame)) if frame.nbytes < SMALL_FRAME_BYTES else frame for frame in frames]
