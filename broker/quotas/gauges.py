"""What clients use of their quotas, by Kafka's names: `kafka.server:type=Produce,user=U,client-id=C` and its kin."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kavka.broker.quotas.meters import Meter, Meters, MutationMeter
from kavka.cluster.znodes.config import text_of_node

if TYPE_CHECKING:
    from kavka.broker.metrics.registry import Labels, Metrics
    from kavka.broker.quotas.quotas import Quotas


def register_quota_gauges(metrics: "Metrics", quotas: "Quotas") -> None:
    """Called once, when the first quota was set."""
    mutation = quotas.mutation
    for kind, rate, text, meters in (
        ("produce", "byte_rate", "Bytes a second that a client has produced.", quotas.produce),
        ("fetch", "byte_rate", "Bytes a second that a client has fetched.", quotas.fetch),
        ("request", "request_time", "Percent of a thread that a client's requests have taken.", quotas.request),
    ):
        _register(metrics, quotas, f"kafka_server_{kind}", rate, text, meters)
    name = "kafka_server_controllermutation"
    _register(
        metrics, quotas, name, "mutation_rate", "Partitions a second that a client has created and deleted.", mutation
    )

    def tokens() -> "Iterator[tuple[Labels, float]]":
        now_ms = quotas.now_ms()
        return ((_labels(meter), meter.tokens(now_ms)) for meter in mutation.all())

    metrics.gauge(f"{name}_tokens", "Partitions that a client may create or delete at once.", tokens)
    metrics.gauge(
        "kafka_server_request_exempt_request_time",
        "Percent of a thread that requests without a quota have taken: those of brokers.",
        lambda: quotas.exempt.measure(quotas.now_ms()),
    )


def _register(
    metrics: "Metrics",
    quotas: "Quotas",
    name: str,
    rate: str,
    text: str,
    meters: Meters[Meter] | Meters[MutationMeter],
) -> None:
    def of_each(read: Callable[[Meter, int], float]) -> "Callable[[], Iterator[tuple[Labels, float]]]":
        def readings() -> "Iterator[tuple[Labels, float]]":
            now_ms = quotas.now_ms()
            return ((_labels(meter), read(meter, now_ms)) for meter in meters.all())

        return readings

    metrics.gauge(f"{name}_{rate}", text, of_each(Meter.measure))
    metrics.gauge(
        f"{name}_throttle_time", "For how many ms a client had to pause, on average.", of_each(Meter.throttle_time_ms)
    )
    metrics.gauge(f"{name}_queue_size", "Connections that pause now.", lambda: meters.paused)


def _labels(meter: Meter) -> "Labels":
    return {"user": meter.tags.user, "client_id": text_of_node(meter.tags.client)}
