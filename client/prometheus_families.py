"""A client's metrics as families for prometheus-client. Loaded on request only: that library takes its time."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from kavka.client.measures import Metric


class Source(NamedTuple):
    """A client, and how its metrics are read."""

    domain: str
    client_id: str
    metrics: Callable[[], Iterable[Metric]]


class MetricsCollector(Collector):
    """Reads the metrics of one or several clients whenever it is asked to. Any thread."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self._sources: Final = tuple(sources)

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Nothing: which metrics there are depends on what the clients have met."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """A family for each name, once, with `client_id` and the tags as labels; one that a metric lacks is empty."""
        named: dict[str, list[tuple[str, Metric]]] = {}
        for source in self._sources:
            for metric in source.metrics():
                # kafka.admin.client:type=admin-client-metrics is the administrator's bean.
                name = _name(f"kafka_{source.domain}_{metric.group}_{metric.name}")
                named.setdefault(name, []).append((source.client_id, metric))
        for name, rows in named.items():
            tags = sorted({tag for _, metric in rows for tag, _ in metric.tags})
            first = rows[0][1]
            labels = ["client_id", *map(_name, tags)]
            family = GaugeMetricFamily(name, f"{first.name} of {first.group}", labels=labels)
            for client_id, metric in rows:
                values = dict(metric.tags)
                family.add_metric([client_id, *(values.get(tag, "") for tag in tags)], metric.read())
            yield family


def _name(text: str) -> str:
    return text.replace("-", "_").replace(".", "_").lower()
