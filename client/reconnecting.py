"""When a node may be tried again, and for how long a try may take. No socket, no clock."""

from typing import Final

from kavka.client.backoff import ExponentialBackoff
from kavka.client.settings import ClientSettings


class Reconnecting:
    """One node's failures in a row. Threads: the client's owner alone.

    An attempt that fails, and a connection that ends, are a failure each; a connection that opens forgets them all.
    """

    __slots__ = ("_backoff", "_setup_timeout", "_setups_timed_out", "failures", "not_before_ms")

    def __init__(self, settings: ClientSettings) -> None:
        self._backoff: Final = ExponentialBackoff(settings.reconnect_backoff_ms, settings.reconnect_backoff_max_ms)
        self._setup_timeout: Final = ExponentialBackoff(
            settings.connection_setup_timeout_ms, settings.connection_setup_timeout_max_ms
        )
        self._setups_timed_out = 0
        self.failures = 0
        self.not_before_ms = 0.0
        """The next attempt may begin then, on the client's clock."""

    def failed(self, now_ms: float, *, setup_timed_out: bool = False) -> None:
        """The connection, or the attempt to make one, ended now."""
        self.failures += 1
        self._setups_timed_out += setup_timed_out
        self.not_before_ms = now_ms + self._backoff.delay_ms(self.failures)

    def opened(self) -> None:
        """The node can be reached."""
        self.failures = self._setups_timed_out = 0
        self.not_before_ms = 0.0

    def setup_timeout_ms(self) -> float:
        """How long the next attempt may take: longer, the more of them have taken too long (KIP-601)."""
        return self._setup_timeout.delay_ms(self._setups_timed_out + 1)
