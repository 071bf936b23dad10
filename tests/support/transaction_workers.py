"""Transactional producers that never tire: each in a thread, each with a transactional id of its own.

They commit, abort, leave transactions to time out, and fence themselves by a second instance, and write into a journal
what they were told. A broker that goes away is waited for.
"""

import logging
import random
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.end_txn import EndTxnRequest
from kavka.protocol.messages.init_producer_id import InitProducerIdRequest
from kavka.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka.protocol.records.builder import build_batch
from kavka.protocol.records.record import Record
from kavka.protocol.schema import Request
from tests.support.processes import wait_until
from tests.support.server import RunningServer
from tests.support.transaction_journal import Fate, Journal, Place
from tests.support.wire import Wire

INIT_VERSION, PRODUCE_VERSION, END_VERSION = 5, 12, 5
PATIENCE_S: Final = 90.0
TIMEOUT_MS, SHORT_TIMEOUT_MS = 30_000, 1500
KEEPS_ITS_BROKER: Final = {"metadata.recovery.strategy": "none"}
"""librdkafka 2.16, bootstrapping anew while its only broker restarts, may leave a TxnOffsetCommit with a handle that it
has given up: it is not sent for a minute, and the transaction times out.
"""
MOST_RECORDS: Final = 6
DEEDS: Final = ("commit", "commit", "commit", "abort", "abandon", "come back", "fence")
COME_AGAIN: Final = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)

_silent: Final = logging.getLogger("transaction-workers")
_silent.addHandler(logging.NullHandler())
_silent.propagate = False


class Worker(threading.Thread):
    """One transaction after the other, until `stop` is set. `failure`: what ended it before."""

    def __init__(
        self, name: str, broker: RunningServer, places: Sequence[Place], journal: Journal, stop: threading.Event
    ) -> None:
        super().__init__(name=name, daemon=True)
        self.broker = broker
        self.places = places
        self.journal = journal
        self.dice = random.Random(name)
        self.failure: BaseException | None = None
        self.transactions = 0
        self._stop_set = stop

    def run(self) -> None:
        try:
            while not self._stop_set.is_set():
                self.transactions += 1
                self.transact(self.dice.choice(DEEDS))
        except BaseException as failure:
            self.failure = failure
            raise
        finally:
            self.close()

    def transact(self, deed: str) -> None:
        """One transaction, noted in the journal."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of the broker."""

    def records(self, deed: str) -> list[tuple[Place, str]]:
        """What the next transaction writes."""
        count = self.dice.randint(1, MOST_RECORDS)
        return [
            (self.dice.choice(self.places), f"{self.name}:{self.transactions}:{number}:{deed}")
            for number in range(count)
        ]


class LibraryWorker(Worker):
    """By librdkafka: transactions of version 1, and the offsets of a group of its name with each commit.

    `possible_offsets`: what the group may have, by what the producer was told.
    """

    producer: Producer | None = None
    possible_offsets: tuple[int, ...] = (-1,)

    def transact(self, deed: str) -> None:
        records = self.records(deed)
        is_left = deed in ("abandon", "come back", "fence")
        producer = self.producer
        if producer is None or deed in ("abandon", "come back"):
            producer = self.producer = self._producer(SHORT_TIMEOUT_MS if is_left else TIMEOUT_MS)
        committing = False
        try:
            producer.begin_transaction()
            for (topic, index), value in records:
                producer.produce(topic, value.encode(), partition=index)
            assert producer.flush(PATIENCE_S) == 0, "records are not written"
            if deed == "fence":
                self.producer = self._producer(TIMEOUT_MS)
            if is_left and deed != "fence":
                self.producer = None
                self.journal.note(Fate.ABORTED, deed, records)
                self._producer(TIMEOUT_MS)
                return
            if deed == "abort":
                self._again(producer.abort_transaction)
                self.journal.note(Fate.ABORTED, deed, records)
                return
            self._add_offsets(producer)
            committing = True
            self._again(producer.commit_transaction)
        except KafkaException as failure:
            self._failed(producer, failure, deed, records, committing=committing)
        else:
            if deed == "fence":
                self.journal.surprise(f"{self.name}: a fenced producer has committed {records}")
            self.possible_offsets = (self.transactions,)
            self.journal.note(Fate.COMMITTED, deed, records)

    def _failed(
        self,
        producer: Producer,
        failure: KafkaException,
        deed: str,
        records: Sequence[tuple[Place, str]],
        *,
        committing: bool,
    ) -> None:
        error = failure.args[0]
        is_unknown = committing and deed != "fence"
        if is_unknown:
            self.possible_offsets += (self.transactions,)
        self.journal.note(Fate.UNKNOWN if is_unknown else Fate.ABORTED, deed, records)
        if deed == "fence":
            # Its records may have found no broker in their short time: then nothing was sent that could be fenced.
            if not error.fatal() and error.code() != KafkaError._TIMED_OUT:
                self.journal.surprise(f"{self.name}: fenced, and told {error!r}")
        elif error.txn_requires_abort():
            self._again(producer.abort_transaction)
        else:
            self.journal.surprise(f"{self.name}: {deed} ends with {error!r}")
            self.producer = None

    def _add_offsets(self, producer: Producer) -> None:
        settings = {"bootstrap.servers": self.broker.bootstrap, "group.id": self.name, "logger": _silent}
        consumer = Consumer(settings | KEEPS_ITS_BROKER)
        topic, index = self.places[0]
        self._again(
            lambda: producer.send_offsets_to_transaction(
                [TopicPartition(topic, index, self.transactions)], consumer.consumer_group_metadata(), PATIENCE_S
            )
        )
        consumer.close()

    def _producer(self, timeout_ms: int) -> Producer:
        producer = Producer(
            {
                "bootstrap.servers": self.broker.bootstrap,
                "transactional.id": self.name,
                "transaction.timeout.ms": timeout_ms,
                "message.timeout.ms": timeout_ms,
                "reconnect.backoff.max.ms": 200,
                "linger.ms": 2,
                "logger": _silent,
            }
            | KEEPS_ITS_BROKER
        )
        self._again(lambda: producer.init_transactions(PATIENCE_S))
        return producer

    def _again(self, call: Callable[[], object]) -> None:
        """Until it does not fail in a way that asks for another attempt."""

        def attempt() -> bool:
            try:
                call()
            except KafkaException as failure:
                if failure.args[0].retriable():
                    return False
                raise
            return True

        wait_until(attempt, PATIENCE_S, f"{self.name}: no end of attempts")


