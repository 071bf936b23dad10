"""Load from Apache Kafka's own tools, on the newest client's jars: what a Java application would see."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from benchmarks.row import UnavailableError
from tests.support.java import JavaFailedError, run_java
from tests.support.server import RunningServer

PROGRAMS = Path(__file__).with_name("java")
TOOLS = "org.apache.kafka.tools"
SENT = re.compile(r"([\d.]+) records/sec .*? ([\d.]+) ms avg latency.*? (\d+) ms 50th, .*? (\d+) ms 99th")
LATENCY = re.compile(r"Avg latency: ([\d.]+) ms\s+Percentiles: 50th = (\d+), 99th = (\d+)")
TIMEOUT_S = 180.0


@dataclass(frozen=True)
class JavaOutcome:
    rate: float
    average_ms: float
    p50_ms: float
    p99_ms: float


def producer_performance(
    server: RunningServer, topic: str, records: int, size_bytes: int, *, warm_up: int, properties: dict[str, str]
) -> JavaOutcome:
    """ProducerPerformance without its warm-up records, so that the client's own JVM start is not measured."""
    arguments = ["--bootstrap-server", server.bootstrap, "--topic", topic, "--throughput", "-1"]
    arguments += ["--num-records", str(records + warm_up), "--record-size", str(size_bytes)]
    arguments += ["--warmup-records", str(warm_up)]
    for name, value in properties.items():
        arguments += ["--command-property", f"{name}={value}"]
    output = _run(f"{TOOLS}.ProducerPerformance", arguments)
    found = SENT.findall(output)
    if not found:
        raise UnavailableError(f"ProducerPerformance printed no summary: {output[-300:]}")
    # The last summary is that of the steady state.
    rate, average, p50, p99 = found[-1]
    return JavaOutcome(float(rate), float(average), float(p50), float(p99))


def consumer_performance(server: RunningServer, topic: str, records: int) -> JavaOutcome:
    """ConsumerPerformance joins a group. Raises UnavailableError where the broker has none."""
    arguments = ["--bootstrap-server", server.bootstrap, "--topic", topic, "--num-records", str(records)]
    arguments += ["--timeout", "20000", "--hide-header"]
    output = _run(f"{TOOLS}.ConsumerPerformance", arguments)
    fields = [field.strip() for field in output.strip().splitlines()[-1].split(",")] if output.strip() else []
    if len(fields) < 10 or int(fields[4]) < records:
        raise UnavailableError("ConsumerPerformance did not read everything: it joins a group")
    # The last field is the rate over the time spent fetching, the group's join left out.
    return JavaOutcome(float(fields[9]), 0.0, 0.0, 0.0)


def end_to_end(server: RunningServer, topic: str, records: int) -> JavaOutcome:
    """EndToEndLatency: one producer and one consumer, one record at a time."""
    output = _run(f"{TOOLS}.EndToEndLatency", [server.bootstrap, topic, str(records), "1", "100"])
    found = LATENCY.search(output)
    if found is None:
        raise UnavailableError(f"EndToEndLatency printed no percentiles: {output[-300:]}")
    average, p50, p99 = found.groups()
    return JavaOutcome(1000 / float(average), float(average), float(p50), float(p99))


def transactions(
    server: RunningServer,
    topic: str,
    partitions: int,
    transactions: int,
    records: int,
    *,
    warm_up: int,
    abort_every: int,
) -> JavaOutcome:
    """benchmarks/java/TransactionLoad: so many transactions one after the other; the rate is of transactions."""
    numbers = (partitions, transactions, records, warm_up, abort_every)
    output = _run(str(PROGRAMS / "TransactionLoad.java"), [server.bootstrap, topic, *map(str, numbers)])
    rate, p50, p99 = map(float, output.split())
    return JavaOutcome(rate, 1000 / rate, p50, p99)


def _run(main_class: str, arguments: list[str]) -> str:
    try:
        return run_java(main_class, arguments, timeout_s=TIMEOUT_S, heap="512m", short_lived=False)
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(f"no end within {TIMEOUT_S:.0f} s") from error
    except JavaFailedError as error:
        raise UnavailableError(_reason(str(error))) from error


def _reason(output: str) -> str:
    """The line that names the exception, else the last one."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return next((line for line in lines if "Exception" in line), lines[-1])[:300]
