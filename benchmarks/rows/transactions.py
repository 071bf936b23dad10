"""Rows about transactions: how many a second, and reading what they leave."""

import time
from itertools import count

from confluent_kafka import Producer

from benchmarks import java_load, librdkafka, topics
from benchmarks.contestants import Contestant
from benchmarks.row import CPU, P99, RATE, Better, Goal, Measurement, Metric, Row, Scale

TRANSACTIONS = Metric("transactions", "rate, transactions/s", Better.MORE, 0)
RECORDS = 10
TIMEOUT_S = 60.0
_numbers = count(1)


class JavaTransactionRow(Row):
    """The Java producer of today: partitions join a transaction by its first batch, epochs rise with each (KIP-890)."""

    name = "transactions-java"
    title = f"transactions of {RECORDS} x 100 B, 1 partition, Java"
    goals = (Goal(TRANSACTIONS, 1.0), Goal(CPU, 1.0))
    COUNT = 5_000

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        server = contestant.shared
        transactions = scale.count(self.COUNT)
        with topics.topic(server, 1) as topic:
            before = server.process.cpu_seconds()
            done = java_load.transactions(
                server, topic, 1, transactions, RECORDS, warm_up=transactions // 2, abort_every=0
            )
            return {TRANSACTIONS: done.rate, P99: done.p99_ms, CPU: server.process.cpu_seconds() - before}


class ConfluentTransactionRow(Row):
    """librdkafka: partitions are added by a request of their own."""

    name = "transactions-librdkafka"
    title = f"transactions of {RECORDS} x 100 B, 1 partition, confluent-kafka"
    goals = (Goal(TRANSACTIONS, 1.0), Goal(CPU, 1.0))
    COUNT = 3_000

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        server = contestant.shared
        transactions = scale.count(self.COUNT)
        with topics.topic(server, 1) as topic:
            config = {"bootstrap.servers": server.bootstrap, "transactional.id": topic, "linger.ms": 0}
            producer = Producer({**config, "log_level": 3})
            producer.init_transactions(TIMEOUT_S)
            before, started_at = server.process.cpu_seconds(), time.perf_counter()
            for _ in range(transactions):
                producer.begin_transaction()
                for _ in range(RECORDS):
                    producer.produce(topic, bytes(100), partition=0)
                producer.commit_transaction(TIMEOUT_S)
            seconds = time.perf_counter() - started_at
            return {TRANSACTIONS: transactions / seconds, CPU: server.process.cpu_seconds() - before}


class ReadCommittedRow(Row):
    """Read what transactions of 10,000 records left, a tenth of them aborted."""

    name = "consume-read-committed"
    title = "consume 100 B, read_committed, 6 partitions, a tenth aborted"
    goals = (Goal(RATE, 1.0), Goal(CPU, 1.0))
    PARTITIONS = 6
    TRANSACTIONS = 1_000
    RECORDS = 10_000
    ABORT_EVERY = 10

    def __init__(self) -> None:
        self._topics: dict[str, str] = {}

    def prepare(self, contestant: Contestant, scale: Scale) -> None:
        topic = self._topics[contestant.name] = f"read-committed-{next(_numbers)}"
        topics.create(contestant.shared, [topic], self.PARTITIONS)
        transactions = scale.count(self.TRANSACTIONS)
        java_load.transactions(
            contestant.shared,
            topic,
            self.PARTITIONS,
            transactions,
            self.RECORDS,
            warm_up=0,
            abort_every=self.ABORT_EVERY,
        )

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        server = contestant.shared
        transactions = scale.count(self.TRANSACTIONS)
        messages = (transactions - transactions // self.ABORT_EVERY) * self.RECORDS
        before = server.process.cpu_seconds()
        with librdkafka.start_consumer(
            server,
            self._topics[contestant.name],
            self.PARTITIONS,
            messages,
            properties={"isolation.level": "read_committed"},
        ) as consumer:
            done = librdkafka.finish_consumer(consumer, messages)
        return {RATE: done.rate, CPU: server.process.cpu_seconds() - before}

    def clean(self, contestant: Contestant) -> None:
        topic = self._topics.pop(contestant.name, None)
        if topic is not None:
            topics.delete(contestant.shared, [topic])


SHARED_ROWS: tuple[Row, ...] = (JavaTransactionRow(), ConfluentTransactionRow(), ReadCommittedRow())
