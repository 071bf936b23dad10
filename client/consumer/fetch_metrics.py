"""What a consumer has read, and how far behind it is: consumer-fetch-manager-metrics and consumer-metrics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kavka.client.client_metrics import Metrics
from kavka.client.consumer.positions import PartitionState
from kavka.client.measures import NAN, Measure
from kavka.client.topic_partition import TopicPartition

GROUP: Final = "consumer-fetch-manager-metrics"
_PARTITION: Final = (
    "records-lag",
    "records-lag-avg",
    "records-lag-max",
    "records-lead",
    "records-lead-avg",
    "records-lead-min",
    "preferred-read-replica",
)


class _OfTopic:
    __slots__ = ("bytes", "records")

    def __init__(self) -> None:
        self.bytes = 0
        self.records = 0


class _OfPartition:
    __slots__ = ("lag", "lead")

    def __init__(self, lag: Measure, lead: Measure) -> None:
        self.lag = lag
        self.lead = lead


class FetchMetrics:
    """Threads: `answered` is the client's; all else is the polling thread's. Any reads by `metrics`."""

    def __init__(self, metrics: Metrics) -> None:
        self.metrics: Final = metrics
        self.records = 0
        self.bytes = 0
        self.corrupt_batches = 0
        measure = metrics.measure
        self._latency: Final = measure(
            average="fetch-latency-avg",
            maximum="fetch-latency-max",
            count="fetch-total",
            count_rate="fetch-rate",
            group=GROUP,
        )
        self._size: Final = measure(average="fetch-size-avg", maximum="fetch-size-max", group=GROUP)
        self._per_request: Final = measure(average="records-per-request-avg", group=GROUP)
        self._throttle: Final = measure(
            average="fetch-throttle-time-avg", maximum="fetch-throttle-time-max", group=GROUP
        )
        metrics.total(lambda: self.records, total="records-consumed-total", rate="records-consumed-rate", group=GROUP)
        metrics.total(lambda: self.bytes, total="bytes-consumed-total", rate="bytes-consumed-rate", group=GROUP)
        self._lag: Final = measure(maximum="records-lag-max", group=GROUP)
        self._lead: Final = self._minimum("records-lead-min")
        self._poll: Final = measure(average="time-between-poll-avg", maximum="time-between-poll-max")
        self._idle: Final = measure(average="poll-idle-ratio-avg")
        self._topics: Final[dict[str, _OfTopic]] = {}
        self._partitions: Final[dict[TopicPartition, _OfPartition]] = {}
        self.commit_sync_ns = 0
        """How long commit_sync has taken, and `committed`."""
        self.committed_ns = 0
        metrics.gauge("commit-sync-time-ns-total", lambda: self.commit_sync_ns)
        metrics.gauge("committed-time-ns-total", lambda: self.committed_ns)
        self._began_ms: float | None = None
        self._ended_ms: float | None = None
        metrics.gauge("last-poll-seconds-ago", self._seconds_since_poll)

    # The client's thread

    def answered(self, latency_ms: float, size_bytes: int, records: int, throttle_time_ms: int) -> None:
        """An answer to a fetch."""
        now_ms = self.metrics.now_ms()
        self._latency.record(latency_ms, now_ms)
        self._size.record(size_bytes, now_ms)
        self._per_request.record(records, now_ms)
        self._throttle.record(throttle_time_ms, now_ms)

    # The polling thread

    def given(self, state: PartitionState, count: int, size_bytes: int) -> None:
        """Records were given out; the state has the position after them. Under the subscription's lock."""
        partition, position = state.partition, state.position.offset
        topic = self._topics.get(partition.topic) or self._of_topic(partition.topic)
        self.records += count
        topic.records += count
        self.bytes += size_bytes
        topic.bytes += size_bytes
        mine = self._partitions.get(partition) or self._of_partition(state)
        now_ms = self.metrics.now_ms()
        if state.end_offset is not None:
            lag = max(state.end_offset - position, 0)
            self._lag.record(lag, now_ms)
            mine.lag.record(lag, now_ms)
        if state.log_start_offset is not None:
            lead = position - state.log_start_offset
            self._lead.record(-lead, now_ms)
            mine.lead.record(-lead, now_ms)

    def consumed(self, topic: str, size_bytes: int) -> None:
        """Besides, a chunk that was given out whole had so many bytes of no records."""
        self.bytes += size_bytes
        (self._topics.get(topic) or self._of_topic(topic)).bytes += size_bytes

    def assigned(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget others."""
        for gone in self._partitions.keys() - set(partitions):
            del self._partitions[gone]
            self.metrics.remove({"topic": gone.topic, "partition": gone.partition}, _PARTITION)

    def poll_began(self, now_ms: float) -> None:
        if self._began_ms is not None:
            since_ms = now_ms - self._began_ms
            self._poll.record(since_ms, now_ms)
            if self._ended_ms is not None and since_ms > 0:
                self._idle.record((self._ended_ms - self._began_ms) / since_ms, now_ms)
        self._began_ms = now_ms

    def poll_ended(self, now_ms: float) -> None:
        self._ended_ms = now_ms

    def _seconds_since_poll(self) -> float:
        return -1.0 if self._began_ms is None else (self.metrics.now_ms() - self._began_ms) // 1000

    def _minimum(self, name: str, tags: dict[str, object] | None = None) -> Measure:
        """A measure of negated values, read as their minimum."""
        measure = self.metrics.measure()
        self.metrics.gauge(name, lambda: -measure.maximum(self.metrics.now_ms()), group=GROUP, tags=tags)
        return measure

    def _of_topic(self, topic: str) -> _OfTopic:
        made = self._topics[topic] = _OfTopic()
        tags = {"topic": topic}
        self.metrics.total(
            lambda: made.records, total="records-consumed-total", rate="records-consumed-rate", group=GROUP, tags=tags
        )
        self.metrics.total(
            lambda: made.bytes, total="bytes-consumed-total", rate="bytes-consumed-rate", group=GROUP, tags=tags
        )
        return made

    def _of_partition(self, state: PartitionState) -> _OfPartition:
        tags: dict[str, object] = {"topic": state.partition.topic, "partition": state.partition.partition}
        metrics = self.metrics
        lag = metrics.measure(average="records-lag-avg", maximum="records-lag-max", group=GROUP, tags=tags)
        lead = self._minimum("records-lead-min", tags)
        metrics.gauge("records-lead-avg", lambda: -lead.average(metrics.now_ms()), group=GROUP, tags=tags)

        def lag_now() -> float:
            end = state.end_offset
            return NAN if end is None else max(end - state.position.offset, 0)

        def lead_now() -> float:
            start = state.log_start_offset
            return NAN if start is None else state.position.offset - start

        metrics.gauge("records-lag", lag_now, group=GROUP, tags=tags)
        metrics.gauge("records-lead", lead_now, group=GROUP, tags=tags)
        metrics.gauge("preferred-read-replica", lambda: _node(state.preferred_node), group=GROUP, tags=tags)
        made = self._partitions[state.partition] = _OfPartition(lag, lead)
        return made


def _node(preferred: int | None) -> float:
    return -1 if preferred is None else preferred
