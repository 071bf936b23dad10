"""What this broker asks of others, and what waits for them. Names as in docs/metrics.md; the first two are Kafka's."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from kavka.broker.metrics.registry import Labels, Metrics

if TYPE_CHECKING:
    from kavka.broker.interbroker.inter_broker import InterBroker
    from kavka.broker.interbroker.network_channels import NetworkChannels

COUNTERS: Final = {
    "connections": "Connections to other brokers that were opened.",
    "failed_connects": "Connections to other brokers that could not be opened.",
    "disconnects": "Connections to other brokers that ended.",
    "requests": "Requests sent to other brokers.",
    "timeouts": "Connections closed because a broker did not answer in time.",
    "bad_answers": "Connections closed because what came was no answer to what was asked.",
}


def register_inter_broker_gauges(metrics: Metrics, inter_broker: "InterBroker", channels: "NetworkChannels") -> None:
    """Register them. Called once, in a cluster of brokers."""
    counts = inter_broker.counts

    def queue_sizes() -> Iterator[tuple[Labels, float]]:
        return (({"broker_id": str(broker)}, float(size)) for broker, size in channels.queue_sizes().items())

    metrics.gauge(
        "kafka_controller_controllerchannelmanager_totalqueuesize",
        "Requests that brokers are still to be told by this controller.",
        lambda: sum(channels.queue_sizes().values()),
    )
    metrics.gauge(
        "kafka_controller_controllerchannelmanager_queuesize",
        "Requests that a broker is still to be told by this controller.",
        queue_sizes,
    )
    for attribute, text in COUNTERS.items():
        metrics.gauge(f"kavka_interbroker_{attribute}", text, partial(getattr, counts, attribute), "counter")
