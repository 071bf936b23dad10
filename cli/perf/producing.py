"""`kavka perf produce`: sends as fast as it may, and measures as Kafka's ProducerPerformance."""

import argparse
import itertools
import sys
import time
import uuid
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from kavka.cli.argument_types import wrong
from kavka.cli.failing import Failure
from kavka.cli.output import complain, emit, flush
from kavka.cli.perf.arguments import TIMEOUT_MS, settings_of
from kavka.cli.perf.latencies import Figures, Latencies
from kavka.cli.perf.payloads import file_payloads, numbers, random_payloads, read_payloads
from kavka.cli.perf.throttle import Throttle
from kavka.cli.showing import Report, show

if TYPE_CHECKING:
    from kavka.client.kafka_error import KafkaError
    from kavka.client.producer.delivery import RecordMetadata
    from kavka.client.producer.producer import Producer

COMMAND: Final = "kavka perf produce"
TRANSACTION_MS: Final = 3_000
MAX_SHOWN: Final = 10
"""Failures that are a line each; the others are counted."""


def measure_producing(args: argparse.Namespace) -> int:
    """Raises Failure, ConfigError, KafkaError, OSError."""
    payloads = _payloads(args)
    if args.warmup_records >= args.num_records:
        raise wrong("--warmup-records has to be below --num-records")
    settings = settings_of(
        args, {"client.id": "perf-producer-client", "max.block.ms": str(args.timeout_ms or TIMEOUT_MS)}
    )
    if args.transactional_id is not None or args.transaction_duration_ms is not None:
        settings["transactional.id"] = args.transactional_id or f"performance-producer-{uuid.uuid4()}"
    from kavka.cli.reaching import await_broker
    from kavka.client.producer.producer import Producer

    await_broker(settings, args.timeout_ms)
    with Producer(settings) as producer:
        producer.partitions_for(args.topic)
        run = _Run(args, producer, is_transactional="transactional.id" in settings)
        try:
            run.send(itertools.islice(payloads, args.num_records))
        finally:
            # Interrupted too: what was measured until then.
            run.report()
        if args.print_metrics:
            from kavka.cli.perf.metrics import print_metrics

            print_metrics(producer.metrics)
    return 1 if run.failed else 0


def _payloads(args: argparse.Namespace) -> Iterator[bytes]:
    if args.record_size is not None:
        return random_payloads(args.record_size)
    if args.payload_monotonic:
        return numbers()
    try:
        payloads = read_payloads(args.payload_file, args.payload_delimiter)
    except ValueError as error:
        raise Failure(str(error)) from error
    return file_payloads(payloads)


class _Run:
    """One measurement. `send` and `report` are for one thread; deliveries are noted by the producer's."""

    def __init__(self, args: argparse.Namespace, producer: "Producer", *, is_transactional: bool) -> None:
        self._args: Final = args
        self._producer: Final = producer
        self._duration_ms: Final = (args.transaction_duration_ms or TRANSACTION_MS) if is_transactional else None
        self._all: Final = Latencies(args.num_records, _now_ms())
        self._steady: Latencies | None = None
        self.failed = 0
        """Written by the producer's thread; read once all is delivered."""

    def send(self, payloads: Iterator[bytes]) -> None:
        args, producer = self._args, self._producer
        if self._duration_ms is not None:
            producer.init_transactions()
        throttle = Throttle(args.throughput, time.monotonic, time.sleep)
        began_ms: float | None = None
        reported_ms = _now_ms()
        for number, payload in enumerate(payloads):
            now_ms = _now_ms()
            if args.warmup_records and number == args.warmup_records:
                self._steady = Latencies(args.num_records - number, now_ms, is_steady=True)
            if self._duration_ms is not None and began_ms is None:
                producer.begin_transaction()
                began_ms = now_ms
            producer.send(args.topic, payload, on_delivery=partial(self._delivered, now_ms, len(payload), self._steady))
            if began_ms is not None and self._duration_ms is not None and now_ms - began_ms >= self._duration_ms:
                producer.commit_transaction()
                began_ms = None
            if now_ms - reported_ms >= args.reporting_interval:
                reported_ms = now_ms
                self._window(now_ms)
            if throttle.is_on:
                throttle.wait(number + 1)
        if began_ms is not None:
            producer.commit_transaction()
        producer.flush()

    def _window(self, now_ms: float) -> None:
        line = (self._steady or self._all).window(now_ms).window_line()
        if self._args.output == "text":
            emit(line)
            flush()
        else:
            print(line, file=sys.stderr)

    def _delivered(
        self,
        sent_ms: float,
        size_bytes: int,
        steady: Latencies | None,
        _metadata: "RecordMetadata",
        error: "KafkaError | None",
    ) -> None:
        if error is not None:
            self.failed += 1
            if self.failed <= MAX_SHOWN:
                complain(COMMAND, error)
            return
        latency_ms = _now_ms() - sent_ms
        self._all.record(latency_ms, size_bytes)
        if steady is not None:
            steady.record(latency_ms, size_bytes)

    def report(self) -> None:
        """The last lines."""
        now_ms = _now_ms()
        totals: list[Figures] = [self._all.total(now_ms)]
        if self._steady is not None:
            totals.append(self._steady.total(now_ms))
        show(
            self._args,
            Report("perf-produce", (each.row() for each in totals), lambda: (each.total_line() for each in totals)),
        )
        if self.failed > MAX_SHOWN:
            complain(COMMAND, f"{self.failed} records were not delivered; {MAX_SHOWN} are said above")


def _now_ms() -> float:
    return time.monotonic() * 1000
