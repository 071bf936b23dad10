"""The metrics under the names that existing dashboards for Kafka expect, rendered for Prometheus.

`docs/metrics.md` lists them. prometheus_client is imported on the first scrape: it costs a fifth of the start-up.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from kavka.broker.metrics.registry import STAGES, TOPIC_COUNTERS, Metrics, RequestCells, TopicCells
from kavka.broker.requests.slices import in_slices

if TYPE_CHECKING:
    from prometheus_client.core import Metric

QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
SAMPLES_A_SLICE: Final = 50

TOPIC_NAMES: Final = {
    "messages_in": ("messagesin", "Messages that producers appended."),
    "bytes_in": ("bytesin", "Bytes of record batches that producers appended."),
    "bytes_out": ("bytesout", "Bytes of record batches sent to consumers."),
    "bytes_rejected": ("bytesrejected", "Bytes of record batches refused because they were too large."),
    "produce_requests": ("totalproducerequests", "Produce requests, one count for each partition in them."),
    "fetch_requests": ("totalfetchrequests", "Fetch requests, one count for each partition in them."),
    "failed_produce_requests": ("failedproducerequests", "Partitions of produce requests answered with an error."),
    "failed_fetch_requests": ("failedfetchrequests", "Partitions of fetch requests answered with an error."),
}
STAGE_NAMES: Final = {
    "total": ("totaltimems", "Time from receiving a request to handing its answer to the socket."),
    "request_queue": ("requestqueuetimems", "Time in the request queue."),
    "local": ("localtimems", "Time in the handler."),
    "remote": ("remotetimems", "Time spent waiting: for data, replicas, the controller."),
    "response_queue": ("responsequeuetimems", "Time an answer waited for those before it on its connection."),
    "response_send": ("responsesendtimems", "Time to hand the answer to the socket."),
}
EVENT_NAMES: Final = {
    "kafka_server_brokertopicmetrics_replicationbytesin": "Bytes of record batches copied from other brokers.",
    "kafka_server_brokertopicmetrics_replicationbytesout": "Bytes of record batches copied by other brokers.",
    "kafka_server_replicamanager_isrshrinks": "ISRs that got smaller.",
    "kafka_server_replicamanager_isrexpands": "ISRs that got larger.",
    "kafka_server_replicamanager_failedisrupdates": "Changes of ISRs refused, or not answered.",
    "kafka_server_group_coordinator_metrics_offset_commit": "Offsets committed.",
    "kafka_server_group_coordinator_metrics_offset_deletion": "Offsets deleted, with their topic or group or alone.",
    "kafka_server_group_coordinator_metrics_offset_expiration": "Offsets that expired.",
    "kavka_network_rejected_connections": "Connections refused: too many, or out of file descriptors.",
    "kavka_network_rejected_requests": "Requests that could not be read: bad frames, headers, versions, bodies.",
    "kavka_tls_handshakes": "TLS handshakes that succeeded.",
    "kavka_tls_failed_handshakes": "TLS handshakes that failed: other protocols, certificates that are not trusted.",
    "kavka_tls_failed_reloads": "Times that key stores or trust stores had changed and could not be used.",
    "kavka_transaction_coordinator_expired_ids": "Transactional ids that were forgotten because nobody used them.",
    "kavka_transaction_coordinator_markers_dropped": "Markers of transactions that had no place any more.",
    "kavka_transaction_coordinator_markers_retried": "Rounds of markers that have to be sent again.",
    "kavka_transaction_coordinator_timed_out": "Transactions aborted because they lasted too long.",
    "kavka_transaction_coordinator_unreadable_records": "Records of transactions with a status that is not known.",
}
"""Counters shown from the start, at zero; `Metrics.count` may add others."""

Sample = tuple[str, Mapping[str, str], float]
"""Suffix of the name, labels, value."""


class Family:
    """All samples of one metric. `kind` is counter, gauge or summary; a counter's name is without `_total`."""

    __slots__ = ("help", "kind", "name", "samples")

    def __init__(self, name: str, kind: str, text: str, samples: Iterable[Sample]) -> None:
        self.name: Final = name
        self.kind: Final = kind
        self.help: Final = text
        self.samples: Final = samples


