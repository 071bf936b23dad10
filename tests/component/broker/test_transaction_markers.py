"""Markers on their way to partitions' leaders, and what Produce and TxnOffsetCommit ask the coordinator."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kavka.broker.coordination.markers import LocalMarkerChannel, MarkerDispatch, MarkerWriter
from kavka.broker.coordination.partition_log import CoordinatedLog
from kavka.broker.coordination.transactions import RETRIES, TransactionCoordination
from kavka.broker.partition import Partition
from kavka.cluster.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from kavka.coordinator.runtime.append_errors import told_to_clients
from kavka.coordinator.runtime.batches import end_marker
from kavka.coordinator.runtime.result import Producer
from kavka.coordinator.transaction.completion import MarkerAnswer
from kavka.coordinator.transaction.metadata import TopicPartition
from kavka.coordinator.transaction.ports import MarkersWanted, ProducerIdWanted
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from kavka.storage import verification
from kavka.storage.appending import Origin
from kavka.storage.environment import at_once
from tests.support.broker_core import NOW_MS, BrokerCore
from tests.support.broker_handlers import BROKER_ID, update_metadata
from tests.support.partition_logs import batch_of

ME = Producer(7, 0)


def wanted(*partitions: TopicPartition, committed: bool = True, epoch: int = 0, version: int = 0) -> MarkersWanted:
    return MarkersWanted(3, "t", 7, epoch, 5, committed, version, partitions, None)


class Channel:
    """Implements MarkerChannel: keeps requests until they are answered."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, WriteTxnMarkersRequest, Callable[[Any], None]]] = []

    def write_markers(self, broker_id: int, request: WriteTxnMarkersRequest, done: Callable[[Any], None]) -> None:
        self.sent.append((broker_id, request, done))


@pytest.fixture
def core(tmp_path: Path) -> Iterator[BrokerCore]:
    core = BrokerCore(tmp_path)
    core.create("visits", 2)
    core.create(TRANSACTION_STATE_TOPIC)
    yield core
    core.close()


def send(core: BrokerCore, channel: Any, what: MarkersWanted) -> list[list[MarkerAnswer]]:
    answers: list[list[MarkerAnswer]] = []
    MarkerDispatch(core.services, channel).send(what, answers.append)
    return answers


def local(core: BrokerCore) -> LocalMarkerChannel:
    return LocalMarkerChannel(BROKER_ID, MarkerWriter(core.services, at_once))


def begin(core: BrokerCore, index: int = 0) -> None:
    core.log("visits", index).append_as_leader(
        batch_of(b"x", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True),
        leader_epoch=0,
        now_ms=NOW_MS,
    )


@pytest.mark.parametrize("committed", [True, False])
def test_markers_end_the_transactions_of_all_partitions(core: BrokerCore, committed: bool) -> None:
    for index in (0, 1):
        begin(core, index)
        core.replicas.partitions["visits", index].leader_log().advance_high_watermark(1)
    assert core.log("visits").last_stable_offset == 0

    (answers,) = send(core, local(core), wanted(("visits", 0), ("visits", 1), committed=committed))

    assert set(answers) == {MarkerAnswer("visits", index, ErrorCode.NONE) for index in (0, 1)}
    for index in (0, 1):
        assert core.log("visits", index).last_stable_offset == 2
        assert len(core.log("visits", index).aborted_transactions(0, 2)) == (not committed)


def test_each_leader_is_asked_once_and_answers_for_its_own(core: BrokerCore) -> None:
    core.services.metadata.apply(update_metadata({"far": [9, 9], "lost": [-1]}))
    channel = Channel()
    partitions = [("visits", 0), ("far", 0), ("far", 1), ("lost", 0), ("gone", 0), ("visits", 7)]

    answers = send(core, channel, wanted(*partitions))

    assert answers == []
    assert [(broker, request.markers[0].topics[0].name) for broker, request, _ in channel.sent] == [
        (BROKER_ID, "visits"),
        (9, "far"),
    ]
    channel.sent[1][2](BrokerError(ErrorCode.NETWORK_EXCEPTION))
    MarkerWriter(core.services, at_once).write(channel.sent[0][1], channel.sent[0][2])
    (of_all,) = answers
    assert {(answer.topic, answer.partition): answer.code for answer in of_all} == {
        ("visits", 0): ErrorCode.NONE,
        ("far", 0): ErrorCode.NETWORK_EXCEPTION,
        ("far", 1): ErrorCode.NETWORK_EXCEPTION,
        ("lost", 0): ErrorCode.LEADER_NOT_AVAILABLE,
        ("gone", 0): ErrorCode.UNKNOWN_TOPIC_ID,
        ("visits", 7): ErrorCode.UNKNOWN_TOPIC_ID,
    }


