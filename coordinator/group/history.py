"""What happened to a group lately: a bounded ring of transitions with their reasons.

In this broker's memory only: a coordinator that moves, or is started again, begins with "read from the log".
"""

from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

from kavka.protocol.messages.describe_groups import GroupTransition

REMEMBERED_TRANSITIONS: Final = 64
REMEMBERED_CHARACTERS: Final = 8_192
"""Of all reasons of a group together: ids in them are the clients', and may be long."""
REASON_CHARACTERS: Final = 255
"""Of each."""


class Transition(NamedTuple):
    """One change of a group: from one state to another, or within a state (a member that is late)."""

    timestamp_ms: int
    old_state: str
    new_state: str
    reason: str
    """Who joined, who timed out, who is late."""
    epoch: int
    """The generation of a classic group, the epoch of a consumer group, once this had happened."""
    member_count: int
    """How many members there were then."""
    begins_rebalance: bool
    """Whether members get new assignments because of it."""


class History:
    """The last transitions of one group, oldest first. Guarded by the shard's lock; a copy may leave it."""

    __slots__ = ("_characters", "_ring")

    def __init__(self) -> None:
        self._ring: deque[Transition] = deque()
        self._characters = 0

    def note(self, transition: Transition) -> None:
        """Remember a transition, its reason cut where it is long; the oldest ones go where there is no room."""
        if len(transition.reason) > REASON_CHARACTERS:
            transition = transition._replace(reason=transition.reason[:REASON_CHARACTERS])
        self._ring.append(transition)
        self._characters += len(transition.reason)
        while len(self._ring) > REMEMBERED_TRANSITIONS or self._characters > REMEMBERED_CHARACTERS:
            self._characters -= len(self._ring.popleft().reason)

    def follow(self, earlier: "History") -> None:
        """The group was of another protocol before: that one's history comes before what is remembered here."""
        own = tuple(self._ring)
        self._ring.clear()
        self._characters = 0
        for transition in (*earlier, *own):
            self.note(transition)

    def described(self) -> list[GroupTransition]:
        """As the Describe answers carry it, oldest first."""
        return [
            GroupTransition(
                timestamp_ms=each.timestamp_ms,
                old_state=each.old_state,
                new_state=each.new_state,
                reason=each.reason,
                epoch=each.epoch,
                member_count=each.member_count,
                begins_rebalance=each.begins_rebalance,
            )
            for each in self._ring
        ]

    def __iter__(self) -> Iterator[Transition]:
        return iter(tuple(self._ring))

    def __len__(self) -> int:
        return len(self._ring)
