"""A client's metrics, by the names that they have in Kafka's clients.

    producer.metrics["record-send-total"]
    consumer.metrics["records-lag-max", {"topic": "t", "partition": 0}]

Averages and maxima of nothing are NaN, as Kafka's are.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kavka.client.measures import NAN, Measure, Metric, RateOfTotal, Tags

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

MetricKey: TypeAlias = "str | tuple[str, Tags]"
"""The name alone, or the name with its tags in the order of their names."""

GONE_FOR_MS: Final = 30_000
"""For so long a metric that was removed may still be read, as NaN."""
_LONG_AGO: Final = float("-inf")


class Metrics(Mapping[Any, float]):
    """A client's metrics: names to numbers. Those with tags are asked for by `(name, {tag: value})`.

        print(producer.metrics["record-send-total"])
        for name, value in producer.metrics.items():
            print(name, value)

    A metric of a partition or broker goes with it. Whoever has listed it just before finds NaN in its place for half a
    minute, so that `dict(metrics)` never fails halfway; after that, and for what never was there, KeyError.

    Threads: any reads; what makes and removes metrics takes `_lock`. What is given as `read` is called by readers.
    """

    def __init__(
        self,
        domain: str,
        client_id: str,
        *,
        window_ms: float = 30_000,
        samples: int = 2,
        now_ms: Callable[[], float] = lambda: time.monotonic() * 1000,
    ) -> None:
        """`domain` is producer, consumer or admin-client: whose metrics these are."""
        self.domain: Final = domain
        self.client_id: Final = client_id
        self.now_ms: Final = now_ms
        self._window_ms: Final = window_ms
        self._samples: Final = samples
        self._lock: Final = threading.Lock()
        self._metrics: dict[MetricKey, Metric] = {}
        self._gone: Final[dict[MetricKey, float]] = {}
        """What was removed lately, and when, the oldest first."""

    def __getitem__(self, key: Any) -> float:
        wanted = _key(key)
        metric = self._metrics.get(wanted)
        if metric is not None:
            return metric.read()
        if self.now_ms() - self._gone.get(wanted, _LONG_AGO) < GONE_FOR_MS:
            return NAN
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return _key(key) in self._metrics

    def __iter__(self) -> Iterator[MetricKey]:
        return iter(list(self._metrics))

    def __len__(self) -> int:
        return len(self._metrics)

    def all(self) -> list[Metric]:
        """Each with its group."""
        return list(self._metrics.values())

    def gauge(
        self, name: str, read: Callable[[], float], *, group: str | None = None, tags: Mapping[str, Any] | None = None
    ) -> None:
        """A number that is worked out when it is read. `group`: Kafka's, without it `<domain>-metrics`."""
        frozen = _frozen(tags or {})
        metric = Metric(group or f"{self.domain}-metrics", name, frozen, read)
        key = (name, frozen) if frozen else name
        with self._lock:
            self._metrics[key] = metric
            self._gone.pop(key, None)

    def measure(
        self,
        *,
        average: str | None = None,
        maximum: str | None = None,
        rate: str | None = None,
        total: str | None = None,
        count_rate: str | None = None,
        count: str | None = None,
        group: str | None = None,
        tags: Mapping[str, Any] | None = None,
    ) -> Measure:
        """A measure to record values in, and the names under which it is read."""
        made = Measure(self.now_ms(), self._window_ms, self._samples)
        ways: tuple[tuple[str | None, Callable[[float], float]], ...] = (
            (average, made.average),
            (maximum, made.maximum),
            (rate, made.rate),
            (count_rate, made.count_rate),
        )
        for name, way in ways:
            if name is not None:
                self.gauge(name, self._reader(way), group=group, tags=tags)
        if total is not None:
            self.gauge(total, made.all_total, group=group, tags=tags)
        if count is not None:
            self.gauge(count, made.all_count, group=group, tags=tags)
        return made

    def total(
        self,
        read: Callable[[], float],
        *,
        total: str,
        rate: str | None = None,
        scale: float = 1.0,
        group: str | None = None,
        tags: Mapping[str, Any] | None = None,
    ) -> None:
        """A number that something else counts up, and `scale` times how fast it grows, a second."""
        self.gauge(total, read, group=group, tags=tags)
        if rate is not None:
            growth = RateOfTotal(read, self.now_ms(), self._window_ms)
            self.gauge(rate, lambda: growth.rate(self.now_ms()) * scale, group=group, tags=tags)

    def remove(self, tags: Mapping[str, Any], names: Iterable[str] | None = None) -> None:
        """Forget what has these tags: of a partition that is not assigned any more, a broker that is gone."""
        frozen = _frozen(tags)
        wanted = None if names is None else set(names)
        now_ms = self.now_ms()
        with self._lock:
            old = takewhile(lambda each: now_ms - each[1] >= GONE_FOR_MS, self._gone.items())
            for key, _ in list(old):
                del self._gone[key]
            for key, metric in list(self._metrics.items()):
                if metric.tags == frozen and (wanted is None or metric.name in wanted):
                    # In this order: a reader finds it in one of the two.
                    self._gone[key] = now_ms
                    del self._metrics[key]

    def _reader(self, way: Callable[[float], float]) -> Callable[[], float]:
        return lambda: way(self.now_ms())

    def as_prometheus(self, *others: "Metrics") -> "Collector":
        """A collector to register with prometheus-client, which is loaded by this; with those of `others`.

        Several clients of a kind in one program have one collector together: a registry may have each family once.

        Names are those that Prometheus' JMX exporter gives to the metrics of Kafka's clients:
        `kafka_producer_producer_metrics_batch_size_avg{client_id="..."}`.
        """
        from kavka.client.prometheus_families import MetricsCollector, Source

        return MetricsCollector(Source(each.domain, each.client_id, each.all) for each in (self, *others))


def _key(key: Any) -> MetricKey:
    if isinstance(key, str):
        return key
    name, tags = key
    frozen = _frozen(tags) if isinstance(tags, Mapping) else tuple(tags)
    return (name, frozen) if frozen else name


def _frozen(tags: Mapping[str, Any]) -> Tags:
    return tuple(sorted((name, str(value)) for name, value in tags.items()))