def test_a_broker_that_knows_no_topics_yet_takes_none_for_deleted(tmp_path: Path) -> None:
    core = BrokerCore(tmp_path)

    (answers,) = send(core, local(core), wanted(("visits", 0)))

    assert [answer.code for answer in answers] == [ErrorCode.LEADER_NOT_AVAILABLE]
    core.close()


def test_there_is_no_way_to_another_broker(core: BrokerCore) -> None:
    core.services.metadata.apply(update_metadata({"far": [9]}))

    (answers,) = send(core, local(core), wanted(("far", 0)))

    assert [answer.code for answer in answers] == [ErrorCode.BROKER_NOT_AVAILABLE]


def test_a_marker_that_cannot_even_be_tried_is_answered_and_keeps_no_other(
    core: BrokerCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a mistake")

    append = Partition.append

    def append_to_one(partition: Partition, *args: Any, **options: Any) -> Any:
        return append(partition, *args, **options) if partition.index else broken()

    monkeypatch.setattr(Partition, "append", append_to_one)
    (answers,) = send(core, local(core), wanted(("visits", 0), ("visits", 1)))
    assert [answer.code for answer in answers] == [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE]

    (answers,) = send(core, SimpleNamespace(write_markers=broken), wanted(("visits", 0)))
    assert [answer.code for answer in answers] == [ErrorCode.UNKNOWN_SERVER_ERROR]


def test_a_marker_waits_for_the_in_sync_replicas(core: BrokerCore) -> None:
    core.create("visits", 2, leader_epoch=1, isr=(BROKER_ID, 2))

    answers = send(core, local(core), wanted(("visits", 0)))

    assert answers == []
    core.replicas.partitions["visits", 0].follower_fetched(2, 1, NOW_MS)
    assert [answer.code for answer in answers[0]] == [ErrorCode.NONE]


def test_no_sender_of_markers_waits_for_their_fsyncs(tmp_path: Path) -> None:
    core = BrokerCore(tmp_path)
    core.create(TRANSACTION_STATE_TOPIC)
    core.create("visits", 2)
    jobs: list[Callable[[], None]] = []
    channel = LocalMarkerChannel(BROKER_ID, MarkerWriter(core.services, jobs.append))
    for index in (0, 1):
        core.log("visits", index).flush_beyond = 0
        core.log("visits", index).flushes_by_count = True

    first = send(core, channel, wanted(("visits", 0), ("visits", 1)))
    second = send(core, channel, wanted(("visits", 0), epoch=1))
    ends = [core.log("visits", index).log_end_offset for index in (0, 1)]

    assert (first, second, ends) == ([], [], [2, 1])
    assert len(jobs) == 2, "a partition's markers share a flush"
    for job in jobs:
        job()
    assert [answer.code for answer in first[0] + second[0]] == [ErrorCode.NONE] * 3
    core.close()


def test_a_stale_marker_is_refused(core: BrokerCore) -> None:
    begin(core)

    (strict,) = send(core, local(core), wanted(("visits", 0), version=2))
    assert strict[0].code is ErrorCode.INVALID_PRODUCER_EPOCH
    (bumped,) = send(core, local(core), wanted(("visits", 0), version=2, epoch=1))
    assert bumped[0].code is ErrorCode.NONE
    (old,) = send(core, local(core), wanted(("visits", 0)))
    assert old[0].code is ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (None, ErrorCode.NONE),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_the_group_coordinator_takes_markers_for_offsets_in(
    core: BrokerCore, said: ErrorCode | None, told: ErrorCode
) -> None:
    core.create(GROUP_METADATA_TOPIC)
    ended: list[tuple[Any, ...]] = []

    def end(partition: int, producer: Producer, epoch: int, committed: bool, reply: Any, version: int) -> None:
        ended.append((partition, producer, epoch, committed, version))
        reply(None if said is None else BrokerError(said))

    services: Any = core.services
    services.groups = SimpleNamespace(runtime=SimpleNamespace(end_transaction=end))

    (answers,) = send(core, local(core), wanted((GROUP_METADATA_TOPIC, 0), version=2))

    assert ended == [(0, ME, 5, True, 2)]
    assert answers == [MarkerAnswer(GROUP_METADATA_TOPIC, 0, told)]
    assert core.log(GROUP_METADATA_TOPIC).log_end_offset == 0


class Coordinator(TransactionCoordination):
    """The facade over shards that answer `codes` one after the other; time passes when `pass_time` is called."""

    def __init__(self, services: Any, *codes: ErrorCode) -> None:
        self.codes = list(codes)
        self.asked: list[str] = []
        self.waiting: list[Callable[[], None]] = []
        delays = SimpleNamespace(schedule=lambda callback, _delay_ms: self.waiting.append(callback))
        around: Any = SimpleNamespace(delays=delays, execute=lambda work: work())
        super().__init__(services, lambda: around)

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


def commit_offsets(core: BrokerCore, guard: int) -> None:
    """As the group coordinator does it."""
    partition = core.replicas.partitions[GROUP_METADATA_TOPIC, 0]
    log = CoordinatedLog(partition, core.services.purgatory, lambda: NOW_MS, lambda: 5_000, at_once)
    log.append(batch_of(b"x", producer_id=7, producer_epoch=0, base_sequence=-1, transactional=True), 0, guard=guard)


def end_offsets(core: BrokerCore) -> None:
    marker = end_marker(ME, 5, NOW_MS, committed=True)
    core.log(GROUP_METADATA_TOPIC).append_as_leader(marker, leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR)


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
    monkeypatch.setattr(verification, "MAX_VERIFICATIONS", 2)
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
        log.verify(100 + producer_id, 0, 0, NOW_MS, starts_at_zero=False)

    with pytest.raises(BrokerError) as caught:
        commit_offsets(core, guard)
    # Where guards were lost meanwhile it might have been a good one: who sent it may try again.
    is_unsure = others and not began
    assert caught.value.code is (ErrorCode.NOT_ENOUGH_REPLICAS if is_unsure else ErrorCode.INVALID_TXN_STATE)
    assert not log.producers.has_open_transaction(*ME)


def test_offsets_whose_admission_was_forgotten_are_admitted_anew(
    core: BrokerCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification, "MAX_VERIFICATIONS", 2)
    core.create(GROUP_METADATA_TOPIC)
    coordinator = Coordinator(core.services, ErrorCode.NONE, ErrorCode.NONE)
    guard = admit(core, coordinator)
    for producer_id in (100, 101):
        core.log(GROUP_METADATA_TOPIC).verify(producer_id, 0, 0, NOW_MS, starts_at_zero=False)

    with pytest.raises(BrokerError) as caught:
        commit_offsets(core, guard)
    assert told_to_clients(caught.value).code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    commit_offsets(core, admit(core, coordinator))
    assert core.log(GROUP_METADATA_TOPIC).producers.has_open_transaction(*ME)


def test_offsets_need_no_verification_once_that_is_turned_off(core: BrokerCore) -> None:
    core.create(GROUP_METADATA_TOPIC)
    coordinator = Coordinator(core.services, ErrorCode.NONE)
    commit_offsets(core, admit(core, coordinator))
    end_offsets(core)

    core.services.config.broker_changed(None, {"transaction.partition.verification.enable": "false"})

    commit_offsets(core, admit(core, coordinator))
    assert core.log(GROUP_METADATA_TOPIC).producers.has_open_transaction(*ME)


def test_a_producer_id_comes_to_the_shard_or_the_refusal_does(core: BrokerCore) -> None:
    services: Any = core.services
    coordinator = TransactionCoordination(services, lambda: None)  # type: ignore[arg-type,return-value]  # not asked for
    given: list[Any] = []
    shard = SimpleNamespace(
        producer_id_given=lambda _, producer_id: given.append(producer_id),
        producer_id_refused=lambda _, error: given.append(error.code),
    )
    coordinator._runtime = SimpleNamespace(run=lambda _, operation, __: operation(shard))  # type: ignore[assignment]  # a stand-in
    ask = ProducerIdWanted(0, "t", lambda *_: pytest.fail("the shard decides"), given.append)
    futures: list[Future[int]] = [Future(), Future()]
    services.producer_ids = SimpleNamespace(next_id=lambda: futures.pop(0))
    first, second = futures

    coordinator.give_producer_id(ask)
    coordinator.give_producer_id(ask)
    second.set_exception(BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    first.set_result(42)

    assert given == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 42]
