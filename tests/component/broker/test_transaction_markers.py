"""Markers on their way to partitions' leaders."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kavka.broker.coordination.deleted_partitions import DeletedPartitions
from kavka.broker.coordination.markers import LocalMarkerChannel, MarkerDispatch, MarkerWriter
from kavka.broker.coordination.transactions import TransactionCoordination
from kavka.broker.coordination.workers import Workers
from kavka.broker.partitions.partition import Partition
from kavka.cluster.promise import Promise
from kavka.cluster.registry.base import RegistryUnavailableError
from kavka.cluster.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from kavka.cluster.znodes.topic import TopicAssignment, TopicDeletion
from kavka.coordinator.runtime.result import Producer
from kavka.coordinator.transaction.completion import MarkerAnswer
from kavka.coordinator.transaction.metadata import Dispatch, TopicPartition
from kavka.coordinator.transaction.ports import MarkersWanted, ProducerIdWanted
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from kavka.storage.environment import at_once
from tests.support.broker_core import NOW_MS, BrokerCore
from tests.support.broker_handlers import BROKER_ID, update_metadata
from tests.support.partition_logs import batch_of

ME = Producer(7, 0)


def wanted(*partitions: TopicPartition, committed: bool = True, epoch: int = 0, version: int = 0) -> MarkersWanted:
    return MarkersWanted(3, "t", 7, epoch, 5, committed, version, partitions, Dispatch(0))


class Channel:
    """Implements MarkerChannel: keeps requests until they are answered."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, WriteTxnMarkersRequest, Promise[WriteTxnMarkersResponse]]] = []

    def write_markers(
        self, broker_id: int, request: WriteTxnMarkersRequest, _is_withdrawn: Any
    ) -> Promise[WriteTxnMarkersResponse]:
        self.sent.append((broker_id, request, Promise()))
        return self.sent[-1][2]


NO_GROUPS: Any = None
"""Of who writes no markers into the groups' topic."""


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
    return LocalMarkerChannel(
        BROKER_ID, MarkerWriter(core.services, getattr(core.services, "groups", NO_GROUPS), at_once)
    )


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
    channel.sent[1][2].fail(BrokerError(ErrorCode.NETWORK_EXCEPTION))
    MarkerWriter(core.services, NO_GROUPS, at_once).write(channel.sent[0][1]).watch(channel.sent[0][2].settle)
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


