"""The broker's /metrics: what is counted, behind the server that shows it. Loaded with `metrics.port` alone."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from kavka.broker.metrics.exposition import Exposition
from kavka.broker.metrics.http_server import MetricsServer
from kavka.protocol import api

if TYPE_CHECKING:
    from kavka.broker.metrics.registry import Metrics
    from kavka.config.broker_config import BrokerConfig


def metrics_server(
    config: "BrokerConfig",
    metrics: "Metrics",
    served_keys: Iterable[int],
    *,
    failure: Callable[[], str | None],
    is_ready: Callable[[], bool],
) -> MetricsServer:
    """Not started yet. `failure()`: why the broker cannot go on, if it cannot; `is_ready()`: whether it serves."""
    exposition = Exposition(metrics, {key: api.spec(key).name for key in served_keys})
    return MetricsServer(
        config.metrics_host, config.metrics_port, render=exposition.render, failure=failure, is_ready=is_ready
    )
