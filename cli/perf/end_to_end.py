"""`kavka perf e2e`: from the send of a record until it is read, one by one, as Kafka's EndToEndLatency."""

import argparse
import time
from typing import TYPE_CHECKING, Any, Final

from kavka.cli.failing import Failure
from kavka.cli.output import emit, flush
from kavka.cli.perf.arguments import TIMEOUT_MS, settings_of
from kavka.cli.perf.latencies import percentiles
from kavka.cli.perf.payloads import random_payloads
from kavka.cli.showing import Report, show
from kavka.client.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kavka.client.consumer.consumer import Consumer

POLL_MS: Final = 60_000.0
_PARTS: Final = (0.5, 0.95, 0.99, 0.999)
_REPORTED: Final = 1_000


def measure_end_to_end(args: argparse.Namespace) -> int:
    """Raises Failure, ConfigError, KafkaError."""
    common = settings_of(args, {})
    timeout_ms = str(args.timeout_ms or TIMEOUT_MS)
    reading = {
        "default.api.timeout.ms": timeout_ms,
        **common,
        "enable.auto.commit": "false",
        "fetch.max.wait.ms": "0",
        "allow.auto.create.topics": "false",
    }
    reading.pop("group.id", None)
    sending = {"max.block.ms": timeout_ms, **common, "linger.ms": "0", "acks": args.producer_acks}
    from kavka.cli.reaching import await_broker
    from kavka.client.consumer.consumer import Consumer
    from kavka.client.producer.producer import Producer

    await_broker(common, args.timeout_ms)
    latencies_ms: list[float] = []
    with Consumer(reading) as consumer, Producer(sending) as producer:
        _seek_to_end(consumer, args.topic)
        keys = random_payloads(args.record_key_size, 1) if args.record_key_size else None
        headers = _headers(args)
        payloads = random_payloads(args.record_size)
        try:
            for number in range(args.num_records):
                value, key = next(payloads), next(keys) if keys is not None else None
                began_ns = time.monotonic_ns()
                producer.send(args.topic, value, key, headers=headers).result()
                _read(consumer, value, key)
                latency_ms = (time.monotonic_ns() - began_ns) / 1_000_000
                latencies_ms.append(latency_ms)
                if not number % _REPORTED and args.output == "text":
                    emit(f"{number}\t{latency_ms}")
                    flush()
        finally:
            if latencies_ms:
                row = figures(latencies_ms)
                show(args, Report("perf-e2e", [row], lambda: _lines(row)))
        if args.print_metrics:
            from kavka.cli.perf.metrics import print_metrics

            print_metrics(producer.metrics)
            print_metrics(consumer.metrics)
    return 0


def _headers(args: argparse.Namespace) -> list[tuple[str, bytes | None]]:
    names, values = random_payloads(args.record_header_key_size, 2), random_payloads(args.record_header_size, 3)
    return [(next(names).decode(), next(values)) for _ in range(args.num_headers)]


def _seek_to_end(consumer: "Consumer", topic: str) -> None:
    partitions = [TopicPartition(topic, number) for number in consumer.partitions_for(topic)]
    if not partitions:
        raise Failure(f"there is no topic {topic}", "kavka topics create makes it")
    consumer.assign(partitions)
    for partition, offset in consumer.end_offsets(partitions).items():
        consumer.seek(partition, offset)


def _read(consumer: "Consumer", value: bytes, key: bytes | None) -> None:
    """Raises Failure unless it is what was sent, and nothing else."""
    records = consumer.poll(POLL_MS)
    if not records:
        raise Failure(f"the record that was sent did not come within {POLL_MS:.0f} ms")
    if len(records) > 1 or (records[0].value, records[0].key) != (value, key):
        raise Failure("another record came than the one that was sent", "the topic has to be this command's alone")


def figures(latencies_ms: list[float]) -> dict[str, Any]:
    """What programs get."""
    p50, p95, p99, p999 = percentiles(latencies_ms, _PARTS)
    return {
        "records": len(latencies_ms),
        "avg_latency_ms": round(sum(latencies_ms) / len(latencies_ms), 4),
        "max_latency_ms": round(max(latencies_ms), 4),
        "p50_ms": round(p50, 4),
        "p95_ms": round(p95, 4),
        "p99_ms": round(p99, 4),
        "p999_ms": round(p999, 4),
    }


def _lines(row: dict[str, Any]) -> list[str]:
    """As Kafka's tool prints them, but for the 95th, and with what comes behind the point: they are below 1 ms here."""
    names = ("50th", "95th", "99th", "99.9th")
    found = [row[name] for name in ("p50_ms", "p95_ms", "p99_ms", "p999_ms")]
    shown = ", ".join(f"{name} = {latency_ms}" for name, latency_ms in zip(names, found, strict=True))
    return [f"Avg latency: {row['avg_latency_ms']:.4f} ms", f"Percentiles: {shown}"]
