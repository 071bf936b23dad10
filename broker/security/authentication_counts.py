"""How clients' authentications went, by listener, under Kafka's names (those of its selectors)."""

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from kavka.broker.quotas.samples import Average, Maximum, Window

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


RECENTLY: Final = Window(2, 30_000)
"""What Kafka's averages look back on."""


class _Latency:
    """How long clients took to authenticate again of late, in ms."""

    __slots__ = ("average_ms", "longest_ms")

    def __init__(self) -> None:
        self.average_ms = Average(RECENTLY)
        self.longest_ms = Maximum(RECENTLY)


class AuthenticationCounts:
    """Threads: any; `_lock` guards the numbers."""

    def __init__(self, now_ms: Callable[[], int] = lambda: time.monotonic_ns() // 1_000_000) -> None:
        self._now_ms: Final = now_ms
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
            lambda: self._latency(lambda each, now_ms: each.average_ms.measure(now_ms)),
        )
        metrics.gauge(
            f"{PREFIX}reauthentication_latency_max",
            "The longest that a client took to authenticate again, in ms.",
            lambda: self._latency(lambda each, now_ms: each.longest_ms.measure(now_ms)),
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
            now_ms = self._now_ms()
            latency.average_ms.record(taken_ms, now_ms)
            latency.longest_ms.record(taken_ms, now_ms)

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

    def _latency(self, read: Callable[[_Latency, int], float]) -> "list[tuple[Labels, float]]":
        with self._lock:
            now_ms = self._now_ms()
            return [({"listener": name}, read(each, now_ms)) for name, each in self._latencies.items()]


def counts_of(metrics: "Metrics") -> AuthenticationCounts:
    """Those of a broker, which its metrics show."""
    mine = AuthenticationCounts()
    counts = metrics.shared(mine)
    if counts is mine:
        counts.register(metrics)
    return counts
