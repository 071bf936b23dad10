"""Transactional produce requests: their coordinator is asked once per partition and transaction, then never."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kavka.broker.coordination.workers import Workers
from kavka.broker.metrics.registry import ThreadCells
from kavka.broker.partitions.partition import Partition
from kavka.broker.requests.prepared_produce import PreparedProduces
from kavka.coordinator.runtime.result import Producer
from kavka.protocol.codec import decode
from kavka.protocol.errors import ErrorCode
from kavka.protocol.headers import decode_response_header
from kavka.protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from kavka.protocol.records.batch import Record, build_batch
from kavka.protocol.records.builder import ControlType, build_control_batch
from kavka.storage.append_result import Origin
from tests.support.broker_core import NOW_MS, BrokerCore, produce_frame

ME = Producer(7, 0)
VERSIONS = [3, 8, 9, 10, 11, 12, 13]


class Asked(NamedTuple):
    """A question to the coordinator."""

    adds: bool
    transactional_id: str
    producer: Producer
    partitions: list[tuple[str, int]]
    done: Callable[[dict[tuple[str, int], ErrorCode]], None]

    def answer(self, code: ErrorCode = ErrorCode.NONE) -> None:
        self.done(dict.fromkeys(self.partitions, code))


def at_once(work: Callable[[], None]) -> None:
    work()


class FakeTransactions:
    """Answers each question with `code`, or keeps it for later if that is None."""

    def __init__(self) -> None:
        self.code: ErrorCode | None = ErrorCode.NONE
        self.asked: list[Asked] = []
        self.workers = Workers(at_once, at_once, at_once)

    def add_partitions(self, name: str, producer: Producer, partitions: Any, done: Any) -> None:
        self._ask(Asked(True, name, producer, list(partitions), done))

    def verify_partitions(self, name: str, producer: Producer, partitions: Any, done: Any) -> None:
        self._ask(Asked(False, name, producer, list(partitions), done))

    def _ask(self, asked: Asked) -> None:
        self.asked.append(asked)
        if self.code is not None:
            asked.answer(self.code)


class Stand:
    """A broker's core with a coordinator that does what the test says."""

    def __init__(self, core: BrokerCore) -> None:
        self.core = core
        self.transactions = FakeTransactions()
        services: Any = core.services
        services.transactions = self.transactions
        self._number = 0

    def produce(self, version: int, *batches: bytes, acks: int = -1, name: str | None = "t") -> bytes:
        self._number += 1
        records: dict[tuple[str, int], bytes | None] = {("visits", index): each for index, each in enumerate(batches)}
        return self.core.ask(produce_frame(version, self._number, records, acks=acks, transactional_id=name))

    def codes(self, version: int, *batches: bytes) -> list[ErrorCode]:
        return [ErrorCode(each.error_code) for each in partitions_of(version, self.produce(version, *batches))]

    def mark(self, index: int = 0, epoch: int = 0) -> None:
        marker = build_control_batch(
            ControlType.COMMIT, timestamp_ms=NOW_MS, producer_id=7, producer_epoch=epoch, coordinator_epoch=0
        )
        partition = self.core.replicas.partitions["visits", index]
        partition.append(memoryview(bytearray(marker)), -1, 12, NOW_MS, Origin.COORDINATOR)


def partitions_of(version: int, answer: bytes) -> list[PartitionProduceResponse]:
    _, position = decode_response_header(0, version, answer[4:])
    response = decode(ProduceResponse, version, memoryview(answer)[4 + position :])
    return [part for topic in response.responses for part in topic.partition_responses]


