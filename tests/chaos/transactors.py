"""Transactional clients of the chaos program: producers that commit, abort and abandon, and a copier that is exact."""

import random
from collections.abc import Callable, Sequence
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, Producer, TopicPartition

from tests.chaos.clients import Client, Engagement
from tests.chaos.history import Fate, Place
from tests.support.patient_call import NeverBackError, within

CALL_S: Final = 20.0
STUCK_S: Final = CALL_S + 5.0
"""After this a call has forgotten how long it may take. To give it up loses nothing: a new producer fences it."""
TRANSACTION_MS: Final = 20_000
MOST_RECORDS: Final = 6
DEEDS: Final = ("commit", "commit", "commit", "abort", "abandon")


class HopelessError(Exception):
    """The producer cannot go on; another one of the same name can."""


class Transactional(Client):
    """Has a producer, and a new one when the old one cannot go on: that fences it."""

    def new_producer(self) -> Producer | None:
        """None when all is over."""
        while not self.is_over.is_set():
            producer = Producer(
                self.settings(
                    transactional_id=self.name,
                    transaction_timeout_ms=TRANSACTION_MS,
                    message_timeout_ms=TRANSACTION_MS,
                    linger_ms=2,
                )
            )
            try:
                producer.init_transactions(CALL_S)
                return producer
            except KafkaException as failure:
                # Nobody coordinates, or the transaction before is still being ended.
                self.trouble = f"init: {failure}"
        return None

    def again(self, call: Callable[[], Any]) -> None:
        """Until it does not fail in a way that asks for another attempt. Raises KafkaException, or TimeoutError."""
        for _ in range(10):
            try:
                call()
                return
            except KafkaException as failure:
                if not failure.args[0].retriable():
                    raise
        raise TimeoutError

    def abort(self, producer: Producer) -> None:
        """Raises HopelessError where even that fails."""
        try:
            self.again(lambda: producer.abort_transaction(CALL_S))
        except (KafkaException, TimeoutError) as failure:
            raise HopelessError(str(failure)) from failure


class Transactor(Transactional):
    """One transaction after the other over some partitions; notes what became of each."""

    def __init__(self, engagement: Engagement, *, places: Sequence[Place], dice: random.Random) -> None:
        super().__init__(engagement)
        self.places = places
        self._dice = dice

    def work(self) -> None:
        number = 0
        producer = self.new_producer()
        while producer is not None and not self.is_over.wait(self._dice.uniform(0, 0.2)):
            records = [
                (self._dice.choice(self.places), f"{self.name}:{number}:{index}")
                for index in range(self._dice.randint(1, MOST_RECORDS))
            ]
            fate, is_hopeless = self._transact(producer, self._dice.choice(DEEDS), records)
            self.history.note_transaction(f"{self.name}:{number}", fate, records)
            self.done += fate is Fate.COMMITTED
            number += 1
            if is_hopeless:
                producer = self.new_producer()

    def _transact(self, producer: Producer, deed: str, records: Sequence[tuple[Place, str]]) -> tuple[Fate, bool]:
        """What became of it, and whether the producer is done for."""
        is_committing = False
        try:
            producer.begin_transaction()
            for (topic, index), value in records:
                producer.produce(topic, value.encode(), partition=index)
            if deed == "commit":
                is_committing = True
                self.again(lambda: producer.commit_transaction(CALL_S))
                return Fate.COMMITTED, False
            producer.flush(CALL_S)
            if deed == "abandon":
                return Fate.ABORTED, True
            self.abort(producer)
            return Fate.ABORTED, False
        except HopelessError:
            return Fate.ABORTED, True
        except TimeoutError:
            self.trouble = "no end of attempts to commit"
            return Fate.UNKNOWN, True
        except KafkaException as failure:
            self.trouble = f"{deed}: {failure}"
            if failure.args[0].txn_requires_abort():
                try:
                    self.abort(producer)
                except HopelessError:
                    return Fate.UNKNOWN if is_committing else Fate.ABORTED, True
                return Fate.ABORTED, False
            return Fate.UNKNOWN if is_committing else Fate.ABORTED, True


class Copier(Transactional):
    """Copies a topic partition by partition, exactly once, each record as `OFFSET=VALUE`."""

    def __init__(self, engagement: Engagement, *, source: str, target: str, group: str) -> None:
        super().__init__(engagement)
        self.source = source
        self.target = target
        self.group = group

    def work(self) -> None:
        consumer = self.group_member(self.group, self.source, isolation_level="read_committed")
        producer = self.new_producer()
        while producer is not None and not self.is_over.is_set():
            messages = [message for message in consumer.consume(200, 0.3) if message.error() is None]
            if not messages:
                continue
            try:
                self._copy(producer, consumer, messages)
                self.done += 1
                continue
            except HopelessError as failure:
                self.trouble = f"copy: {failure}"
                producer = self.new_producer()
            except KafkaException as failure:
                # Aborted: what was consumed is consumed again.
                self.trouble = f"copy: {failure}"
            self._rewind(consumer)
        consumer.close()

    def _copy(self, producer: Producer, consumer: Consumer, messages: Sequence[Message]) -> None:
        """One transaction. Raises KafkaException once it is aborted, HopelessError where nobody knows whether it is."""
        positions: dict[tuple[str, int], int] = {}
        try:
            producer.begin_transaction()
            for message in messages:
                topic, partition, offset = message.topic(), message.partition(), message.offset()
                assert topic is not None
                assert partition is not None
                assert offset is not None
                producer.produce(self.target, b"%d=%b" % (offset, message.value() or b""), partition=partition)
                positions[topic, partition] = offset + 1
            offsets = [TopicPartition(*place, offset) for place, offset in positions.items()]
            metadata = consumer.consumer_group_metadata()
            within(STUCK_S, lambda: producer.send_offsets_to_transaction(offsets, metadata, CALL_S))
            self.again(lambda: producer.commit_transaction(CALL_S))
        except (NeverBackError, TimeoutError) as failure:
            raise HopelessError("no end of an attempt to commit") from failure
        except KafkaException as failure:
            error = failure.args[0]
            if error.fatal() or error.retriable():
                raise HopelessError(str(failure)) from failure
            self.abort(producer)
            raise

    def _rewind(self, consumer: Consumer) -> None:
        """Back to what is committed, for the partitions that are ours."""
        while not self.is_over.is_set():
            try:
                for found in consumer.committed(consumer.assignment(), CALL_S):
                    offset = found.offset if found.offset >= 0 else OFFSET_BEGINNING
                    consumer.seek(TopicPartition(found.topic, found.partition, offset))
                return
            except KafkaException as failure:
                self.trouble = f"rewind: {failure}"
