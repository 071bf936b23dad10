"""A transaction shard on stage: producer ids come when told, markers are kept until they are answered.

stage = TransactionStage()
producer = stage.init("t")
stage.add("t", producer, ("visits", 0))
ended = stage.end("t", producer, committed=True)
stage.mark()
assert stage.state("t") == "CompleteCommit"
"""

from collections.abc import Callable, Mapping
from operator import methodcaller
from typing import Any

from kavka.coordinator.runtime.result import Producer
from kavka.coordinator.transaction.completion import MarkerAnswer
from kavka.coordinator.transaction.metadata import TopicPartition
from kavka.coordinator.transaction.ports import MarkersWanted, ProducerIdWanted
from kavka.coordinator.transaction.shard import TransactionShard
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.internal.transaction_records import TRANSACTION_RECORDS
from kavka.protocol.messages.end_txn import EndTxnRequest
from kavka.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.support.coordinator_stage import Asked, Stage

FIRST_PRODUCER_ID = 1000
TIMEOUT_MS = 60_000
V1, V2 = 0, 2


class Ports:
    """Implements TransactionPorts: keeps what was wanted."""

    def __init__(self) -> None:
        self.transaction_version = 2
        self.ids: list[ProducerIdWanted] = []
        self.markers: list[MarkersWanted] = []

    def give_producer_id(self, wanted: ProducerIdWanted) -> None:
        self.ids.append(wanted)

    def write_markers(self, wanted: MarkersWanted) -> None:
        self.markers.append(wanted)


class TransactionStage(Stage[TransactionShard]):
    """With `gives_ids` (the default) producer ids come at once; else by `give_id` and `refuse_id`."""

    def __init__(self, settings: Mapping[str, str] | None = None, *, gives_ids: bool = True) -> None:
        self.ports = Ports()
        self.gives_ids = gives_ids
        self.next_id = FIRST_PRODUCER_ID
        self.written: list[tuple[MarkersWanted, TopicPartition]] = []
        """Markers that stand."""
        super().__init__(
            lambda context: TransactionShard(context, self.ports), settings, record_types=TRANSACTION_RECORDS
        )

    # Requests.

    def ask_init(
        self, name: str, known: Producer | None = None, *, timeout_ms: int = TIMEOUT_MS, fails: ErrorCode | None = None
    ) -> Asked:
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout_ms)
        if known is not None:
            request.producer_id, request.producer_epoch = known
        if fails is not None:
            self.fail_next_append(fails)
        asked = self.ask(lambda shard, reply: shard.init_producer_id(request, reply))
        if self.gives_ids and self.ports.ids:
            self.give_id()
        return asked

    def init(self, name: str, known: Producer | None = None, *, timeout_ms: int = TIMEOUT_MS) -> Producer:
        answer = self.ask_init(name, known, timeout_ms=timeout_ms).answer
        assert not isinstance(answer, ErrorCode), answer
        return Producer(answer.producer_id, answer.producer_epoch)

    def ask_add(self, name: str, producer: Producer, *partitions: TopicPartition, version: int = V2) -> Asked:
        return self.ask(lambda shard, reply: shard.add(name, producer, partitions, version, reply))

    def add(self, name: str, producer: Producer, *partitions: TopicPartition, version: int = V2) -> None:
        assert self.ask_add(name, producer, *partitions, version=version).answer is ErrorCode.NONE

    def verify(self, name: str, producer: Producer, *partitions: TopicPartition) -> dict[TopicPartition, ErrorCode]:
        answer: dict[TopicPartition, ErrorCode] = self.ask(
            lambda shard, reply: shard.verify(name, producer, partitions, reply)
        ).answer
        return answer

    def ask_end(self, name: str, producer: Producer, *, committed: bool, version: int = V2) -> Asked:
        request = EndTxnRequest(
            transactional_id=name,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            committed=committed,
        )
        asked = self.ask(lambda shard, reply: shard.end(request, version, reply))
        if self.gives_ids and self.ports.ids:
            self.give_id()
        return asked

    def end(self, name: str, producer: Producer, *, committed: bool, version: int = V2) -> Producer:
        """The producer as it goes on."""
        answer = self.ask_end(name, producer, committed=committed, version=version).answer
        assert not isinstance(answer, ErrorCode), answer
        return Producer(answer.producer_id, answer.producer_epoch)

    # What the broker does.

    def advance(self, by_ms: float) -> None:
        """Let time pass; what the timers want an id for gets one."""
        super().advance(by_ms)
        while self.gives_ids and self.ports.ids:
            self.give_id()

    def give_id(self) -> None:
        wanted = self.ports.ids.pop(0)
        producer_id, self.next_id = self.next_id, self.next_id + 1
        self.run(lambda shard: shard.producer_id_given(wanted, producer_id), _told(wanted.refuse))

    def refuse_id(self, code: ErrorCode = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) -> None:
        wanted = self.ports.ids.pop(0)
        self.run(lambda shard: shard.producer_id_refused(wanted, BrokerError(code)), _told(wanted.refuse))

    def mark(self, codes: Mapping[TopicPartition, ErrorCode] | None = None) -> None:
        """Answer the markers that are waiting: they stand, unless `codes` says otherwise."""
        waiting, self.ports.markers[:] = list(self.ports.markers), []
        for wanted in waiting:
            answers = []
            for topic, index in wanted.partitions:
                code = (codes or {}).get((topic, index), ErrorCode.NONE)
                if code is ErrorCode.NONE:
                    self.written.append((wanted, (topic, index)))
                answers.append(MarkerAnswer(topic, index, code))
            self.run(methodcaller("markers_answered", wanted, answers))

    # What there is.

    def producer(self, name: str) -> Producer:
        transaction = self.shard.transactions[name]
        return Producer(transaction.producer_id, transaction.producer_epoch)

    def state(self, name: str) -> str:
        return self.shard.transactions[name].state.text

    def facts(self) -> dict[str, tuple[Any, ...]]:
        """All that the log must say of each id, to compare shards."""
        return facts_of(self.shard)


def facts_of(shard: TransactionShard) -> dict[str, tuple[Any, ...]]:
    return {
        name: (
            each.producer_id,
            each.previous_producer_id,
            each.next_producer_id,
            each.producer_epoch,
            each.timeout_ms,
            each.state,
            each.partitions,
            each.start_ms,
            each.last_update_ms,
            each.client_transaction_version,
        )
        for name, each in shard.transactions.items()
    }


def _told(refuse: Callable[[BrokerError], object]) -> Callable[[BrokerError], None]:
    def told(error: BrokerError) -> None:
        refuse(error)

    return told
