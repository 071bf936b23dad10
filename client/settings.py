"""What a network client goes by."""

from typing import NamedTuple


class ClientSettings(NamedTuple):
    """Limits and times, named after Kafka's settings where these exist; the defaults are Kafka's too. Immutable."""

    client_id: str | None = "kavka"
    discover_versions: bool = True
    """Ask each broker for its versions (ApiVersions) before anything else. Without, every request names its own."""
    max_in_flight: int = 5
    """Requests without an answer on a connection: max.in.flight.requests.per.connection."""
    max_answer_bytes: int = 104_857_600
    """An answer that says it is larger closes the connection."""
    request_timeout_ms: float = 30_000
    reconnect_backoff_ms: float = 50
    reconnect_backoff_max_ms: float = 1_000
    connection_setup_timeout_ms: float = 10_000
    """For the first attempt (KIP-601): from looking up the host's name until requests can be sent."""
    connection_setup_timeout_max_ms: float = 30_000
    send_buffer_bytes: int = -1
    """SO_SNDBUF; -1: as the operating system has it."""
    receive_buffer_bytes: int = -1
    """SO_RCVBUF; -1: as the operating system has it."""
    max_idle_ms: float = float("inf")
    """connections.max.idle.ms: a connection over which nothing was asked for so long is closed."""
    honours_throttling: bool = False
    """Leave a broker alone for as long as its answers ask for (KIP-219)."""