def batch(sequence: int = 0, producer: Producer = ME, *, transactional: bool = True) -> bytes:
    return build_batch(
        [Record(timestamp_ms=NOW_MS, key=b"k", value=b"v")],
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=sequence,
        transactional=transactional,
    )


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    core = BrokerCore(tmp_path)
    core.create("visits", 2)
    yield Stand(core)
    core.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_the_first_batch_is_asked_about_and_the_next_ones_are_not(stand: Stand, version: int) -> None:
    for sequence in range(4):
        assert stand.codes(version, batch(sequence)) == [ErrorCode.NONE]

    (asked,) = stand.transactions.asked
    assert asked[:4] == (version >= 12, "t", ME, [("visits", 0)])
    assert stand.core.log("visits").log_end_offset == 4
    assert stand.core.log("visits").last_stable_offset == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_each_transaction_is_asked_about_anew(stand: Stand, version: int) -> None:
    stand.codes(version, batch(0))
    stand.mark()
    assert stand.codes(version, batch(1)) == [ErrorCode.NONE]

    assert len(stand.transactions.asked) == 2


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (ErrorCode.TRANSACTION_ABORTABLE, {3: ErrorCode.INVALID_TXN_STATE, 11: ErrorCode.TRANSACTION_ABORTABLE}),
        (ErrorCode.PRODUCER_FENCED, {3: ErrorCode.INVALID_PRODUCER_EPOCH}),
        (ErrorCode.CONCURRENT_TRANSACTIONS, {3: ErrorCode.NOT_ENOUGH_REPLICAS, 12: ErrorCode.CONCURRENT_TRANSACTIONS}),
        (ErrorCode.NETWORK_EXCEPTION, {3: ErrorCode.NOT_ENOUGH_REPLICAS}),
        (ErrorCode.NOT_COORDINATOR, {3: ErrorCode.NOT_ENOUGH_REPLICAS}),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, {3: ErrorCode.NOT_ENOUGH_REPLICAS}),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, {3: ErrorCode.NOT_ENOUGH_REPLICAS}),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, {3: ErrorCode.INVALID_PRODUCER_ID_MAPPING}),
    ],
)
def test_what_the_coordinator_refuses_is_told_as_each_version_knows_it(
    stand: Stand, said: ErrorCode, told: dict[int, ErrorCode]
) -> None:
    """`told`: from which version on it is told so."""
    stand.transactions.code = said
    for version in VERSIONS:
        (answer,) = partitions_of(version, stand.produce(version, batch()))
        assert answer.error_code == told[max(since for since in told if since <= version)]
        assert answer.base_offset == -1
    assert stand.core.log("visits").log_end_offset == 0
    assert len(stand.core.log("visits").producers.verifications) == 0


def test_only_the_partitions_that_need_it_are_asked_about(stand: Stand) -> None:
    stand.codes(12, batch(0))
    assert stand.codes(12, batch(1), batch(0)) == [ErrorCode.NONE, ErrorCode.NONE]

    assert [asked.partitions for asked in stand.transactions.asked] == [[("visits", 0)], [("visits", 1)]]


@pytest.mark.parametrize("version", [11, 12])
def test_the_connection_waits_for_the_coordinator(stand: Stand, version: int) -> None:
    stand.transactions.code = None

    assert stand.produce(version, batch(0)) == b""
    assert stand.produce(version, batch(1)) == b""
    (asked,) = stand.transactions.asked
    before = len(stand.core.socket.taken)
    asked.answer()
    stand.core.stage.settle()

    assert len(stand.transactions.asked) == 1
    taken = bytes(stand.core.socket.taken[before:])
    size = int.from_bytes(taken[:4], "big") + 4
    offsets = [partitions_of(version, each)[0].base_offset for each in (taken[:size], taken[size:])]
    assert offsets == [0, 1]


def test_a_late_answer_leaves_the_append_to_a_thread_that_may_wait(stand: Stand) -> None:
    waiting: list[Callable[[], None]] = []
    stand.transactions.workers = stand.transactions.workers._replace(appends=waiting.append)
    stand.transactions.code = None
    stand.produce(11, batch(0))

    stand.transactions.asked[0].answer()
    assert stand.core.log("visits").log_end_offset == 0
    (work,) = waiting
    work()

    assert stand.core.log("visits").log_end_offset == 1


def test_a_transaction_that_ended_while_the_coordinator_was_asked_is_not_begun_again(stand: Stand) -> None:
    stand.transactions.code = None
    stand.produce(11, batch(0))
    stand.mark()
    before = len(stand.core.socket.taken)
    stand.transactions.asked[0].answer()
    stand.core.stage.settle()

    (answer,) = partitions_of(11, bytes(stand.core.socket.taken[before:]))
    assert answer.error_code == ErrorCode.INVALID_TXN_STATE
    assert stand.core.log("visits").last_stable_offset == 1


def test_acks_0_gets_no_answer_but_a_closed_connection(stand: Stand) -> None:
    assert stand.produce(12, batch(0), acks=0) == b""
    assert not stand.core.socket.closed
    stand.transactions.code = ErrorCode.PRODUCER_FENCED
    assert stand.produce(12, batch(0, Producer(8, 0)), acks=0) == b""
    assert stand.core.socket.closed


