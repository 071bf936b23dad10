"""What a group's member has counted; `member_metrics` gives it the names of Kafka's."""

from __future__ import annotations

from typing import Protocol


class GroupMetrics(Protocol):
    """Takes what happens. Threads: the client's, but for `told`."""

    def rebalance_began(self, now_ms: float) -> None:
        """This member is about to give up and join."""

    def rebalance_ended(self, now_ms: float) -> None:
        """It has an assignment."""

    def rebalance_failed(self) -> None:
        """A rebalance came to nothing; in classic groups each JoinGroup and SyncGroup that had an error or no answer,
        but for the one that only gives a member its id (which Java's consumer counts too).
        """

    def joined(self, took_ms: float) -> None:
        """JoinGroup was answered."""

    def synced(self, took_ms: float) -> None:
        """SyncGroup was answered."""

    def heartbeat(self, now_ms: float, took_ms: float) -> None:
        """A heartbeat was answered."""

    def committed(self, took_ms: float) -> None:
        """Offsets were stored."""

    def told(self, what: str, took_ms: float) -> None:
        """A listener was told: `what` is assigned, revoked or lost. Polling thread."""
