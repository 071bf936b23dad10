"""What a network client has done so far."""

from collections.abc import Callable


class ClientCounts:
    """Totals since the client was made. Threads: the client's owner adds, any thread reads (an int is read whole)."""

    __slots__ = (
        "answers",
        "authentications",
        "bad_answers",
        "connections",
        "disconnects",
        "failed_authentications",
        "failed_connects",
        "failed_reauthentications",
        "on_reauthenticated",
        "reauthentications",
        "received_bytes",
        "requests",
        "sent_bytes",
        "timeouts",
    )

    def __init__(self) -> None:
        self.connections = 0
        """Opened: requests could be sent."""
        self.failed_connects = 0
        """Attempts that came to nothing, failed lookups of names among them."""
        self.disconnects = 0
        """Open connections that ended, whoever closed them."""
        self.authentications = 0
        """Connections that were made secure, by TLS or SASL; of those without there is none."""
        self.failed_authentications = 0
        self.reauthentications = 0
        """Sessions that went on over an open connection (KIP-368)."""
        self.failed_reauthentications = 0
        self.on_reauthenticated: Callable[[float, float], object] = _ignored
        """Is told, on the owner's thread, how long each took (ms) that succeeded, and the time."""
        self.requests = 0
        self.answers = 0
        self.timeouts = 0
        """Connections closed because an answer was owed for too long."""
        self.bad_answers = 0
        """Connections closed because what came was not the answer owed."""
        self.sent_bytes = 0
        self.received_bytes = 0


def _ignored(_taken_ms: float, _now_ms: float) -> None:
    """For clients whose metrics nobody reads."""
