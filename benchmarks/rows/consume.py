"""Consume rows: twenty million records and more, so that the broker's CPU seconds mean something."""

from dataclasses import replace
from itertools import count

from benchmarks import librdkafka, topics
from benchmarks.contestants import Contestant
from benchmarks.librdkafka import Produce
from benchmarks.row import CPU, RATE, Goal, Measurement, Row, Scale

RECORDS = 20_000_000
FILL = Produce(RECORDS, 100, properties={"linger.ms": "20"})
_numbers = count(1)


class ConsumeRow(Row):
    """Read a topic from its start; the same topic in every round, so it comes from the page cache on both sides."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self.name = f"consume-{partitions}"
        self.title = f"consume 100 B, {partitions} partition{'s' if partitions > 1 else ''}"
        self.goals = (Goal(RATE, 1.0), Goal(CPU, 1.0))
        self._topics: dict[str, str] = {}

    def prepare(self, contestant: Contestant, scale: Scale) -> None:
        topic = f"consume-{next(_numbers)}"
        topics.create(contestant.shared, [topic], self.partitions)
        librdkafka.produce(contestant.shared, topic, replace(FILL, messages=scale.count(RECORDS)))
        self._topics[contestant.name] = topic

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        server = contestant.shared
        before = server.process.cpu_seconds()
        topic = self._topics[contestant.name]
        done = librdkafka.consume(server, topic, self.partitions, scale.count(RECORDS))
        return {RATE: done.rate, CPU: server.process.cpu_seconds() - before}

    def clean(self, contestant: Contestant) -> None:
        topic = self._topics.pop(contestant.name, None)
        if topic is not None:
            topics.delete(contestant.shared, [topic])


class ConsumeWhileProducingRow(Row):
    """A producer at full speed and a consumer on the same partitions; the consumer's rate until it has everything."""

    name = "consume-while-producing"
    title = "consume while producing 100 B, 6 partitions"
    goals = (Goal(RATE, 0.95), Goal(CPU, 0.8))
    PARTITIONS = 6
    LOAD = Produce(6_000_000, 100, properties={"linger.ms": "5"})

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        server = contestant.shared
        load = replace(self.LOAD, messages=scale.count(self.LOAD.messages))
        with topics.topic(server, self.PARTITIONS) as topic:
            before = server.process.cpu_seconds()
            with (
                librdkafka.start_consumer(server, topic, self.PARTITIONS, load.messages) as consumer,
                librdkafka.start_producer(server, topic, load) as producer,
            ):
                librdkafka.finish_producer(producer, load)
                done = librdkafka.finish_consumer(consumer, load.messages)
            return {RATE: done.rate, CPU: server.process.cpu_seconds() - before}


SHARED_ROWS: tuple[Row, ...] = (ConsumeRow(1), ConsumeRow(6), ConsumeWhileProducingRow())
