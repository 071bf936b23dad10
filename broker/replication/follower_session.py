"""A follower's side of its fetch session with a leader (KIP-227): which of its fetches it is. Pure.

id 0, epoch 0    all partitions, and a session, please
id s, epoch n    what has changed since the fetch before
id s, epoch 0    all partitions, and another session in place of s
"""

from typing import Final

from kavka.protocol.errors import ErrorCode

NO_SESSION: Final = 0
FULL: Final = 0
_LAST_EPOCH: Final = (1 << 31) - 1


class FollowerSession:
    """Threads: the fetcher's own."""

    __slots__ = ("epoch", "id")

    def __init__(self) -> None:
        self.id = NO_SESSION
        self.epoch = FULL

    @property
    def is_full(self) -> bool:
        """Whether the next fetch names all partitions."""
        return self.epoch == FULL

    def answered(self, session_id: int) -> None:
        """The leader answered, without an error; with id 0 it keeps no session, or not any more."""
        self.id = session_id
        if session_id == NO_SESSION:
            self.epoch = FULL
        else:
            self.epoch = 1 if self.epoch == _LAST_EPOCH else self.epoch + 1

    def refused(self, code: int) -> None:
        """The leader answered with an error for the whole fetch."""
        if code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self.id = NO_SESSION
        self.epoch = FULL

    def lost(self) -> None:
        """No answer came: what the leader remembers is not known."""
        self.epoch = FULL
