"""Latency rows: one message at a time at a steady rate, to the acknowledgement and to the consumer."""

import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks import java_load, librdkafka, topics
from benchmarks.contestants import Contestant
from benchmarks.librdkafka import Produce
from benchmarks.row import AVERAGE, CPU, P50, P99, Goal, Measurement, Row, Scale
from tests.support.processes import wait_until
from tests.support.server import RunningServer

ONE_AT_A_TIME = {"linger.ms": "0", "batch.num.messages": "1", "max.in.flight": "1"}
# A steady rate that each broker keeps up with easily: measured is its answer, not the generator's queue.
STEADY = Produce(10_000, 100, rate=1000, properties=ONE_AT_A_TIME)
# The first second: connections, metadata, the consumer finding its place.
FIRST_MESSAGES = 1000


class AcknowledgedRow(Row):
    """From producing a message to its delivery report, nothing else going on."""

    name = "latency-acknowledged"
    title = "in-flight 1 at 1,000/s: produce to acknowledgement"
    goals = (Goal(P99, 1.0),)

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        return acknowledged_latency(contestant.shared, scale)


class EndToEndRow(Row):
    """From producing a message to its arrival at a consumer that waits for it."""

    name = "latency-end-to-end"
    title = "end to end at 1,000/s: producer to consumer"
    goals = (Goal(P99, 1.0),)

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        server = contestant.shared
        load = replace(STEADY, messages=max(4000, scale.count(STEADY.messages)))
        with topics.topic(server, 1) as topic, tempfile.TemporaryDirectory() as folder:
            latencies = Path(folder) / "consumer"
            waiting = {"fetch.wait.max.ms": "500", "fetch.min.bytes": "1"}
            before = server.process.cpu_seconds()
            with (
                librdkafka.start_consumer(
                    server, topic, 1, load.messages, latencies=latencies, properties=waiting
                ) as consumer,
                librdkafka.start_producer(server, topic, load, latencies=Path(folder) / "producer") as producer,
            ):
                librdkafka.finish_producer(producer, load)
                librdkafka.finish_consumer(consumer, load.messages)
            spent = server.process.cpu_seconds() - before
            p50, p99 = librdkafka.percentiles_ms(latencies, (0.5, 0.99), skip=FIRST_MESSAGES)
            return {P50: p50, P99: p99, CPU: spent}


class JavaEndToEndRow(Row):
    """Kafka's own EndToEndLatency; its percentiles are whole milliseconds, so the average is compared."""

    name = "latency-java"
    title = "EndToEndLatency (Java), acks=1"
    goals = (Goal(AVERAGE, 1.0),)
    warms = False
    RECORDS = 10_000

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        with topics.topic(contestant.shared, 1) as topic:
            done = java_load.end_to_end(contestant.shared, topic, max(3000, scale.count(self.RECORDS)))
            return {AVERAGE: done.average_ms, P99: done.p99_ms}


def acknowledged_latency(server: RunningServer, scale: Scale) -> Measurement:
    load = replace(STEADY, messages=max(4000, scale.count(STEADY.messages)))
    with topics.topic(server, 1) as topic, tempfile.TemporaryDirectory() as folder:
        latencies = Path(folder) / "producer"
        before = server.process.cpu_seconds()
        librdkafka.produce(server, topic, load, latencies=latencies)
        spent = server.process.cpu_seconds() - before
        wait_until(latencies.exists, 5.0, "rdkafka_performance wrote no latencies")
        p50, p99 = librdkafka.percentiles_ms(latencies, (0.5, 0.99), skip=FIRST_MESSAGES)
        return {P50: p50, P99: p99, CPU: spent}


SHARED_ROWS: tuple[Row, ...] = (AcknowledgedRow(), EndToEndRow(), JavaEndToEndRow())
