"""`kavka perf consume`: reads as fast as it may, and measures as Kafka's ConsumerPerformance."""

import argparse
import random
import re
import time
from collections.abc import Collection
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kavka.cli.argument_types import wrong
from kavka.cli.output import complain, emit, flush
from kavka.cli.perf.arguments import TIMEOUT_MS, settings_of
from kavka.cli.perf.latencies import MB
from kavka.cli.showing import Report, show
from kavka.client.consumer.group.port import RebalanceListener
from kavka.client.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kavka.client.consumer.consumer import Consumer

COMMAND: Final = "kavka perf consume"
POLL_MS: Final = 100.0
MAX_POLLED: Final = 65_536
_RATES: Final = "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec"
_REBALANCES: Final = "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"


class Stretch(NamedTuple):
    """What was read in a stretch of time, of which joining the group took a part."""

    began_ms: int
    ended_ms: int
    size_bytes: int
    records: int
    joining_ms: int

    def row(self) -> dict[str, Any]:
        """By the names of Kafka's columns."""
        elapsed_ms = self.ended_ms - self.began_ms
        fetching_ms = elapsed_ms - self.joining_ms
        size_mb = self.size_bytes / MB
        return {
            "start_time": _moment(self.began_ms),
            "end_time": _moment(self.ended_ms),
            "data_consumed_in_mb": round(size_mb, 4),
            "mb_per_sec": _rate(size_mb, elapsed_ms),
            "data_consumed_in_n_msg": self.records,
            "n_msg_per_sec": _rate(self.records, elapsed_ms),
            "rebalance_time_ms": self.joining_ms,
            "fetch_time_ms": fetching_ms,
            "fetch_mb_per_sec": _rate(size_mb, fetching_ms),
            "fetch_n_msg_per_sec": _rate(self.records, fetching_ms),
        }

    def line(self) -> str:
        """As Kafka's tool prints it."""
        return ", ".join(f"{value:.4f}" if isinstance(value, float) else str(value) for value in self.row().values())

    def interval_line(self, total_bytes: int, total_records: int) -> str:
        """As Kafka's tool with --show-detailed-stats: amounts in all, rates of this stretch."""
        row = self.row()
        return (
            f"{row['end_time']}, 0, {total_bytes / MB:.4f}, {row['mb_per_sec']:.4f}, {total_records}, "
            f"{row['n_msg_per_sec']:.4f}, {self.joining_ms}, {row['fetch_time_ms']}, "
            f"{row['fetch_mb_per_sec']:.4f}, {row['fetch_n_msg_per_sec']:.4f}"
        )


class _Joining(RebalanceListener):
    """How long the consumer was without partitions."""

    def __init__(self, now_ms: int) -> None:
        self._began_ms = now_ms
        self._assigned: set[TopicPartition] = set()
        self.total_ms = 0

    def on_assigned(self, partitions: Collection[TopicPartition]) -> None:
        if not self._assigned:
            self.total_ms += _now_ms() - self._began_ms
        self._assigned.update(partitions)

    def on_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self._assigned.difference_update(partitions)
        if not self._assigned:
            self._began_ms = _now_ms()

    def on_lost(self, partitions: Collection[TopicPartition]) -> None:
        self.on_revoked(partitions)


def measure_consuming(args: argparse.Namespace) -> int:
    """Raises Failure, ConfigError, KafkaError."""
    if (args.topic is None) == (args.include is None):
        raise wrong("give --topic or --include")
    try:
        pattern = None if args.include is None else re.compile(args.include)
    except re.error as error:
        raise wrong(f"--include {args.include}: {error}") from None
    settings = _settings(args)
    from kavka.cli.reaching import await_broker
    from kavka.client.consumer.consumer import Consumer

    await_broker(settings, args.timeout_ms)
    with Consumer(settings) as consumer:
        began_ms = _now_ms()
        joining = _Joining(began_ms)
        consumer.subscribe([args.topic] if pattern is None else pattern, joining)
        run = _Run(args, began_ms, joining)
        try:
            run.read(consumer)
        finally:
            total = run.total()
            lines = [] if args.show_detailed_stats else [total.line()]
            show(args, Report("perf-consume", [total.row()], lambda: lines))
        if args.print_metrics:
            from kavka.cli.perf.metrics import print_metrics

            print_metrics(consumer.metrics)
    if total.records < args.num_records:
        problem = f"{total.records} records were read, {args.num_records} expected; none came within {args.timeout} ms"
        return complain(COMMAND, problem)
    return 0


def _settings(args: argparse.Namespace) -> dict[str, str]:
    settings = settings_of(
        args,
        {
            "client.id": "perf-consumer-client",
            "default.api.timeout.ms": str(args.timeout_ms or TIMEOUT_MS),
            "receive.buffer.bytes": str(args.socket_buffer_size),
            "max.partition.fetch.bytes": str(args.fetch_size),
            "auto.offset.reset": "latest" if args.from_latest else "earliest",
            "allow.auto.create.topics": "false",
        },
    )
    settings["group.id"] = args.group or settings.get("group.id") or f"perf-consumer-{random.randrange(100_000)}"
    return settings


class _Run:
    """Counts what is read. Owned by one thread."""

    def __init__(self, args: argparse.Namespace, began_ms: int, joining: _Joining) -> None:
        self._args: Final = args
        self._joining: Final = joining
        self._began_ms: Final = began_ms
        self._size_bytes = self._records = 0
        self._reported = Stretch(began_ms, began_ms, 0, 0, 0)

    def read(self, consumer: "Consumer") -> None:
        """Until all are read, or none came for --timeout."""
        args = self._args
        is_detailed = args.show_detailed_stats and args.output == "text"
        if args.output == "text" and not args.hide_header:
            head = f"time, threadId, {_RATES}" if args.show_detailed_stats else f"start.time, end.time, {_RATES}"
            emit(f"{head}, {_REBALANCES}")
        last_ms = self._began_ms
        while self._records < args.num_records:
            now_ms = _now_ms()
            for columns in consumer.poll_columns(POLL_MS, min(MAX_POLLED, args.num_records - self._records)):
                self._records += len(columns)
                sizes = columns.key_sizes.clip(min=0).sum() + columns.value_sizes.clip(min=0).sum()
                self._size_bytes += int(sizes)
                last_ms = now_ms = _now_ms()
            if is_detailed and now_ms - self._reported.ended_ms >= args.reporting_interval:
                self._report(now_ms)
            if now_ms - last_ms > args.timeout:
                return

    def _report(self, now_ms: int) -> None:
        before = self._reported
        self._reported = Stretch(self._began_ms, now_ms, self._size_bytes, self._records, self._joining.total_ms)
        stretch = Stretch(
            before.ended_ms,
            now_ms,
            self._size_bytes - before.size_bytes,
            self._records - before.records,
            self._joining.total_ms - before.joining_ms,
        )
        emit(stretch.interval_line(self._size_bytes, self._records))
        flush()

    def total(self) -> Stretch:
        """All that was read until now."""
        return Stretch(self._began_ms, _now_ms(), self._size_bytes, self._records, self._joining.total_ms)


def _rate(count: float, elapsed_ms: int) -> float:
    return round(1000.0 * count / elapsed_ms, 4) if elapsed_ms > 0 else 0.0


def _moment(timestamp_ms: int) -> str:
    """As Kafka's tool by default: yyyy-MM-dd HH:mm:ss:SSS, in the computer's zone."""
    return f"{datetime.fromtimestamp(timestamp_ms // 1000).astimezone():%Y-%m-%d %H:%M:%S}:{timestamp_ms % 1000:03}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
