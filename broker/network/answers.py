"""Answers in request order, and what of them the socket has not taken yet. No socket in here.

Each request takes a slot when it starts. Whoever completes the head slot gathers all ready ones and writes them.
"""

from collections import deque
from typing import Any, Protocol


class FileSlice(Protocol):
    """Bytes of a log segment that go out by sendfile; the segment is pinned until `release`."""

    position: int
    size_bytes: int

    def fileno(self) -> int:
        """The descriptor to send from."""
        ...

    def failed(self, error: OSError | None) -> None:
        """The file could not be read, or with None, it ended too early. Takes leaf locks only."""
        ...

    def release(self) -> None:
        """Unpin the segment."""
        ...


Part = bytes | memoryview | FileSlice
Answer = bytes | list[Part]
NO_ANSWER: bytes = b""
"""The answer of acks=0: a slot that writes nothing."""


class Slot(Protocol):
    """A request's place in the order of answers. `answer` is an Answer, or None as long as there is none."""

    answer: Any
    local_done_ns: int
    completed_ns: int


class AnswerQueue:
    """The slots of one connection.

    Threads: `slots` grows at its end, by the thread that runs the connection (one at a time); `gather`, `drop` and the
    backlog under the connection's write lock; `head_ready` by any thread.
    """

    __slots__ = ("_held_up", "backlog", "backlog_size_bytes", "held_up_size_bytes", "slots")

    def __init__(self) -> None:
        self.slots: deque[Slot] = deque()
        self.backlog: deque[Part] = deque()
        self.backlog_size_bytes = 0
        """Bytes of the backlog that are held in memory (file slices are not)."""
        self.held_up_size_bytes = 0
        """The same of large answers that are ready and wait for those before them."""
        self._held_up: dict[Slot, int] = {}

    @property
    def head_ready(self) -> bool:
        """Whether the oldest slot has its answer."""
        slots = self.slots
        try:
            return bool(slots) and slots[0].answer is not None
        except IndexError:
            # Somebody else took it after the look.
            return False

    def gather(self, done: list[Slot] | None = None) -> list[Part]:
        """Remove the ready slots from the head: their parts in order. `done` collects the requests."""
        slots = self.slots
        parts: list[Part] = []
        while slots:
            answer = slots[0].answer
            if answer is None:
                break
            slot = slots.popleft()
            if self._held_up:
                self.held_up_size_bytes -= self._held_up.pop(slot, 0)
            if done is not None:
                done.append(slot)
            if answer.__class__ is bytes:
                if answer:
                    parts.append(answer)
            else:
                parts.extend(answer)
        return parts

    def hold_up(self, slot: Slot) -> None:
        """Count a large answer that is ready, if it still waits for those before it. Under the write lock."""
        # Slots that come meanwhile do no harm: slots are compared by identity, which runs no Python.
        if slot in self.slots and slot not in self._held_up:
            answer = slot.answer
            self._held_up[slot] = size_bytes = _memory_bytes([answer] if answer.__class__ is bytes else answer)
            self.held_up_size_bytes += size_bytes

    def withdraw(self, slot: Slot) -> None:
        """Take the newest slot back, which gets no answer. Under the write lock, by who runs the connection."""
        if self.slots and self.slots[-1] is slot:
            self.slots.pop()

    def hold_back(self, parts: list[Part]) -> None:
        """The socket did not take these."""
        self.backlog.extend(parts)
        self.backlog_size_bytes += _memory_bytes(parts)

    def drop(self) -> None:
        """The connection is gone: unpin what was to be sent, forget the rest."""
        slots = self.slots
        while slots:
            # The I/O thread may take another slot meanwhile: no iterating.
            answer = slots.popleft().answer
            if answer.__class__ is list:
                release_parts(answer)
        release_parts(list(self.backlog))
        self.backlog.clear()
        self.backlog_size_bytes = 0
        self._held_up.clear()
        self.held_up_size_bytes = 0


def release_parts(parts: list[Part]) -> None:
    """Unpin what was to be sent and will not be."""
    for part in parts:
        if not isinstance(part, bytes | memoryview):
            part.release()


def _memory_bytes(parts: list[Part]) -> int:
    return sum([len(part) for part in parts if isinstance(part, bytes | memoryview)])
