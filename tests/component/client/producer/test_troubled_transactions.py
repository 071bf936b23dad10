"""Transactions of programs that lock in callbacks, meet errors half way, and are slow to end."""

import random
import threading

import pytest

from kavka.client.api_errors import AbortableError, KafkaError
from kavka.client.consumer.group.port import ConsumerGroupMetadata, OffsetAndMetadata
from kavka.client.producer.delivery import RecordMetadata
from kavka.client.producer.transactions import Transactions
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.api import ApiKey
from kavka.protocol.errors import ErrorCode
from tests.component.client.producer.simulated_cluster import SimulatedCluster
from tests.component.client.producer.simulated_coordinator import GROUP, SimulatedCoordinator
from tests.component.client.producer.simulated_producer import SimulatedProducer
from tests.component.client.producer.test_simulated_faults import SMALL

TIMEOUT_S = 60.0


class Program:
    """One producer with transactions, and steps of the world's that all succeed."""

    def __init__(self, *, is_v2: bool, delivery_timeout_ms: float = 30_000) -> None:
        self.cluster = SimulatedCluster(random.Random(1))
        self.coordinator = SimulatedCoordinator(self.cluster, random.Random(1), is_v2=is_v2)
        accumulator = SMALL._replace(delivery_timeout_ms=delivery_timeout_ms)
        self.producer = SimulatedProducer(self.cluster, accumulator=accumulator, transactional=True)
        transactions = self.producer.transactions
        assert transactions is not None
        self.transactions: Transactions = transactions

    def go_on(self, steps: int = 200) -> None:
        for _ in range(steps):
            self.producer.step()
            self.producer.now_ms += 10

    def initialize(self) -> None:
        result = self.transactions.initialize()
        self.go_on()
        result.get()


@pytest.fixture(params=[False, True], ids=["v1", "v2"])
def program(request: pytest.FixtureRequest) -> Program:
    return Program(is_v2=request.param)


def test_a_callback_may_wait_for_a_thread_that_sends(program: Program) -> None:
    """The transaction is aborted, and what was not sent fails: its callback waits for a program's other thread."""
    program.initialize()
    transactions = program.transactions
    transactions.begin()
    was_called, has_sent = threading.Event(), threading.Event()
    waited: list[bool] = []

    def called(_metadata: RecordMetadata, _error: KafkaError | None) -> None:
        was_called.set()
        waited.append(has_sent.wait(TIMEOUT_S))

    def other() -> None:
        was_called.wait(TIMEOUT_S)
        with pytest.raises(KafkaError):
            transactions.check_open()
        has_sent.set()

    topic = program.producer.accumulator.topic("birds", program.producer.metadata.cluster)
    assert topic is not None
    now_ms = program.producer.now_ms
    program.producer.accumulator.append(topic, topic.queues[0], 1, None, b"x", (), called, now_ms)
    thread = threading.Thread(target=other, daemon=True)
    thread.start()
    transactions.abort()
    program.go_on(3)
    thread.join(TIMEOUT_S)
    assert waited == [True]


def test_a_record_that_meets_an_error_on_its_way_in_is_told_of_once(program: Program) -> None:
    program.initialize()
    transactions, producer = program.transactions, program.producer
    transactions.begin()
    transactions.check_open()
    transactions.batch_failed(AbortableError("another record failed"))
    value = producer.send(0)
    assert producer.outcomes[value] == []
    program.go_on(3)
    assert len(producer.outcomes[value]) == 1
    assert producer.futures[value].done()
    producer.check_callbacks()


def test_a_batch_that_expires_while_its_transaction_is_aborted_does_not_harm_the_next() -> None:
    program = Program(is_v2=False, delivery_timeout_ms=500)
    program.initialize()
    transactions, producer, cluster = program.transactions, program.producer, program.cluster
    transactions.begin()
    producer.send(0)
    program.go_on(10)
    cluster.refuse = lambda _: ErrorCode.NOT_ENOUGH_REPLICAS
    lost = producer.send(0)
    program.go_on(5)
    aborted = transactions.abort()
    program.go_on(100)
    cluster.refuse = lambda _: ErrorCode.NONE
    program.go_on(100)
    aborted.get()
    assert producer.outcomes[lost][0][1] is not None
    transactions.begin()
    kept = producer.send(0)
    committed = transactions.commit()
    program.go_on()
    committed.get()
    assert program.coordinator.committed[0] == [kept]


@pytest.mark.parametrize("joins", ["partitions", "offsets"])
@pytest.mark.parametrize("has_arrived", [True, False], ids=["arrived", "lost"])
def test_an_abort_ends_what_may_have_begun(joins: str, has_arrived: bool) -> None:
    """The request that begins it has no answer, and an error comes before it is sent again. Were the coordinator's left
    open, the epoch after the abort would fence the producer.
    """
    program = Program(is_v2=False)
    program.initialize()
    transactions, cluster = program.transactions, program.cluster
    epoch = program.coordinator.epoch
    transactions.begin()
    begins: int = ApiKey.ADD_PARTITIONS_TO_TXN
    if joins == "partitions":
        program.producer.send(0)
    else:
        begins = ApiKey.ADD_OFFSETS_TO_TXN
        offsets = {TopicPartition("sources", 0): OffsetAndMetadata(3)}
        transactions.send_offsets(offsets, ConsumerGroupMetadata(GROUP))
    program.producer.work()
    coordinator = cluster.connections[program.coordinator.node]
    assert [sent.api_key for sent in coordinator.requests] == [begins]
    if has_arrived:
        cluster.run_next(program.coordinator.node)
    assert program.coordinator.is_ongoing == has_arrived
    transactions.batch_failed(AbortableError("a record was refused"))
    cluster.cut(program.coordinator.node)
    aborted = transactions.abort()
    program.go_on()
    aborted.get()
    assert not program.coordinator.is_ongoing
    assert program.coordinator.epoch == epoch + 1
    transactions.begin()
    kept = program.producer.send(0)
    committed = transactions.commit()
    program.go_on()
    committed.get()
    assert program.coordinator.committed[0] == [kept]


@pytest.mark.parametrize("refused", [ErrorCode.NONE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])
def test_other_offsets_after_a_call_that_was_not_waited_for_are_committed(program: Program, refused: ErrorCode) -> None:
    """The call timed out, and the program has read on before it calls again: the former goes on, and comes first."""
    program.initialize()
    transactions, coordinator = program.transactions, program.coordinator
    answers = [refused]
    coordinator._trouble = lambda *_: answers.pop() if answers else 0  # type: ignore[method-assign]  # one refusal, and no more
    transactions.begin()
    sources = [TopicPartition("sources", number) for number in range(2)]
    group = ConsumerGroupMetadata(GROUP)
    former = transactions.send_offsets(dict.fromkeys(sources, OffsetAndMetadata(3)), group)
    later = {sources[0]: OffsetAndMetadata(5)}
    newer = transactions.send_offsets(later, group)
    assert transactions.send_offsets(dict(later), group) is newer
    program.go_on()
    assert former.is_done
    newer.get()
    committed = transactions.commit()
    program.go_on()
    committed.get()
    assert coordinator.committed_offsets == {0: 5, 1: 3}


def test_a_close_that_waits_for_records_alone_does_not_spin(program: Program) -> None:
    program.initialize()
    program.transactions.begin()
    program.producer.send(0)
    program.go_on(50)
    program.producer.sender.closing(program.producer.now_ms)
    program.cluster.not_ready = set(program.cluster.nodes)
    program.producer.now_ms += 60_000
    assert program.producer.ids is not None
    assert program.producer.ids.work(program.producer.now_ms) > 0