class WireWorker(Worker):
    """By requests of its own: transactions of version 2, each with an epoch of its own."""

    def __init__(
        self, name: str, broker: RunningServer, places: Sequence[Place], journal: Journal, stop: threading.Event
    ) -> None:
        super().__init__(name, broker, places, journal, stop)
        self.client = Wire(broker.host, broker.port)
        self.producer = (-1, -1)

    def close(self) -> None:
        self.client.close()

    def transact(self, deed: str) -> None:
        records = self.records(deed)
        is_short = deed in ("abandon", "come back")
        if self.producer == (-1, -1) or is_short:
            self.producer = self._init(SHORT_TIMEOUT_MS if is_short else TIMEOUT_MS)
        old = self.producer
        written = self._write(records)
        if written is not ErrorCode.NONE:
            self.journal.note(Fate.ABORTED, f"{deed}, cut short", records)
            self.producer = (-1, -1)
            if not is_short:
                self.journal.surprise(f"{self.name}: {deed} cannot write: {written.name}")
        elif deed == "fence":
            self.producer = self._init(TIMEOUT_MS)
            code = self._end(old, committed=True)[0]
            if code is not ErrorCode.PRODUCER_FENCED:
                self.journal.surprise(f"{self.name}: fenced, and told {code.name}")
            self.journal.note(Fate.ABORTED, deed, records)
        elif deed == "abandon":
            self.producer = (-1, -1)
            self.journal.note(Fate.ABORTED, deed, records)
        else:
            self._finish(deed, old, records)

    def _finish(self, deed: str, old: tuple[int, int], records: Sequence[tuple[Place, str]]) -> None:
        """Commit or abort; whoever comes back may find that time was up."""
        if deed == "come back":
            self._stop_set.wait(self.dice.uniform(0, 2 * SHORT_TIMEOUT_MS / 1000))
        code, following = self._end(old, committed=deed != "abort")
        if code is ErrorCode.NONE:
            self.producer = following
            self.journal.note(Fate.ABORTED if deed == "abort" else Fate.COMMITTED, deed, records)
            if deed == "come back":
                self.producer = (-1, -1)
            return
        self.journal.note(Fate.ABORTED, deed, records)
        if deed != "come back" or code is not ErrorCode.PRODUCER_FENCED:
            self.journal.surprise(f"{self.name}: {deed} is told {code.name}")
            self.producer = (-1, -1)
            return
        self.producer = self._init(TIMEOUT_MS, *old)

    def _init(self, timeout_ms: int, producer_id: int = -1, epoch: int = -1) -> tuple[int, int]:
        request = InitProducerIdRequest(
            transactional_id=self.name,
            transaction_timeout_ms=timeout_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        answer = self._ask(request, INIT_VERSION, lambda each: ErrorCode(each.error_code))
        assert answer.error_code == 0, f"{self.name}: {ErrorCode(answer.error_code).name}"
        return answer.producer_id, answer.producer_epoch

    def _write(self, records: Sequence[tuple[Place, str]]) -> ErrorCode:
        for topic, index in dict.fromkeys(place for place, _ in records):
            values = [value for place, value in records if place == (topic, index)]
            data = build_batch(
                [Record(timestamp_ms=1, key=None, value=value.encode(), headers=()) for value in values],
                producer_id=self.producer[0],
                producer_epoch=self.producer[1],
                base_sequence=0,
                transactional=True,
            )
            part = PartitionProduceData(index=index, records=data)
            request = ProduceRequest(
                transactional_id=self.name,
                acks=-1,
                timeout_ms=10_000,
                topic_data=[TopicProduceData(name=topic, partition_data=[part])],
            )
            answer = self._ask(
                request, PRODUCE_VERSION, lambda each: ErrorCode(each.responses[0].partition_responses[0].error_code)
            )
            code = ErrorCode(answer.responses[0].partition_responses[0].error_code)
            if code not in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                return code
        return ErrorCode.NONE

    def _end(self, producer: tuple[int, int], *, committed: bool) -> tuple[ErrorCode, tuple[int, int]]:
        request = EndTxnRequest(
            transactional_id=self.name, producer_id=producer[0], producer_epoch=producer[1], committed=committed
        )
        answer = self._ask(request, END_VERSION, lambda each: ErrorCode(each.error_code))
        return ErrorCode(answer.error_code), (answer.producer_id, answer.producer_epoch)

    def _ask(self, request: Request, version: int, code_of: Callable[[Any], ErrorCode]) -> Any:
        """The answer, once it isn't to come again; a connection that is lost is made anew."""
        found: list[Any] = []

        def attempt() -> bool:
            try:
                found[:] = [self.client.ask(request, version)]
            except OSError:
                self.client.close()
                return False
            return code_of(found[0]) not in COME_AGAIN

        wait_until(attempt, PATIENCE_S, lambda: f"{self.name}: {type(request).__name__} comes to no end: {found}")
        return found[0]
