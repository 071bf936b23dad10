"""A connection's session where faults are: nothing is prepared, so that no request passes them unseen."""

import time
from typing import TYPE_CHECKING

from kavka.broker.requests.session import Session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kavka.broker.faults.fault import Fault
    from kavka.broker.requests.prepared import Prepared
    from kavka.broker.requests.session import Gate
    from kavka.broker.security.acl import Authorizer


class WatchedSession(Session):
    """Threads: as Session; that which holds the connection's `running`, or answers its request."""

    __slots__ = ("_muted_by", "_muted_until_s")

    def __init__(
        self, prepared: "Mapping[int, Prepared]", authorizer: "Authorizer | None" = None, gate: "Gate | None" = None
    ) -> None:
        """`prepared` is not used."""
        super().__init__({}, authorizer, gate)
        self._muted_by: Fault | None = None
        self._muted_until_s = 0.0

    def prepare(self, api_key: int, prepared: "Prepared | None") -> None:
        """Every request takes the ordinary way."""

    def mute(self, fault: "Fault", until_s: float) -> None:
        """Run no request of this connection before that moment (monotonic), or until the fault is cleared."""
        self._muted_by, self._muted_until_s = fault, until_s

    def take_mute(self) -> "tuple[Fault, float] | None":
        """Whose throttle holds the next request, and for how many ms; it does so once."""
        fault, self._muted_by = self._muted_by, None
        left_ms = (self._muted_until_s - time.monotonic()) * 1000
        return None if fault is None or left_ms <= 0 else (fault, left_ms)
