"""Receive buffers that are used again once nobody looks at them any more.

Whether a buffer is free is asked of the interpreter: every view of it, wherever a request took it, holds a
reference. So
nobody has to give a buffer back, and none is written while it is read. What it saves is the kernel's work: a fresh
megabyte costs 256 page faults, and as much again to give it back.
"""

from sys import getrefcount
from typing import Final

LARGEST_KEPT_BYTES: Final = 4 * 1024 * 1024


def _references(buffers: list[bytearray], index: int) -> int:
    return getrefcount(buffers[index])


REFERENCES_WHEN_FREE: Final = _references([bytearray(1)], 0)
"""Those of the list and of the counting itself: measured, for interpreters differ."""


class BufferPool:
    """Keeps up to `capacity_bytes` of buffers. Threads: its owner alone; views may die on any thread."""

    __slots__ = ("_buffers", "_capacity_bytes", "_kept_bytes")

    def __init__(self, capacity_bytes: int) -> None:
        self._capacity_bytes = capacity_bytes
        self._kept_bytes = 0
        self._buffers: list[bytearray] = []

    def take(self, size_bytes: int) -> bytearray | None:
        """A free buffer of at least that size, if there is one; it is in use as long as somebody holds it."""
        buffers = self._buffers
        for index in range(len(buffers)):
            if len(buffers[index]) >= size_bytes and _references(buffers, index) == REFERENCES_WHEN_FREE:
                return buffers[index]
        return None

    def keep(self, buffer: bytearray) -> None:
        """Use a buffer again from now on, if there is room for it. One that is kept already is no matter."""
        size = len(buffer)
        if size > LARGEST_KEPT_BYTES or self._kept_bytes + size > self._capacity_bytes:
            return
        if all(buffer is not known for known in self._buffers):
            self._buffers.append(buffer)
            self._kept_bytes += size
