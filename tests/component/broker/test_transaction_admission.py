"""What Produce and TxnOffsetCommit ask the transaction coordinator, and what offsets may be written by its word."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kavka.broker.coordination.coordinated_log import CoordinatedLog
from kavka.broker.coordination.other_brokers import Codes
from kavka.broker.coordination.transactions import RETRIES, TransactionCoordination
from kavka.broker.coordination.workers import Workers
from kavka.cluster.promise import Promise
from kavka.cluster.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from kavka.coordinator.runtime.append_errors import told_to_clients
from kavka.coordinator.runtime.batches import end_marker
from kavka.coordinator.runtime.result import Producer
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction
from kavka.storage import verification_guards
from kavka.storage.environment import at_once
from tests.support.broker_core import NOW_MS, BrokerCore
from tests.support.partition_logs import batch_of

ME = Producer(7, 0)


@pytest.fixture
def core(tmp_path: Path) -> Iterator[BrokerCore]:
    core = BrokerCore(tmp_path)
    core.create("visits", 2)
    core.create(TRANSACTION_STATE_TOPIC)
    yield core
    core.close()


class Coordinator(TransactionCoordination):
    """The facade over shards that answer `codes` one after the other; time passes when `pass_time` is called."""

    def __init__(self, services: Any, *codes: ErrorCode) -> None:
        self.codes = list(codes)
        self.asked: list[str] = []
        self.waiting: list[Callable[[], None]] = []
        delays = SimpleNamespace(schedule=lambda callback, _delay_ms: self.waiting.append(callback))
        around: Any = SimpleNamespace(delays=delays)
        no_groups: Any = None
        super().__init__(services, no_groups, lambda: around, Workers(at_once, at_once, at_once))

    def run(self, key: str, operation: Any, refused: Any) -> None:
        operation(self)

    def add(self, name: str, _producer: Producer, _partitions: Any, _version: int, reply: Any) -> None:
        self.asked.append("add")
        reply(self.codes.pop(0))

    def verify(self, name: str, _producer: Producer, partitions: Any, reply: Any) -> None:
        self.asked.append("verify")
        reply(dict.fromkeys(partitions, self.codes.pop(0)))

    def pass_time(self) -> None:
        waiting, self.waiting = self.waiting, []
        for callback in waiting:
            callback()


@pytest.mark.parametrize("busy", [0, 1, RETRIES])
def test_partitions_are_added_once_the_transaction_before_is_complete(core: BrokerCore, busy: int) -> None:
    coordinator = Coordinator(core.services, *[ErrorCode.CONCURRENT_TRANSACTIONS] * busy, ErrorCode.NONE)
    answers: list[Any] = []

    coordinator.add_partitions("t", ME, [("visits", 0)], answers.append)
    for _ in range(busy):
        assert answers == []
        coordinator.pass_time()

    assert answers == [{("visits", 0): ErrorCode.NONE}]


def test_the_client_is_told_when_that_takes_too_long(core: BrokerCore) -> None:
    coordinator = Coordinator(core.services, *[ErrorCode.CONCURRENT_TRANSACTIONS] * (RETRIES + 1))
    answers: list[Any] = []
    coordinator.add_partitions("t", ME, [("visits", 0)], answers.append)
    for _ in range(RETRIES):
        coordinator.pass_time()

    assert answers == [{("visits", 0): ErrorCode.CONCURRENT_TRANSACTIONS}]


@pytest.mark.parametrize(
    ("version", "said", "told"),
    [
        (2, ErrorCode.NONE, ErrorCode.NONE),
        (3, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE),
        (4, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
        (5, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_offsets_are_admitted_as_each_version_knows_it(
    core: BrokerCore, version: int, said: ErrorCode, told: ErrorCode
) -> None:
    core.create(GROUP_METADATA_TOPIC)
    coordinator = Coordinator(core.services, said)
    answers: list[ErrorCode] = []

    coordinator.admit_offsets("t", ME, 0, version, lambda code, _guard: answers.append(code))

    assert answers == [told]
    assert coordinator.asked == ["add" if version >= 5 else "verify"]
    assert len(core.log(GROUP_METADATA_TOPIC).producers.verifications) == (told is ErrorCode.NONE)


@pytest.mark.parametrize("busy", [0, 2])
def test_a_coordinator_that_fails_is_an_answer_too(
    core: BrokerCore, caplog: pytest.LogCaptureFixture, busy: int
) -> None:
    coordinator = Coordinator(core.services, *[ErrorCode.CONCURRENT_TRANSACTIONS] * busy)
    answers: list[Any] = []

    coordinator.add_partitions("t", ME, [("visits", 0)], answers.append)
    for _ in range(busy):
        coordinator.pass_time()

    assert answers == [{("visits", 0): ErrorCode.UNKNOWN_SERVER_ERROR}]
    assert "the coordinator failed transactional_id='t'" in caplog.text


def test_no_transaction_is_joined_for_offsets_whose_coordinator_is_elsewhere(core: BrokerCore) -> None:
    coordinator = Coordinator(core.services)
    answers: list[ErrorCode] = []

    for version in (4, 5):
        coordinator.admit_offsets("t", ME, 0, version, lambda code, _guard: answers.append(code))

    assert (answers, coordinator.asked) == ([ErrorCode.NOT_COORDINATOR] * 2, [])


def commit_offsets(core: BrokerCore, guard: int) -> None:
    """As the group coordinator does it."""
    partition = core.replicas.partitions[GROUP_METADATA_TOPIC, 0]
    log = CoordinatedLog(partition, core.services.purgatory, lambda: NOW_MS, lambda: 5_000, at_once)
    log.append(batch_of(b"x", producer_id=7, producer_epoch=0, base_sequence=-1, transactional=True), 0, guard=guard)


def end_offsets(core: BrokerCore, transaction_version: int = 0) -> None:
    partition = core.replicas.partitions[GROUP_METADATA_TOPIC, 0]
    log = CoordinatedLog(partition, core.services.purgatory, lambda: NOW_MS, lambda: 5_000, at_once)
    log.append(end_marker(ME, 5, NOW_MS, committed=True), 0, transaction_version)


def admit(core: BrokerCore, coordinator: Coordinator) -> int:
    """The guard."""
    answers: list[tuple[ErrorCode, int]] = []
    coordinator.admit_offsets("t", ME, 0, 3, lambda code, guard: answers.append((code, guard)))
    ((code, guard),) = answers
    assert code is ErrorCode.NONE
    return guard


@pytest.mark.parametrize("began", [True, False])
@pytest.mark.parametrize("others", [0, 3])
def test_offsets_that_were_admitted_do_not_begin_a_transaction_behind_its_end(
    core: BrokerCore, monkeypatch: pytest.MonkeyPatch, began: bool, others: int
) -> None:
    monkeypatch.setattr(verification_guards, "MAX_VERIFICATIONS", 2)
    core.create(GROUP_METADATA_TOPIC)
    log = core.log(GROUP_METADATA_TOPIC)
    coordinator = Coordinator(core.services, ErrorCode.NONE)
    guard = admit(core, coordinator)
    if began:
        commit_offsets(core, guard)
        guard = admit(core, coordinator)
        commit_offsets(core, guard)
    assert coordinator.asked == ["verify"], "once the transaction is open nobody is asked again"

    end_offsets(core)
    for producer_id in range(others):
        log.verify(100 + producer_id, 0, 0, NOW_MS, has_own_epoch=False)

    with pytest.raises(BrokerError) as caught:
        commit_offsets(core, guard)
    # Where guards were lost meanwhile it might have been a good one: who sent it may try again.
    is_unsure = others and not began
    assert caught.value.code is (ErrorCode.NOT_ENOUGH_REPLICAS if is_unsure else ErrorCode.INVALID_TXN_STATE)
    assert not log.producers.has_open_transaction(*ME)


def test_offsets_whose_admission_was_forgotten_are_admitted_anew(
    core: BrokerCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification_guards, "MAX_VERIFICATIONS", 2)
    core.create(GROUP_METADATA_TOPIC)
    coordinator = Coordinator(core.services, ErrorCode.NONE, ErrorCode.NONE)
    guard = admit(core, coordinator)
    for producer_id in (100, 101):
        core.log(GROUP_METADATA_TOPIC).verify(producer_id, 0, 0, NOW_MS, has_own_epoch=False)

    with pytest.raises(BrokerError) as caught:
        commit_offsets(core, guard)
    assert told_to_clients(caught.value).code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    commit_offsets(core, admit(core, coordinator))
    assert core.log(GROUP_METADATA_TOPIC).producers.has_open_transaction(*ME)


@pytest.mark.parametrize("version", [5, 4])
def test_a_late_marker_leaves_the_next_transactions_offsets_their_guard(core: BrokerCore, version: int) -> None:
    """Only from v5 on has each transaction an epoch of its own, so that it is seen whom the marker means."""
    core.create(GROUP_METADATA_TOPIC)
    coordinator = Coordinator(core.services, *[ErrorCode.CONCURRENT_TRANSACTIONS] * (version == 5), ErrorCode.NONE)
    guards: list[int] = []
    coordinator.admit_offsets("t", ME, 0, version, lambda _code, guard: guards.append(guard))

    end_offsets(core, transaction_version=2)
    coordinator.pass_time()

    (guard,) = guards
    if version == 5:
        commit_offsets(core, guard)
    else:
        with pytest.raises(BrokerError):
            commit_offsets(core, guard)
    assert core.log(GROUP_METADATA_TOPIC).producers.has_open_transaction(*ME) == (version == 5)


def test_offsets_need_no_verification_once_that_is_turned_off(core: BrokerCore) -> None:
    core.create(GROUP_METADATA_TOPIC)
    coordinator = Coordinator(core.services, ErrorCode.NONE)
    commit_offsets(core, admit(core, coordinator))
    end_offsets(core)

    core.services.config.broker_changed(None, {"transaction.partition.verification.enable": "false"})

    commit_offsets(core, admit(core, coordinator))
    assert core.log(GROUP_METADATA_TOPIC).producers.has_open_transaction(*ME)


class Others:
    """Implements OtherBrokers: keeps what they were asked, and answers `codes` one after the other."""

    def __init__(self, *codes: ErrorCode) -> None:
        self.codes = list(codes)
        self.asked: list[tuple[int, AddPartitionsToTxnTransaction]] = []

    def write_markers(self, *_: object) -> Any:
        raise AssertionError("there are no markers here")

    def add_partitions(self, broker_id: int, transaction: AddPartitionsToTxnTransaction) -> Promise[Codes]:
        self.asked.append((broker_id, transaction))
        code = self.codes.pop(0)
        promise: Promise[Codes] = Promise()
        promise.complete({(topic.name, index): code for topic in transaction.topics for index in topic.partitions})
        return promise


ELSEWHERE = 9


@pytest.fixture
def far(core: BrokerCore) -> BrokerCore:
    """The transaction is coordinated by another broker."""
    core.lose(TRANSACTION_STATE_TOPIC, ELSEWHERE, ("far.example", 9092), leader_epoch=1)
    return core


@pytest.mark.parametrize("verify_only", [True, False])
def test_the_broker_that_coordinates_is_asked_wherever_it_is(far: BrokerCore, verify_only: bool) -> None:
    coordinator = Coordinator(far.services)
    coordinator.others = others = Others(ErrorCode.NONE)
    answers: list[Any] = []

    ask = coordinator.verify_partitions if verify_only else coordinator.add_partitions
    ask("t", ME, [("visits", 1), ("clicks", 0), ("visits", 0)], answers.append)

    assert answers == [dict.fromkeys([("visits", 0), ("visits", 1), ("clicks", 0)], ErrorCode.NONE)]
    ((broker_id, transaction),) = others.asked
    assert broker_id == ELSEWHERE
    assert transaction == AddPartitionsToTxnTransaction(
        transactional_id="t",
        producer_id=ME.producer_id,
        producer_epoch=ME.producer_epoch,
        verify_only=verify_only,
        topics=[
            AddPartitionsToTxnTopic(name="clicks", partitions=[0]),
            AddPartitionsToTxnTopic(name="visits", partitions=[0, 1]),
        ],
    )


def test_a_coordinator_elsewhere_that_is_busy_is_asked_again(far: BrokerCore) -> None:
    coordinator = Coordinator(far.services)
    coordinator.others = others = Others(ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NONE)
    answers: list[Any] = []

    coordinator.add_partitions("t", ME, [("visits", 0)], answers.append)
    assert answers == []
    coordinator.pass_time()

    assert answers == [{("visits", 0): ErrorCode.NONE}]
    assert len(others.asked) == 2


def test_this_broker_asks_itself_what_it_coordinates(core: BrokerCore) -> None:
    coordinator = Coordinator(core.services, ErrorCode.NONE, ErrorCode.NONE)
    coordinator.others = others = Others()
    answers: list[Any] = []

    coordinator.verify_partitions("t", ME, [("visits", 0)], answers.append)
    coordinator.add_partitions("t", ME, [("visits", 0)], answers.append)

    assert answers == [{("visits", 0): ErrorCode.NONE}] * 2
    assert others.asked == []


def test_without_a_leader_there_is_no_coordinator_for_a_while(core: BrokerCore) -> None:
    core.lose(TRANSACTION_STATE_TOPIC, -1, ("", 0), leader_epoch=1)
    coordinator = Coordinator(core.services)
    coordinator.others = Others()
    answers: list[Any] = []

    coordinator.verify_partitions("t", ME, [("visits", 0)], answers.append)

    assert answers == [{("visits", 0): ErrorCode.COORDINATOR_NOT_AVAILABLE}]


def test_a_coordinator_that_was_not_reached_is_one_that_loads_to_who_commits_offsets(far: BrokerCore) -> None:
    far.create(GROUP_METADATA_TOPIC)
    coordinator = Coordinator(far.services)
    coordinator.others = Others(ErrorCode.NETWORK_EXCEPTION)
    answers: list[ErrorCode] = []

    coordinator.admit_offsets("t", ME, 0, 4, lambda code, _guard: answers.append(code))

    assert answers == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    assert len(far.log(GROUP_METADATA_TOPIC).producers.verifications) == 0
