"""A member of a classic group."""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from kavka.coordinator.runtime.result import Reply

Protocols: TypeAlias = tuple[tuple[str, bytes], ...]
"""What a member can use, the one it likes best first: names and the metadata for each."""


class ClassicMember:
    """One member, and what it waits for.

    `is_new`: it has not heard its member id yet, or at least no generation: its first JoinGroup is still waiting.
    `deadline_ms`: when its session ends (monotonic). `timer_due_ms`: when its timer will look at that, None
    when no timer runs. `awaiting_join`, `awaiting_sync`: the replies that it waits for; set by ClassicGroup only.

    Threads: guarded by the shard's lock.
    """

    __slots__ = (
        "assignment",
        "awaiting_join",
        "awaiting_sync",
        "client_host",
        "client_id",
        "deadline_ms",
        "instance_id",
        "is_new",
        "member_id",
        "protocol_type",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "timer_due_ms",
    )

    def __init__(
        self,
        member_id: str,
        *,
        instance_id: str | None = None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocol_type: str,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocol_type = protocol_type
        self.protocols = protocols
        self.assignment = assignment
        self.is_new = False
        self.deadline_ms = 0
        self.timer_due_ms: int | None = None
        self.awaiting_join: Reply | None = None
        self.awaiting_sync: Reply | None = None

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def is_excused(self) -> bool:
        """Whether it need not send heartbeats now, because it waits for us. A new member's wait has an end, though."""
        return not self.is_new and (self.awaiting_join is not None or self.awaiting_sync is not None)

    def metadata(self, protocol_name: str | None) -> bytes:
        """What it said of itself under that protocol; empty if it does not know it."""
        return next((metadata for name, metadata in self.protocols if name == protocol_name), b"")

    def vote(self, candidates: Collection[str]) -> str | None:
        """The candidate that it likes best."""
        return next((name for name, _ in self.protocols if name in candidates), None)

    def copy(self, member_id: str) -> "ClassicMember":
        """The same member under another id; it waits for nothing and has no timer."""
        return ClassicMember(
            member_id,
            instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            session_timeout_ms=self.session_timeout_ms,
            protocol_type=self.protocol_type,
            protocols=self.protocols,
            assignment=self.assignment,
        )


def protocols_of(offered: Iterable[tuple[str, bytes]]) -> Protocols:
    """What a JoinGroup offers; of two protocols with one name the first counts."""
    first: dict[str, bytes] = {}
    for name, metadata in offered:
        first.setdefault(name, metadata)
    return tuple(first.items())
