"""Requests under which a leader epoch begins or ends: they go on where this broker leads on, and are refused else."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka.broker.partitions.partition import Partition
from kavka.protocol.codec import decode, encode
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.headers import encode_request_header
from kavka.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from kavka.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kavka.storage.partition_log import PartitionLog
from tests.support.broker_core import NOW_MS, BrokerCore, produce_frame
from tests.support.broker_handlers import topic_id_of
from tests.support.interleaving import WatchedLock
from tests.support.partition_logs import batch_of

TOPIC, ME, OTHER = "visits", 1, 2
ELSEWHERE = ("other.example", 9092)


@pytest.fixture
def core(tmp_path: Path) -> Iterator[BrokerCore]:
    made = BrokerCore(tmp_path)
    made.create(TOPIC)
    yield made
    made.close()


def _partition(core: BrokerCore) -> Partition:
    return core.replicas.partitions[TOPIC, 0]


def _before(monkeypatch: pytest.MonkeyPatch, method: str, change: Any) -> None:
    """Have `change` happen just before the log's method is called for the first time."""
    ordinary = getattr(PartitionLog, method)
    changes = [change]

    def changed(self: PartitionLog, *arguments: Any, **options: Any) -> Any:
        if changes:
            changes.pop()()
        return ordinary(self, *arguments, **options)

    monkeypatch.setattr(PartitionLog, method, changed)


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_an_append_goes_on_in_the_epoch_that_has_begun(
    core: BrokerCore, acks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _before(monkeypatch, "append_as_leader", lambda: core.create(TOPIC, leader_epoch=1))

    core.ask(produce_frame(9, 1, {(TOPIC, 0): bytes(batch_of(b"v"))}, acks=acks))

    log = core.log(TOPIC)
    assert (log.log_end_offset, log.high_watermark, log.epochs.latest_epoch) == (1, 1, 1)
    assert log.epoch_for_offset(0) == 1
    assert not core.socket.closed


def test_an_append_waits_for_the_role_of_the_epoch_that_begins(
    core: BrokerCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = _partition(core)
    comes_to_rest = threading.Event()
    results: list[object] = []

    def append() -> None:
        try:
            results.append(partition.append(memoryview(batch_of(b"v")), 1, 9, NOW_MS).first_offset)
        except BrokerError as refusal:
            results.append(refusal.code)
        comes_to_rest.set()

    other = threading.Thread(target=append)
    ordinary = PartitionLog.begin_leader_epoch

    def begin(self: PartitionLog, epoch: int) -> int:
        offset = ordinary(self, epoch)
        other.start()
        assert comes_to_rest.wait(60)
        return offset

    monkeypatch.setattr(PartitionLog, "begin_leader_epoch", begin)
    monkeypatch.setattr(partition, "_lock", WatchedLock(comes_to_rest))
    core.create(TOPIC, leader_epoch=1)
    other.join()

    assert results == [0]
    assert core.log(TOPIC).epoch_for_offset(0) == 1


def test_an_append_is_refused_where_another_broker_leads_now(core: BrokerCore, monkeypatch: pytest.MonkeyPatch) -> None:
    _before(monkeypatch, "append_as_leader", lambda: core.lose(TOPIC, OTHER, ELSEWHERE, leader_epoch=1))

    with pytest.raises(BrokerError) as refused:
        _partition(core).append(memoryview(batch_of(b"v")), 1, 9, NOW_MS)

    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert core.log(TOPIC).log_end_offset == 0


def test_an_append_for_one_epoch_does_not_go_on_in_the_next(core: BrokerCore, monkeypatch: pytest.MonkeyPatch) -> None:
    _before(monkeypatch, "append_as_leader", lambda: core.create(TOPIC, leader_epoch=1))

    with pytest.raises(BrokerError) as refused:
        _partition(core).append(memoryview(batch_of(b"v")), 1, 9, NOW_MS, leader_epoch=0)

    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert core.log(TOPIC).log_end_offset == 0


def test_the_end_of_an_epoch_is_not_told_of_a_followers_log(core: BrokerCore, monkeypatch: pytest.MonkeyPatch) -> None:
    _before(monkeypatch, "end_offset_for_epoch", lambda: core.lose(TOPIC, OTHER, ELSEWHERE, leader_epoch=1))
    part = OffsetForLeaderPartition(partition=0, current_leader_epoch=0, leader_epoch=0)
    request = OffsetForLeaderEpochRequest(replica_id=-1, topics=[OffsetForLeaderTopic(topic=TOPIC, partitions=[part])])

    taken = core.ask(encode_request_header(23, 4, 1, "consumer") + encode(request, 4))

    answer: OffsetForLeaderEpochResponse = decode(OffsetForLeaderEpochResponse, 4, memoryview(taken)[9:])
    (told,) = answer.topics[0].partitions
    assert (told.error_code, told.end_offset) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


def _order(core: BrokerCore, **fields: Any) -> list[int]:
    state = {
        "partition_index": 7,
        "controller_epoch": 1,
        "leader": OTHER,
        "leader_epoch": 0,
        "isr": [OTHER],
        "partition_epoch": 0,
        "replicas": [ME, OTHER],
    }
    topic = LeaderAndIsrTopicState(
        topic_name=TOPIC,
        topic_id=topic_id_of(TOPIC),
        partition_states=[LeaderAndIsrPartitionState(**{**state, **fields})],
    )
    request = LeaderAndIsrRequest(
        controller_id=ME, controller_epoch=1, broker_epoch=1, topic_states=[topic], live_leaders=[]
    )
    answer = core.services.local_broker.leader_and_isr(request)
    return [part.error_code for each in answer.topics for part in each.partition_errors]


def test_an_order_for_a_partition_that_has_no_replica_here_makes_none(core: BrokerCore, tmp_path: Path) -> None:
    folders = sorted(tmp_path.iterdir())

    for leader in (ME, OTHER, -1):
        assert _order(core, replicas=[OTHER], leader=leader) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert _order(core, partition_index=0, leader_epoch=9, replicas=[OTHER]) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]

    assert set(core.replicas.partitions) == {(TOPIC, 0)}
    assert _partition(core).role.is_leader
    assert sorted(tmp_path.iterdir()) == folders


@pytest.mark.parametrize("field", ["leader_epoch", "partition_epoch", "partition_index"])
def test_an_order_with_a_negative_number_is_refused(core: BrokerCore, field: str) -> None:
    with pytest.raises(BrokerError) as refused:
        _order(core, **{field: -1})

    assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert set(core.replicas.partitions) == {(TOPIC, 0)}
