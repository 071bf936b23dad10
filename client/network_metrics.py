"""What a client's connections do, under the names that Kafka's clients have for it."""

from collections.abc import Callable
from typing import Final

from kavka.client.call import Call
from kavka.client.client_metrics import Metrics
from kavka.client.counts import ClientCounts
from kavka.client.measures import NAN, Measure
from kavka.client.node import Node, NodeKey
from kavka.client.selecting import TimedSelector

_COORDINATOR_BASE: Final = 2**31 - 1
_MOST_NODES: Final = 10_000
"""Beyond so many different ones, a broker that makes them up gets no metrics of its own."""


class NetworkMetrics:
    """Notes each answer, for all nodes together and for each. Threads: the client's owner."""

    def __init__(self, metrics: Metrics, counts: ClientCounts) -> None:
        self._metrics: Final = metrics
        self._nodes: Final[dict[NodeKey, tuple[Measure, Measure, Measure]]] = {}
        total = metrics.total
        total(lambda: counts.connections, total="connection-creation-total", rate="connection-creation-rate")
        total(lambda: counts.disconnects, total="connection-close-total", rate="connection-close-rate")
        metrics.gauge("connection-count", lambda: counts.connections - counts.disconnects)
        total(lambda: counts.received_bytes, total="incoming-byte-total", rate="incoming-byte-rate")
        total(lambda: counts.sent_bytes, total="outgoing-byte-total", rate="outgoing-byte-rate")
        total(lambda: counts.requests, total="request-total", rate="request-rate")
        total(lambda: counts.answers, total="response-total", rate="response-rate")
        total(lambda: counts.requests + counts.answers, total="network-io-total", rate="network-io-rate")
        for kind, read in (
            ("successful-authentication", lambda: counts.authentications),
            ("failed-authentication", lambda: counts.failed_authentications),
            ("successful-reauthentication", lambda: counts.reauthentications),
            ("failed-reauthentication", lambda: counts.failed_reauthentications),
        ):
            total(read, total=f"{kind}-total", rate=f"{kind}-rate")
        # Whether the other side can do it again is known to brokers alone: Kafka's clients, too, count each one here.
        metrics.gauge("successful-authentication-no-reauth-total", lambda: counts.authentications)
        counts.on_reauthenticated = metrics.measure(
            average="reauthentication-latency-avg", maximum="reauthentication-latency-max"
        ).record
        self._latency: Final = metrics.measure(average="request-latency-avg", maximum="request-latency-max")
        self._size: Final = metrics.measure(average="request-size-avg", maximum="request-size-max")

    def answered(self, node: Node, call: Call, now_ms: float) -> None:
        """An answer came now."""
        latency_ms = now_ms - call.sent_ms
        self._latency.record(latency_ms, now_ms)
        self._size.record(call.size_bytes, now_ms)
        of_node = self._nodes.get(node.key) or self._of(node)
        if of_node is not None:
            of_node[0].record(latency_ms, now_ms)
            of_node[1].record(call.size_bytes, now_ms)
            of_node[2].record(call.answer_size_bytes, now_ms)

    def _of(self, node: Node) -> tuple[Measure, Measure, Measure] | None:
        if len(self._nodes) >= _MOST_NODES:
            return None
        # Kafka's clients number a connection of the coordinator's own from above.
        number = node.id if not node.lane else _COORDINATOR_BASE - node.id
        tags = {"node-id": f"node-{number}"}
        group = f"{self._metrics.domain}-node-metrics"
        made = (
            self._metrics.measure(average="request-latency-avg", maximum="request-latency-max", group=group, tags=tags),
            self._metrics.measure(
                average="request-size-avg",
                maximum="request-size-max",
                rate="outgoing-byte-rate",
                total="outgoing-byte-total",
                count_rate="request-rate",
                count="request-total",
                group=group,
                tags=tags,
            ),
            self._metrics.measure(
                rate="incoming-byte-rate",
                total="incoming-byte-total",
                count_rate="response-rate",
                count="response-total",
                group=group,
                tags=tags,
            ),
        )
        self._nodes[node.key] = made
        return made


def add_times(metrics: Metrics, selector: TimedSelector) -> None:
    """How long the client's thread waits for its connections, and is busy with them; averages of all there ever was."""
    metrics.total(lambda: selector.selects, total="select-total", rate="select-rate")
    ways: tuple[tuple[str, str, Callable[[], float]], ...] = (
        ("io-wait-time-ns", "io-wait-ratio", lambda: selector.waited_ns),
        ("io-time-ns", "io-ratio", lambda: selector.busy_ns),
    )
    for name, ratio, read in ways:
        # What grows by a billion a second is all the time there is.
        metrics.total(read, total=f"{name}-total", rate=ratio, scale=1e-9)
        metrics.gauge(f"{name}-avg", _average(read, selector))


def _average(read: Callable[[], float], selector: TimedSelector) -> Callable[[], float]:
    return lambda: read() / selector.selects if selector.selects else NAN