class Exposition:
    """Renders the metrics of one broker.

    Threads: `render` by one thread at a time (the metrics server's); `_busy_before` is its memory of the last scrape.
    """

    def __init__(self, metrics: Metrics, api_names: Mapping[int, str]) -> None:
        self._metrics = metrics
        self._api_names = api_names
        self._busy_before: dict[str, tuple[int, int]] = {}

    def render(self) -> bytes:
        """The text that Prometheus reads (exposition format 0.0.4), made in slices of under a millisecond."""
        parts: list[bytes] = []
        for family in self.families():
            for index, chunk in enumerate(in_slices(_chunks(family))):
                text = _text_of(chunk)
                parts.append(text if index == 0 else _without_comments(text))
        return b"".join(parts)

    def families(self) -> Iterator[Family]:
        """Everything there is to show."""
        yield from self._topic_families()
        yield from self._request_families()
        yield from self._event_families()
        yield from self._idle_families()
        for gauge in self._metrics.gauges():
            suffix = "_total" if gauge.kind == "counter" else ""
            yield Family(
                gauge.name, gauge.kind, gauge.help, [(suffix, labels, value) for labels, value in gauge.read()]
            )

    def _topic_families(self) -> Iterator[Family]:
        every, by_name = self._metrics.topics()
        for counter in TOPIC_COUNTERS:
            name, text = TOPIC_NAMES[counter]
            yield Family(
                f"kafka_server_brokertopicmetrics_{name}", "counter", text, _topic_samples(counter, every, by_name)
            )

    def _request_families(self) -> Iterator[Family]:
        requests = {
            self._api_names.get(key, str(key)): cells for key, cells in sorted(self._metrics.requests().items())
        }
        counts = [("_total", {"request": api}, float(_count(cells))) for api, cells in requests.items()]
        yield Family("kafka_network_requestmetrics_requests", "counter", "Requests answered.", counts)
        for stage, stage_name in enumerate(STAGES):
            name, text = STAGE_NAMES[stage_name]
            yield Family(
                f"kafka_network_requestmetrics_{name}", "summary", f"{text} In ms.", _stage_samples(stage, requests)
            )

    def _event_families(self) -> Iterator[Family]:
        counts = dict.fromkeys(EVENT_NAMES, 0) | self._metrics.events()
        for name, count in counts.items():
            text = EVENT_NAMES.get(name, "Events counted since the start.")
            yield Family(name, "counter", text, [("_total", {}, float(count))])

    def _idle_families(self) -> Iterator[Family]:
        for kind, name, text in (
            ("network", "kafka_network_socketserver_networkprocessoravgidle_percent", "network threads"),
            ("io", "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", "I/O threads"),
        ):
            yield Family(name, "gauge", f"Idle share of {text} since the last scrape.", [("", {}, self._idle(kind))])

    def _idle(self, kind: str) -> float:
        now_ns = self._metrics.now_ns()
        threads, busy_ns = self._metrics.busy(kind)
        before_ns, busy_before_ns = self._busy_before.get(kind, (now_ns, busy_ns))
        self._busy_before[kind] = (now_ns, busy_ns)
        available_ns = (now_ns - before_ns) * threads
        if available_ns <= 0:
            return 1.0
        return min(max(1 - (busy_ns - busy_before_ns) / available_ns, 0.0), 1.0)


def quantile(ordered: list[int], share: float) -> float:
    """The value below which that share of the values lies; interpolated, as Kafka's histograms do it."""
    if not ordered:
        return 0.0
    position = min(max(share * (len(ordered) + 1) - 1, 0), len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def _topic_samples(counter: str, every: TopicCells, by_name: Mapping[str, TopicCells]) -> Iterator[Sample]:
    yield ("_total", {}, float(getattr(every, counter)))
    for topic, counted in by_name.items():
        yield ("_total", {"topic": topic}, float(getattr(counted, counter)))


def _stage_samples(stage: int, requests: Mapping[str, list[RequestCells]]) -> Iterator[Sample]:
    for api, cells in requests.items():
        durations = sorted(duration for each in cells for duration in each.durations_ns(stage))
        for share in QUANTILES:
            yield ("", {"request": api, "quantile": str(share)}, quantile(durations, share) / 1_000_000)
        yield ("_count", {"request": api}, float(_count(cells)))


def _count(cells: Iterable[RequestCells]) -> int:
    return sum(each.count for each in cells)


def _chunks(family: Family) -> Iterator["Metric"]:
    """The family in pieces of SAMPLES_A_SLICE; the first one exists even without samples."""
    from prometheus_client.core import Metric

    chunk = Metric(family.name, family.help, family.kind)
    for suffix, labels, value in family.samples:
        if len(chunk.samples) >= SAMPLES_A_SLICE:
            yield chunk
            chunk = Metric(family.name, family.help, family.kind)
        chunk.add_sample(family.name + suffix, dict(labels), value)
    yield chunk


class _One:
    """A registry of one metric, in the form that generate_latest reads."""

    __slots__ = ("_metric",)

    def __init__(self, metric: "Metric") -> None:
        self._metric = metric

    def collect(self) -> Iterable["Metric"]:
        return (self._metric,)


def _text_of(metric: "Metric") -> bytes:
    from prometheus_client import generate_latest

    registry: Any = _One(metric)
    return generate_latest(registry)


def _without_comments(text: bytes) -> bytes:
    return b"".join(line for line in text.splitlines(keepends=True) if not line.startswith(b"#"))
