"""Rows loaded by Kafka's own Java client: idempotent and acks=all by default, incremental fetch sessions."""

from dataclasses import replace

from benchmarks import java_load, librdkafka, topics
from benchmarks.contestants import Contestant
from benchmarks.row import CPU, P99, RATE, Goal, Measurement, Row, Scale
from benchmarks.rows.consume import FILL

PARTITIONS = 6


class JavaProducerRow(Row):
    """ProducerPerformance with today's defaults."""

    name = "java-producer"
    title = "ProducerPerformance 1000 B, idempotent, acks=all"
    goals = (Goal(RATE, 1.0), Goal(CPU, 0.8))
    RECORDS = 1_000_000

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        server = contestant.shared
        records = scale.count(self.RECORDS)
        with topics.topic(server, PARTITIONS) as topic:
            before = server.process.cpu_seconds()
            done = java_load.producer_performance(
                server, topic, records, 1000, warm_up=records // 2, properties={"linger.ms": "5"}
            )
            return {RATE: done.rate, P99: done.p99_ms, CPU: server.process.cpu_seconds() - before}


class JavaConsumerRow(Row):
    """ConsumerPerformance, which joins a consumer group."""

    name = "java-consumer"
    title = "ConsumerPerformance 100 B, 6 partitions, in a group"
    goals = (Goal(RATE, 0.95), Goal(CPU, 1.2))
    warms = False

    def __init__(self) -> None:
        self._topics: dict[str, str] = {}

    def prepare(self, contestant: Contestant, scale: Scale) -> None:
        topic = self._topics[contestant.name] = "java-consumer"
        topics.create(contestant.shared, [topic], PARTITIONS)
        librdkafka.produce(contestant.shared, topic, replace(FILL, messages=scale.count(FILL.messages)))

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        server = contestant.shared
        before = server.process.cpu_seconds()
        done = java_load.consumer_performance(server, self._topics[contestant.name], scale.count(FILL.messages))
        return {RATE: done.rate, CPU: server.process.cpu_seconds() - before}

    def clean(self, contestant: Contestant) -> None:
        topic = self._topics.pop(contestant.name, None)
        if topic is not None:
            topics.delete(contestant.shared, [topic])


SHARED_ROWS: tuple[Row, ...] = (JavaProducerRow(), JavaConsumerRow())
