"""How far this broker is behind the leaders that it follows. Names as in docs/metrics.md."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kavka.broker.metrics.registry import Metrics, Readings
    from kavka.broker.replication.fetcher import FetcherCounts
    from kavka.broker.replication.fetcher_manager import FetcherManager

REPLICATED_BYTES: Final = "kafka_server_brokertopicmetrics_replicationbytesin"
"""The counter of what was copied from others."""
ALL_FETCHERS: Final = {"clientId": "Replica"}
"""What Kafka calls its manager of fetchers."""


def register_following_gauges(metrics: "Metrics", manager: "FetcherManager") -> None:
    """Register them. Called once, in a cluster of brokers."""
    for name, text, read in (
        ("maxlag", "Records that the partition lags that lags most.", lambda: manager.max_lag),
        (
            "failedpartitionscount",
            "Partitions that are not followed before the next order.",
            lambda: len(manager.failed),
        ),
        (
            "deadthreadcount",
            "Fetchers whose threads have ended unasked.",
            lambda: sum(not each.is_alive for each in manager.fetchers),
        ),
    ):
        metrics.gauge(f"kafka_server_replicafetchermanager_{name}", text, _labelled(read))
    metrics.gauge(
        "kafka_server_fetcherlagmetrics_consumerlag",
        "Records that the partition is behind its leader.",
        lambda: (
            (
                {"clientId": fetcher.name, "topic": each.key[0], "partition": str(each.key[1])},
                float(max(each.state.lag, 0)),
            )
            for fetcher in manager.fetchers
            for each in fetcher.partitions.all()
        ),
    )

    def total(read: "Callable[[FetcherCounts], int]") -> "Callable[[], Readings]":
        return lambda: (({"clientId": fetcher.name}, float(read(fetcher.counts))) for fetcher in manager.fetchers)

    name = "kafka_server_fetcherstats"
    metrics.gauge(f"{name}_bytes", "Bytes fetched.", total(lambda counts: counts.bytes_in), "counter")
    metrics.gauge(f"{name}_requests", "Fetches answered.", total(lambda counts: counts.fetches), "counter")


def _labelled(read: Callable[[], int]) -> "Callable[[], Readings]":
    return lambda: ((ALL_FETCHERS, float(read())),)
