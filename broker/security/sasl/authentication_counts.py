"""How clients' authentications went, by listener, under Kafka's names (those of its selectors)."""

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kavka.broker.metrics.registry import Labels, Metrics

PREFIX: Final = "kafka_server_socket_server_metrics_"
COUNTERS: Final = {
    "successful_authentication": "Connections whose client has authenticated.",
    "failed_authentication": "Connections whose client could not authenticate.",
    "successful_reauthentication": "Times that clients have authenticated again (KIP-368).",
    "failed_reauthentication": "Times that clients could not authenticate again.",
    "successful_authentication_no_reauth": "Connections whose client authenticated and cannot do so again.",
}
EXPIRED: Final = "expired_connections_killed_count"


class _Latency:
    """How long clients took to authenticate again, in ms."""

    __slots__ = ("count", "longest_ms", "sum_ms")

    def __init__(self) -> None:
        self.count = 0
        self.sum_ms = 0.0
        self.longest_ms = 0.0


class AuthenticationCounts:
    """Threads: any; `_lock` guards the numbers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, str], int] = {}
        self._latencies: dict[str, _Latency] = {}
        self._expired = 0

    def register(self, metrics: "Metrics") -> None:
        """Have them shown."""
        for name, text in COUNTERS.items():
            metrics.gauge(PREFIX + name, text, partial(self._of, name), "counter")
        metrics.gauge(
            f"{PREFIX}reauthentication_latency_avg",
            "How long clients took on average to authenticate again, in ms.",
            lambda: self._latency(lambda each: each.sum_ms / each.count),
        )
        metrics.gauge(
            f"{PREFIX}reauthentication_latency_max",
            "The longest that a client took to authenticate again, in ms.",
            lambda: self._latency(lambda each: each.longest_ms),
        )
        metrics.gauge(PREFIX + EXPIRED, "Connections closed because their session had expired.", lambda: self._expired)

    def succeeded(self, listener_name: str, knows_lifetimes: bool) -> None:
        """A client has authenticated. `knows_lifetimes`: it can do so again (SaslAuthenticate v1)."""
        self._add("successful_authentication", listener_name)
        if not knows_lifetimes:
            self._add("successful_authentication_no_reauth", listener_name)

    def succeeded_again(self, listener_name: str, taken_ms: float) -> None:
        """A client has authenticated again."""
        self._add("successful_reauthentication", listener_name)
        with self._lock:
            latency = self._latencies.setdefault(listener_name, _Latency())
            latency.count += 1
            latency.sum_ms += taken_ms
            latency.longest_ms = max(latency.longest_ms, taken_ms)

    def failed(self, listener_name: str, *, is_repeated: bool) -> None:
        """A client has not shown who it is. `is_repeated`: it had before."""
        self._add("failed_reauthentication" if is_repeated else "failed_authentication", listener_name)

    def expired(self) -> None:
        """A connection is closed because its session has expired."""
        with self._lock:
            self._expired += 1

    def _add(self, name: str, listener_name: str) -> None:
        with self._lock:
            key = name, listener_name
            self._counts[key] = self._counts.get(key, 0) + 1

    def _of(self, name: str) -> "list[tuple[Labels, float]]":
        with self._lock:
            return [({"listener": key[1]}, float(count)) for key, count in self._counts.items() if key[0] == name]

    def _latency(self, read: Callable[[_Latency], float]) -> "list[tuple[Labels, float]]":
        with self._lock:
            return [({"listener": name}, read(each)) for name, each in self._latencies.items()]
