"""The figures of Kafka's ProducerPerformance: rates, latencies, percentiles, by window and in all."""

import threading
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

MB: Final = 1024 * 1024
MAX_SAMPLES: Final = 500_000
"""Latencies that are kept for percentiles: of more records every so many-th, as Kafka's tool does it."""
PERCENTILES: Final = (0.5, 0.95, 0.99, 0.999)


class Figures(NamedTuple):
    """What was done in a stretch of time. Latencies in milliseconds; percentiles are empty for a window."""

    records: int
    size_bytes: int
    elapsed_ms: float
    total_latency_ms: float
    max_latency_ms: float
    percentiles_ms: tuple[float, ...] = ()
    is_steady: bool = False

    @property
    def records_per_sec(self) -> float:
        return _rate(self.records, self.elapsed_ms)

    @property
    def mb_per_sec(self) -> float:
        return _rate(self.size_bytes, self.elapsed_ms) / MB

    @property
    def avg_latency_ms(self) -> float:
        return self.total_latency_ms / self.records if self.records else 0.0

    def window_line(self) -> str:
        """As Kafka's tool prints it every five seconds."""
        return (
            f"{self.records} records sent, {self.records_per_sec:.1f} records/sec ({self.mb_per_sec:.2f} MB/sec), "
            f"{self.avg_latency_ms:.1f} ms avg latency, {self.max_latency_ms:.1f} ms max latency."
        )

    def total_line(self) -> str:
        """As Kafka's tool prints it at the end."""
        p50, p95, p99, p999 = self.percentiles_ms
        return (
            f"{self.records}{' steady state' if self.is_steady else ''} records sent, "
            f"{self.records_per_sec:f} records/sec ({self.mb_per_sec:.2f} MB/sec), "
            f"{self.avg_latency_ms:.2f} ms avg latency, {self.max_latency_ms:.2f} ms max latency, "
            f"{p50:.0f} ms 50th, {p95:.0f} ms 95th, {p99:.0f} ms 99th, {p999:.0f} ms 99.9th."
        )

    def row(self) -> dict[str, Any]:
        """For programs."""
        p50, p95, p99, p999 = self.percentiles_ms
        return {
            "records": self.records,
            "bytes": self.size_bytes,
            "elapsed_ms": round(self.elapsed_ms, 3),
            "records_per_sec": round(self.records_per_sec, 3),
            "mb_per_sec": round(self.mb_per_sec, 6),
            "avg_latency_ms": round(self.avg_latency_ms, 3),
            "max_latency_ms": round(self.max_latency_ms, 3),
            "p50_ms": round(p50, 3),
            "p95_ms": round(p95, 3),
            "p99_ms": round(p99, 3),
            "p999_ms": round(p999, 3),
            "steady_state": self.is_steady,
        }


class Latencies:
    """Gathers what came of each record. `record` is for the thread that hears of them, the rest for any."""

    def __init__(self, expected: int, now_ms: float, *, is_steady: bool = False) -> None:
        self._lock: Final = threading.Lock()
        self._every: Final = max(1, -(-expected // MAX_SAMPLES))
        self._is_steady: Final = is_steady
        self._began_ms: Final = now_ms
        self._samples: list[float] = []
        self._records = self._size_bytes = 0
        self._total_ms = self._max_ms = 0.0
        self._window_began_ms = now_ms
        self._window_records = self._window_bytes = 0
        self._window_total_ms = self._window_max_ms = 0.0

    def record(self, latency_ms: float, size_bytes: int) -> None:
        """A record of so many bytes took so long."""
        with self._lock:
            if not self._records % self._every:
                self._samples.append(latency_ms)
            self._records += 1
            self._size_bytes += size_bytes
            self._total_ms += latency_ms
            self._max_ms = max(self._max_ms, latency_ms)
            self._window_records += 1
            self._window_bytes += size_bytes
            self._window_total_ms += latency_ms
            self._window_max_ms = max(self._window_max_ms, latency_ms)

    def window(self, now_ms: float) -> Figures:
        """Since the last call, or the beginning."""
        with self._lock:
            figures = Figures(
                self._window_records,
                self._window_bytes,
                now_ms - self._window_began_ms,
                self._window_total_ms,
                self._window_max_ms,
                is_steady=self._is_steady,
            )
            self._window_began_ms = now_ms
            self._window_records = self._window_bytes = 0
            self._window_total_ms = self._window_max_ms = 0.0
            return figures

    def total(self, now_ms: float) -> Figures:
        """Of everything until now."""
        with self._lock:
            return Figures(
                self._records,
                self._size_bytes,
                now_ms - self._began_ms,
                self._total_ms,
                self._max_ms,
                percentiles(self._samples, PERCENTILES),
                self._is_steady,
            )


def percentiles(samples: Sequence[float], wanted: Sequence[float]) -> tuple[float, ...]:
    """As Kafka's tools: the sample at that part of the sorted ones; 0 without any."""
    ordered = sorted(samples)
    if not ordered:
        return (0.0,) * len(wanted)
    return tuple(ordered[min(int(part * len(ordered)), len(ordered) - 1)] for part in wanted)


def _rate(amount: float, elapsed_ms: float) -> float:
    return 1000.0 * amount / elapsed_ms if elapsed_ms > 0 else 0.0
