"""Until when a member must be heard of, and for what.

A heartbeat moves the session's deadline and touches no timer: the one timer of a member looks at the deadlines when it
fires, and is set again for the nearest.
"""

from typing import Final

NEVER: Final = 1 << 62


class Deadlines:
    """One member's deadlines, in ms of the shard's monotonic clock; NEVER for none. Guarded by the shard's lock."""

    __slots__ = ("armed_ms", "join_ms", "revoke_ms", "session_ms", "sync_ms")

    def __init__(self) -> None:
        self.session_ms = NEVER
        """To give a sign of life."""
        self.revoke_ms = NEVER
        """To give up the partitions that it was told to (rebalance timeout)."""
        self.join_ms = NEVER
        """A classic member's, to join again after it was told REBALANCE_IN_PROGRESS."""
        self.sync_ms = NEVER
        """A classic member's, to ask for its assignment after it has joined."""
        self.armed_ms = NEVER
        """When the timer fires."""

    def nearest_ms(self) -> int:
        return min(self.session_ms, self.revoke_ms, self.join_ms, self.sync_ms)

    def missed(self, monotonic_ms: int) -> str | None:
        """Why the member must go, None if it need not."""
        if monotonic_ms >= self.session_ms:
            return "its session expired"
        if monotonic_ms >= self.revoke_ms:
            return "it did not give up its partitions within its rebalance timeout"
        if monotonic_ms >= self.join_ms:
            return "it did not join again within its rebalance timeout"
        if monotonic_ms >= self.sync_ms:
            return "it did not ask for its assignment within its rebalance timeout"
        return None