@pytest.mark.parametrize("later", [False, True])
def test_an_append_that_fails_once_it_is_verified_is_answered(
    stand: Stand, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, later: bool
) -> None:
    append = Partition.append

    def fails(partition: Partition, *arguments: Any, **more: Any) -> Any:
        if partition.index == 0:
            raise ZeroDivisionError
        return append(partition, *arguments, **more)

    monkeypatch.setattr(Partition, "append", fails)
    stand.transactions.code = None if later else ErrorCode.NONE
    answer = stand.produce(12, batch(0), batch(0))
    if later:
        before = len(stand.core.socket.taken)
        stand.transactions.asked[0].answer()
        stand.core.stage.settle()
        answer = bytes(stand.core.socket.taken[before:])

    codes = [each.error_code for each in partitions_of(12, answer)]
    assert codes == [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE], "the other partition's batch is appended"
    assert "could not be appended topic=visits partition=0" in caplog.text
    monkeypatch.undo()
    stand.transactions.code = ErrorCode.NONE
    assert stand.codes(12, batch(0), batch(1)) == [ErrorCode.NONE] * 2, "and the connection's next request runs"


def test_an_answer_that_cannot_be_used_leaves_nobody_waiting(stand: Stand) -> None:
    stand.transactions.code = None
    stand.produce(12, batch(0))
    before = len(stand.core.socket.taken)

    with pytest.raises(KeyError):
        stand.transactions.asked[0].done({})
    stand.core.stage.settle()

    (answer,) = partitions_of(12, bytes(stand.core.socket.taken[before:]))
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_batches_of_two_producers_are_refused_together(stand: Stand) -> None:
    assert stand.codes(12, batch(0), batch(0, Producer(8, 0))) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2
    assert stand.transactions.asked == []
    assert stand.core.log("visits").log_end_offset == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_batches_outside_transactions_are_not_asked_about(stand: Stand, version: int) -> None:
    assert stand.codes(version, batch(0, transactional=False)) == [ErrorCode.NONE]
    assert stand.transactions.asked == []


@pytest.mark.parametrize("version", VERSIONS)
def test_without_verification_only_version_2_asks(tmp_path: Path, version: int) -> None:
    core = BrokerCore(tmp_path, "transaction.partition.verification.enable=false")
    core.create("visits", 2)
    stand = Stand(core)

    assert stand.codes(version, batch(0)) == [ErrorCode.NONE]

    assert len(stand.transactions.asked) == (version >= 12)
    core.close()


@pytest.mark.parametrize("version", [9, 12, 13])
def test_an_open_transaction_goes_the_short_way_and_its_end_is_noticed(
    stand: Stand, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = []
    for sequence in range(3):
        stand.codes(version, batch(sequence))
    run = PreparedProduces.run

    def watched(self: PreparedProduces, frame: memoryview, cells: ThreadCells, may_wait: bool) -> Any:
        answer = run(self, frame, cells, may_wait)
        short.append(answer is not None)
        return answer

    monkeypatch.setattr(PreparedProduces, "run", watched)
    assert stand.codes(version, batch(3)) == [ErrorCode.NONE]
    stand.mark()
    assert stand.codes(version, batch(4)) == [ErrorCode.NONE]
    stand.transactions.code = ErrorCode.TRANSACTION_ABORTABLE
    stand.mark()
    (refused,) = stand.codes(version, batch(5))

    assert short == [True, False, False]
    assert refused in (ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE)
    assert len(stand.transactions.asked) == 3


@pytest.mark.parametrize("version", [9, 12])
def test_a_shape_without_a_transactional_id_takes_no_transactional_batch(stand: Stand, version: int) -> None:
    stand.produce(version, batch(0, Producer(9, 0), transactional=False), name=None)
    (answer,) = partitions_of(version, stand.produce(version, batch(0), name=None))

    assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_nothing_is_answered_after_a_batch_without_an_answer_that_is_refused_later(stand: Stand) -> None:
    stand.transactions.code = None
    core = stand.core
    other = produce_frame(9, 2, {("visits", 1): batch(producer=Producer(-1, -1), sequence=-1, transactional=False)})
    first = produce_frame(9, 1, {("visits", 0): batch()}, acks=0, transactional_id="t")
    assert core.ask(first, other) == b""

    stand.transactions.asked.pop().answer(ErrorCode.INVALID_TXN_STATE)
    while core.stage.run_one():
        # The I/O threads are faster than the network thread, which has to close the connection.
        pass
    core.stage.settle()

    assert (bytes(core.socket.taken), core.socket.closed) == (b"", True)
    assert core.log("visits", 1).log_end_offset == 0
