"""A producer's parts over a simulated cluster, driven step by step."""

import random
from typing import Any

from kavka.client.api_errors import KafkaError
from kavka.client.backoff import ExponentialBackoff
from kavka.client.client_metrics import Metrics
from kavka.client.coordinators import Coordinators
from kavka.client.producer.accumulator import AccumulatorSettings, RecordAccumulator
from kavka.client.producer.delivery import RecordMetadata
from kavka.client.producer.outcomes import Outcomes, RetrySettings
from kavka.client.producer.partition_queue import PartitionQueue
from kavka.client.producer.producer_ids import IdempotentIds, ProducerIds
from kavka.client.producer.producer_metrics import ProducerMetrics
from kavka.client.producer.send_future import SendFuture
from kavka.client.producer.sender import Sender, SenderSettings
from kavka.client.producer.transactions import Transactions, TransactionSettings
from tests.component.client.producer.simulated_cluster import TOPIC, SimulatedCluster, SimulatedMetadata


class SimulatedProducer:
    """Accumulator, sender and outcomes with a clock of the test's.

    `outcomes[value]` has what its callback was told; `order[partition]` the values as they were sent.
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        *,
        idempotent: bool = True,
        transactional: bool = False,
        accumulator: AccumulatorSettings | None = None,
        sender: SenderSettings | None = None,
        retries: RetrySettings | None = None,
        lingers: bool = False,
    ) -> None:
        """Half of those that need not linger (`lingers`) do not."""
        self.cluster = cluster
        # As any: the sender needs no more of Metadata than this has.
        metadata: Any = SimulatedMetadata(cluster)
        self.metadata: SimulatedMetadata = metadata
        self.now_ms = 1000.0
        self.woken = 0
        waiting = accumulator or AccumulatorSettings()
        if not lingers and cluster.dice.random() < 0.5:
            # So that records may go out by who sends them.
            waiting = waiting._replace(linger_ms=0)
        self.accumulator = RecordAccumulator(waiting, self.clock, self._wake)
        self.metrics = ProducerMetrics(Metrics("producer", "sim", now_ms=self.clock), self.accumulator.memory)
        self.ids: ProducerIds | None = None
        self.transactions: Transactions | None = None
        backoff = ExponentialBackoff(100, 1000, lambda: 0.5)
        if transactional:
            coordinators = Coordinators(cluster, metadata, backoff)
            settings = TransactionSettings("id")
            self.transactions = Transactions(settings, self.accumulator, cluster, coordinators, backoff, self.clock)
            self.ids = self.transactions
        elif idempotent:
            self.ids = IdempotentIds(self.accumulator, cluster, self.metadata.nodes, backoff, self.clock)
        chosen = retries or RetrySettings()
        self.outcomes_of_batches = Outcomes(chosen, self.accumulator, metadata, self.ids, self.metrics)
        # A seed's run is the same each time.
        jittering = ExponentialBackoff(chosen.backoff_ms, chosen.backoff_max_ms, cluster.dice.random)
        self.outcomes_of_batches.__dict__["_backoff"] = jittering
        self.sender = Sender(
            sender
            or SenderSettings(max_in_flight=cluster.max_in_flight, transactional_id="id" if transactional else None),
            self.accumulator,
            cluster,
            metadata,
            self.outcomes_of_batches,
            self.ids,
            self.metrics,
            self.clock,
        )
        self.at_once = 0
        self.accumulator.send_at_once = self._send_at_once
        self.outcomes: dict[bytes, list[tuple[RecordMetadata, KafkaError | None]]] = {}
        self.order: dict[int, list[bytes]] = {number: [] for number in cluster.logs}
        self.called: dict[int, list[bytes]] = {number: [] for number in cluster.logs}
        self.futures: dict[bytes, SendFuture] = {}
        self._sent = 0

    def clock(self) -> float:
        return self.now_ms

    def _send_at_once(self, queue: PartitionQueue) -> bool:
        is_sent = self.sender.send_at_once(queue, self.now_ms)
        self.at_once += is_sent
        return is_sent

    def _wake(self) -> None:
        self.woken += 1

    def send(self, partition: int, size: int = 10) -> bytes:
        """Send a record to a partition; its value, which no other has."""
        value = b"%d " % self._sent + b"x" * size
        self._sent += 1
        topic = self.accumulator.topic(TOPIC, self.metadata.cluster)
        assert topic is not None
        self.outcomes[value] = []

        def called(metadata: RecordMetadata, error: KafkaError | None) -> None:
            self.outcomes[value].append((metadata, error))
            self.called[partition].append(value)

        self.order[partition].append(value)
        self.futures[value] = self.accumulator.append(
            topic, topic.queues[partition], int(self.now_ms), None, value, (), called, self.now_ms
        )
        if self.transactions is not None:
            self.transactions.add(self.futures[value].delivery.topic_partition)
        return value

    def work(self) -> float:
        return self.sender.work(self.now_ms)

    def step(self) -> None:
        """Everything that is on its way arrives, and is answered."""
        self.work()
        for node in self.cluster.busy():
            self.cluster.run_next(node)
            self.cluster.answer_next(node)
        if self.metadata.is_wanted:
            self.update()

    def update(self) -> None:
        self.metadata.update()
        self.accumulator.learn(self.metadata.cluster)

    def finish(self) -> None:
        """From now on nothing fails: go on until all records have come to an end."""
        self.accumulator.hurry()
        for _ in range(10_000):
            if not self.accumulator.incomplete and not self.cluster.busy():
                return
            self.step()
            self.now_ms += 50
        raise AssertionError(f"{len(self.accumulator.incomplete)} batches never came to an end")

    # What must hold in the end ---------------------------------------------------------------------------------------

    def check_callbacks(self) -> None:
        """Each exactly once, and the futures say the same."""
        for value, calls in self.outcomes.items():
            assert len(calls) == 1, (value, calls)
            assert self.futures[value].done()
            assert self.futures[value].exception(0) == calls[0][1]

    def check_logs(self) -> None:
        """What was acknowledged is where its metadata say."""
        for calls in self.outcomes.values():
            for metadata, error in calls:
                if error is None and metadata.offset >= 0:
                    assert metadata.partition in self.cluster.logs
        for value, calls in self.outcomes.items():
            metadata, error = calls[0]
            if error is None:
                log = self.cluster.logs[metadata.partition].values
                assert value in log, f"{value!r} was acknowledged, and is lost"
                if metadata.offset >= 0:
                    assert log[metadata.offset] == value

    def check_order(self) -> None:
        """No record is twice in its log, and they are in the order in which they were sent. What was deleted, and is
        there once more since, is not there twice.
        """
        for partition, log in self.cluster.logs.items():
            places = {value: place for place, value in enumerate(self.order[partition])}
            for values in log.eras():
                assert len(set(values)) == len(values), "doubled"
                numbers = [places[value] for value in values]
                assert numbers == sorted(numbers), "reordered"


def dice_of(seed: int) -> random.Random:
    return random.Random(seed)
