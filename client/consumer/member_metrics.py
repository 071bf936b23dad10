"""What a group's member has done so far: consumer-coordinator-metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kavka.client.client_metrics import Metrics

GROUP: Final = "consumer-coordinator-metrics"


class MemberMetrics:
    """A `GroupMetrics`. Threads: the client's, but for `told`, which is the polling thread's."""

    def __init__(self, metrics: Metrics, assigned: Callable[[], int]) -> None:
        """`assigned` says how many partitions there are."""
        self._metrics: Final = metrics
        measure, gauge = metrics.measure, metrics.gauge
        self._rebalance: Final = measure(
            average="rebalance-latency-avg",
            maximum="rebalance-latency-max",
            total="rebalance-latency-total",
            count="rebalance-total",
            group=GROUP,
        )
        gauge("rebalance-rate-per-hour", lambda: self._rebalance.count_rate(metrics.now_ms()) * 3_600, group=GROUP)
        self._failed_rebalance: Final = measure(count="failed-rebalance-total", group=GROUP)
        gauge(
            "failed-rebalance-rate-per-hour",
            lambda: self._failed_rebalance.count_rate(metrics.now_ms()) * 3_600,
            group=GROUP,
        )
        self._join: Final = measure(
            average="join-time-avg", maximum="join-time-max", count="join-total", count_rate="join-rate", group=GROUP
        )
        self._sync: Final = measure(
            average="sync-time-avg", maximum="sync-time-max", count="sync-total", count_rate="sync-rate", group=GROUP
        )
        self._heartbeat: Final = measure(
            maximum="heartbeat-response-time-max", count="heartbeat-total", count_rate="heartbeat-rate", group=GROUP
        )
        self._commit: Final = measure(
            average="commit-latency-avg",
            maximum="commit-latency-max",
            count="commit-total",
            count_rate="commit-rate",
            group=GROUP,
        )
        self._listener: Final = {
            what: measure(average=f"partition-{what}-latency-avg", maximum=f"partition-{what}-latency-max", group=GROUP)
            for what in ("assigned", "revoked", "lost")
        }
        self._began_ms: float | None = None
        self._rebalanced_ms: float | None = None
        self._heard_ms: float | None = None
        gauge("assigned-partitions", assigned, group=GROUP)
        gauge("last-rebalance-seconds-ago", lambda: self._seconds_since(self._rebalanced_ms), group=GROUP)
        gauge("last-heartbeat-seconds-ago", lambda: self._seconds_since(self._heard_ms), group=GROUP)

    def rebalance_began(self, now_ms: float) -> None:
        self._began_ms = now_ms

    def rebalance_ended(self, now_ms: float) -> None:
        self._rebalanced_ms = now_ms
        if self._began_ms is not None:
            self._rebalance.record(now_ms - self._began_ms, now_ms)
            self._began_ms = None

    def rebalance_failed(self) -> None:
        self._failed_rebalance.record(1, self._metrics.now_ms())

    def joined(self, took_ms: float) -> None:
        self._join.record(took_ms, self._metrics.now_ms())

    def synced(self, took_ms: float) -> None:
        self._sync.record(took_ms, self._metrics.now_ms())

    def heartbeat(self, now_ms: float, took_ms: float) -> None:
        self._heard_ms = now_ms
        self._heartbeat.record(took_ms, now_ms)

    def committed(self, took_ms: float) -> None:
        self._commit.record(took_ms, self._metrics.now_ms())

    def told(self, what: str, took_ms: float) -> None:
        self._listener[what].record(took_ms, self._metrics.now_ms())

    def _seconds_since(self, then_ms: float | None) -> float:
        return -1.0 if then_ms is None else (self._metrics.now_ms() - then_ms) // 1000