def test_a_marker_that_was_withdrawn_on_its_way_does_not_end_the_next_transaction(
    core: BrokerCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(core, 0)
    begin(core, 1)
    late = wanted(("visits", 0), ("visits", 1))
    append = Partition.append

    def reloaded_before_the_second(partition: Partition, *arguments: Any, **named: Any) -> Any:
        if partition.index == 1 and not late.dispatch.is_over:
            # The coordinator is loaded anew: all markers are sent again, and the next transaction, of the same epoch,
            # begins.
            late.dispatch.is_over = True
            (again,) = send(core, local(core), wanted(("visits", 0), ("visits", 1)))
            assert {answer.code for answer in again} == {ErrorCode.NONE}
            core.log("visits", 1).append_as_leader(
                batch_of(b"y", producer_id=7, producer_epoch=0, base_sequence=1, transactional=True),
                leader_epoch=0,
                now_ms=NOW_MS,
            )
        return append(partition, *arguments, **named)

    monkeypatch.setattr(Partition, "append", reloaded_before_the_second)
    (answers,) = send(core, local(core), late)

    assert answers == [
        MarkerAnswer("visits", 0, ErrorCode.NONE),
        MarkerAnswer("visits", 1, ErrorCode.NOT_COORDINATOR),
    ]
    assert core.log("visits", 1).producers.has_open_transaction(7, 0)


def test_markers_that_cannot_even_be_sent_are_answered(core: BrokerCore, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise OSError("a mistake of ours")

    monkeypatch.setattr(MarkerDispatch, "_leader_of", broken)

    (answers,) = send(core, local(core), wanted(("visits", 0), ("visits", 1)))

    assert [answer.code for answer in answers] == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2


def test_a_marker_waits_for_the_in_sync_replicas(core: BrokerCore) -> None:
    core.create("visits", 2, leader_epoch=1, isr=(BROKER_ID, 2))

    answers = send(core, local(core), wanted(("visits", 0)))

    assert answers == []
    core.replicate("visits", 2, 1)
    assert [answer.code for answer in answers[0]] == [ErrorCode.NONE]


def test_no_sender_of_markers_waits_for_their_fsyncs(tmp_path: Path) -> None:
    core = BrokerCore(tmp_path)
    core.create(TRANSACTION_STATE_TOPIC)
    core.create("visits", 2)
    jobs: list[Callable[[], None]] = []
    channel = LocalMarkerChannel(BROKER_ID, MarkerWriter(core.services, NO_GROUPS, jobs.append))
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

    def end(
        partition: int, producer: Producer, epoch: int, committed: bool, reply: Any, version: int, _is_withdrawn: Any
    ) -> None:
        ended.append((partition, producer, epoch, committed, version))
        reply(None if said is None else BrokerError(said))

    services: Any = core.services
    services.groups = SimpleNamespace(runtime=SimpleNamespace(end_transaction=end))

    (answers,) = send(core, local(core), wanted((GROUP_METADATA_TOPIC, 0), version=2))

    assert ended == [(0, ME, 5, True, 2)]
    assert answers == [MarkerAnswer(GROUP_METADATA_TOPIC, 0, told)]
    assert core.log(GROUP_METADATA_TOPIC).log_end_offset == 0


def test_a_producer_id_comes_to_the_shard_or_the_refusal_does(core: BrokerCore) -> None:
    services: Any = core.services
    coordinator = TransactionCoordination(
        services,
        NO_GROUPS,
        lambda: None,  # type: ignore[arg-type,return-value]  # not asked for
        Workers(at_once, at_once, at_once),
    )
    given: list[Any] = []
    shard = SimpleNamespace(
        producer_id_given=lambda _, producer_id: given.append(producer_id),
        producer_id_refused=lambda _, error: given.append(error.code),
    )
    coordinator._runtime = SimpleNamespace(run=lambda _, operation, __: operation(shard))  # type: ignore[assignment]  # a stand-in
    ask = ProducerIdWanted(0, "t", lambda *_: pytest.fail("the shard decides"), given.append)
    promises: list[Promise[int]] = [Promise(), Promise()]
    services.producer_ids = SimpleNamespace(next_id=lambda: promises.pop(0))
    first, second = promises

    coordinator.give_producer_id(ask)
    coordinator.give_producer_id(ask)
    second.fail(BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    first.complete(42)

    assert given == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 42]


class Kept:
    """Stands for a registry: the nodes that there are."""

    def __init__(self, *topics: str, deleted: tuple[str, ...] = ()) -> None:
        assignment = TopicAssignment({0: (BROKER_ID,), 1: (BROKER_ID,)}, None).encode()
        self.nodes = {TopicAssignment.path(topic): (assignment, None) for topic in topics}
        self.nodes.update({TopicDeletion.path(topic): (b"", None) for topic in deleted})

    def get_many(self, paths: list[str]) -> list[Any]:
        return [self.nodes.get(path) for path in paths]


class Away:
    """Stands for a registry that is out of reach."""

    def get_many(self, _paths: list[str]) -> list[Any]:
        raise RegistryUnavailableError("away")


@pytest.mark.parametrize(
    ("registry", "told"),
    [
        (Kept("new"), ErrorCode.LEADER_NOT_AVAILABLE),
        (Kept("new", deleted=("new",)), ErrorCode.UNKNOWN_TOPIC_ID),
        (Kept(), ErrorCode.UNKNOWN_TOPIC_ID),
        (Away(), ErrorCode.LEADER_NOT_AVAILABLE),
    ],
)
def test_a_marker_is_given_up_when_the_topic_is_gone_not_when_this_broker_has_not_heard_of_it(
    core: BrokerCore, registry: Any, told: ErrorCode
) -> None:
    begin(core)
    answers: list[list[MarkerAnswer]] = []
    dispatch = MarkerDispatch(core.services, local(core), DeletedPartitions(registry, at_once))

    dispatch.send(wanted(("new", 1), ("visits", 0)), answers.append)

    assert answers == [[MarkerAnswer("new", 1, told), MarkerAnswer("visits", 0, ErrorCode.NONE)]]


def test_a_partition_beyond_those_of_its_topic_is_gone(core: BrokerCore) -> None:
    registry: Any = Kept("visits")
    answers: list[list[MarkerAnswer]] = []

    MarkerDispatch(core.services, local(core), DeletedPartitions(registry, at_once)).send(
        wanted(("visits", 7)), answers.append
    )

    assert answers == [[MarkerAnswer("visits", 7, ErrorCode.UNKNOWN_TOPIC_ID)]]


def test_one_look_at_the_registry_is_under_way_at_a_time(core: BrokerCore) -> None:
    registry: Any = Kept()
    jobs: list[Callable[[], None]] = []
    answers: list[list[MarkerAnswer]] = []
    dispatch = MarkerDispatch(core.services, local(core), DeletedPartitions(registry, jobs.append))

    for _ in range(2):
        dispatch.send(wanted(("gone", 0)), answers.append)
    assert (len(jobs), answers) == (1, [[MarkerAnswer("gone", 0, ErrorCode.LEADER_NOT_AVAILABLE)]])
    jobs.pop()()
    dispatch.send(wanted(("gone", 0)), answers.append)
    jobs.pop()()

    assert answers[1:] == [[MarkerAnswer("gone", 0, ErrorCode.UNKNOWN_TOPIC_ID)]] * 2
