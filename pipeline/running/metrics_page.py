"""A run's figures for Prometheus."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kavka.pipeline.running.run_state import RunState


class _Collected(Collector):
    def __init__(self, job: str, state: RunState) -> None:
        self._job = job
        self._state = state

    def collect(self) -> Iterable[Metric]:
        for name, kind, text, values in self._state.samples():
            made = CounterMetricFamily if kind == "counter" else GaugeMetricFamily
            family = made(f"kavka_pipeline_{name}", text, labels=("job", "sink"))
            for sink, value in values.items():
                family.add_metric((self._job, sink), value)
            yield family


def rendered(job: str, state: RunState) -> bytes:
    """The page, in Prometheus's text format. Any thread."""
    registry = CollectorRegistry()
    registry.register(_Collected(job, state))
    return generate_latest(registry)
