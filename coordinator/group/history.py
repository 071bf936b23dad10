"""What happened to a group lately: a bounded ring of transitions with their reasons."""

from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

REMEMBERED_TRANSITIONS: Final = 64


class Transition(NamedTuple):
    """One change of a group: from one state to another, or within a state (a member that is late)."""

    timestamp_ms: int
    old_state: str
    new_state: str
    reason: str
    """Who joined, who timed out, who is late."""


class History:
    """The last transitions of one group, oldest first. Guarded by the shard's lock; a copy may leave it."""

    __slots__ = ("_ring",)

    def __init__(self) -> None:
        self._ring: deque[Transition] = deque(maxlen=REMEMBERED_TRANSITIONS)

    def note(self, timestamp_ms: int, old_state: str, new_state: str, reason: str) -> None:
        """Remember a transition; the oldest one goes when the ring is full."""
        self._ring.append(Transition(timestamp_ms, old_state, new_state, reason))

    def __iter__(self) -> Iterator[Transition]:
        return iter(tuple(self._ring))

    def __len__(self) -> int:
        return len(self._ring)
