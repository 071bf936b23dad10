"""The session with ZooKeeper, and how long requests to it take. Names as in docs/metrics.md."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kavka.broker.metrics.registry import Labels, Metrics

if TYPE_CHECKING:
    from kavka.cluster.registry.zookeeper import ZooKeeperRegistry

QUANTILES: Final = (0.5, 0.95, 0.99, 0.999)


def register_zookeeper_gauges(metrics: Metrics, registry: "ZooKeeperRegistry") -> None:
    """Register them. Called once, by a broker that has a ZooKeeper."""
    counts = registry.session_counts

    def latencies() -> Iterator[tuple[Labels, float]]:
        recent = counts.recent_latencies_ms()
        for share in QUANTILES:
            yield {"quantile": str(share)}, recent[int(share * (len(recent) - 1))] if recent else 0.0

    for name, text, read in (
        ("disconnects", "Connections to ZooKeeper that were lost.", lambda: counts.disconnects),
        ("syncconnects", "Connections to ZooKeeper that were made.", lambda: counts.connects),
        ("expires", "Sessions with ZooKeeper that expired.", lambda: counts.expiries),
        ("authfailures", "Logins that ZooKeeper refused.", lambda: counts.auth_failures),
    ):
        metrics.gauge(f"kafka_server_sessionexpirelistener_zookeeper{name}", text, read, "counter")
    metrics.gauge(
        "kafka_server_sessionexpirelistener_sessionstate",
        "1 for the state that the session is in.",
        lambda: [({"state": registry.session_state}, 1.0)],
    )
    name = "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms"
    metrics.gauge(name, "How long the last requests to ZooKeeper took.", latencies)
    metrics.gauge(f"{name}_count", "Requests that ZooKeeper has answered.", lambda: counts.requests)
