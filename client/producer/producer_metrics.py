"""What a producer does, under the names that Kafka's producer has for it. Counted per batch, never per record."""

import threading
from typing import Final

from kavka.client.client_metrics import Metrics
from kavka.client.measures import Measure
from kavka.client.producer.batch import ProducerBatch
from kavka.client.producer.buffer_memory import BufferMemory
from kavka.protocol.records.header import HEADER_SIZE_BYTES

_MOST_TOPICS: Final = 10_000
"""Beyond so many, a topic has no metrics of its own."""
_TOPIC_GROUP: Final = "producer-topic-metrics"
_NANOSECONDS: Final = 1_000_000


class _TopicMetrics:
    """One topic's measures."""

    __slots__ = ("bytes", "errors", "ratio", "records", "retries")

    def __init__(self, metrics: Metrics, topic: str) -> None:
        tags = {"topic": topic}
        make = metrics.measure
        self.records: Final = make(rate="record-send-rate", total="record-send-total", group=_TOPIC_GROUP, tags=tags)
        self.bytes: Final = make(rate="byte-rate", total="byte-total", group=_TOPIC_GROUP, tags=tags)
        self.ratio: Final = make(average="compression-rate", group=_TOPIC_GROUP, tags=tags)
        self.retries: Final = make(rate="record-retry-rate", total="record-retry-total", group=_TOPIC_GROUP, tags=tags)
        self.errors: Final = make(rate="record-error-rate", total="record-error-total", group=_TOPIC_GROUP, tags=tags)


class ProducerMetrics:
    """Measures of batches and requests. Threads: the client's; times of calls by those that call."""

    def __init__(self, metrics: Metrics, memory: BufferMemory) -> None:
        self.metrics: Final = metrics
        self._topics: Final[dict[str, _TopicMetrics]] = {}
        self.in_flight = 0
        """Produce requests without an answer."""
        make, gauge = metrics.measure, metrics.gauge
        self._batch_size: Final = make(average="batch-size-avg", maximum="batch-size-max")
        self._ratio: Final = make(average="compression-rate-avg")
        self._queue_time: Final = make(average="record-queue-time-avg", maximum="record-queue-time-max")
        self._record_size: Final = make(average="record-size-avg", maximum="record-size-max")
        self._records: Final = make(rate="record-send-rate", total="record-send-total")
        self._per_request: Final = make(average="records-per-request-avg")
        self._retries: Final = make(rate="record-retry-rate", total="record-retry-total")
        self._errors: Final = make(rate="record-error-rate", total="record-error-total")
        self._splits: Final = make(rate="batch-split-rate", total="batch-split-total")
        self._throttled: Final = make(average="produce-throttle-time-avg", maximum="produce-throttle-time-max")
        gauge("requests-in-flight", lambda: self.in_flight)
        gauge("buffer-total-bytes", lambda: memory.total_bytes)
        gauge("buffer-available-bytes", lambda: memory.available_bytes)
        gauge("waiting-threads", lambda: memory.waiting)
        metrics.total(lambda: memory.exhausted, total="buffer-exhausted-total", rate="buffer-exhausted-rate")
        wait_ns = "bufferpool-wait-time-ns-total"
        metrics.total(lambda: memory.waited_ms * _NANOSECONDS, total=wait_ns, rate="bufferpool-wait-ratio", scale=1e-9)
        self._times_lock: Final = threading.Lock()
        self._times: Final[dict[str, float]] = {}
        for name in ("flush", "metadata-wait", "txn-init", "txn-begin", "txn-send-offsets", "txn-commit", "txn-abort"):
            self._times[name] = 0.0
            gauge(f"{name}-time-ns-total", lambda name=name: self._times[name] * _NANOSECONDS)  # type: ignore[misc]  # mypy does not infer a default's type

    @property
    def splits(self) -> float:
        """How many batches were split."""
        return self._splits.all_total()

    def called(self, name: str, took_ms: float) -> None:
        """A call of the user's took so long. Any thread."""
        with self._times_lock:
            self._times[name] += took_ms

    def sent(self, batches: list[ProducerBatch], now_ms: float) -> None:
        """A request with these batches goes out."""
        self.in_flight += 1
        records = 0
        for batch in batches:
            topic = self._topic(batch)
            count, size_bytes = batch.count, batch.size_bytes
            records += count
            whole_bytes = batch.writer.size_bytes
            self._batch_size.record(size_bytes, now_ms)
            self._record_size.record((whole_bytes - HEADER_SIZE_BYTES) / count, now_ms)
            ratio = size_bytes / whole_bytes
            self._ratio.record(ratio, now_ms)
            if not batch.attempts:
                self._queue_time.record(now_ms - batch.created_ms, now_ms)
            if topic is not None:
                topic.records.record(count, now_ms)
                topic.bytes.record(size_bytes, now_ms)
                topic.ratio.record(ratio, now_ms)
        self._records.record(records, now_ms)
        self._per_request.record(records, now_ms)

    def answered(self) -> None:
        """The answer to a request came, or will not."""
        self.in_flight -= 1

    def throttled(self, throttle_ms: float, now_ms: float) -> None:
        """An answer asks for a pause."""
        self._throttled.record(throttle_ms, now_ms)

    def retried(self, batch: ProducerBatch, now_ms: float) -> None:
        """Its records will be sent again."""
        self._note(batch, now_ms, self._retries, "retries")

    def failed(self, batch: ProducerBatch, now_ms: float) -> None:
        """Its records were not delivered."""
        self._note(batch, now_ms, self._errors, "errors")

    def split(self, now_ms: float) -> None:
        """A batch goes on in several."""
        self._splits.record(1, now_ms)

    def _note(self, batch: ProducerBatch, now_ms: float, measure: Measure, name: str) -> None:
        measure.record(batch.count, now_ms)
        topic = self._topic(batch)
        if topic is not None:
            getattr(topic, name).record(batch.count, now_ms)

    def _topic(self, batch: ProducerBatch) -> _TopicMetrics | None:
        name = batch.topic_partition.topic
        found = self._topics.get(name)
        if found is None and len(self._topics) < _MOST_TOPICS:
            found = self._topics[name] = _TopicMetrics(self.metrics, name)
        return found
