"""What goes on while a disk answers no fsync of some topic."""

import os
from pathlib import Path

import pytest

from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kavka.protocol.messages.end_txn import EndTxnRequest
from kavka.protocol.messages.find_coordinator import FindCoordinatorRequest
from kavka.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kavka.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kavka.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka.protocol.records.batch import Record, build_batch
from kavka.storage.files import Files
from tests.support.gate import Gate
from tests.support.processes import wait_until
from tests.support.running_broker import HOST, RunningBroker
from tests.support.wire import Wire

THREADS = 2
PARTITIONS = 2 * THREADS


class SlowDisk:
    """Lets the fsyncs of the records of topic `slow` wait while it is `held`."""

    def __init__(self) -> None:
        self.waiting = 0
        self._gate = Gate()
        self.held = self._gate.held

    def fsync(self, descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if path.parent.name.startswith("slow-") and path.suffix == ".log":
            self.waiting += 1
            self._gate.pass_through()
        os.fsync(descriptor)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> SlowDisk:
    disk = SlowDisk()
    monkeypatch.setattr(Files, "fsync", staticmethod(disk.fsync))
    return disk


def producer(wire: Wire) -> InitProducerIdResponse:
    answers: list[InitProducerIdResponse] = []

    def came() -> bool:
        for key, key_type in (("t", 1), ("g", 0)):
            wire.ask(FindCoordinatorRequest(key=key, key_type=key_type), 2)
        answers.append(wire.ask(InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=60_000), 5))
        return answers[-1].error_code == ErrorCode.NONE

    wait_until(came, 60, "no producer id")
    return answers[-1]


def begin(wire: Wire, me: InitProducerIdResponse) -> None:
    batch = build_batch(
        [Record(timestamp_ms=1, key=None, value=b"v")],
        producer_id=me.producer_id,
        producer_epoch=me.producer_epoch,
        base_sequence=0,
        transactional=True,
    )
    data = [PartitionProduceData(index=index, records=memoryview(bytearray(batch))) for index in range(PARTITIONS)]
    topics = [TopicProduceData(name="slow", partition_data=data)]
    (topic,) = wire.ask(
        ProduceRequest(transactional_id="t", acks=-1, timeout_ms=30_000, topic_data=topics), 12
    ).responses
    assert [each.error_code for each in topic.partition_responses] == [ErrorCode.NONE] * PARTITIONS


def end(wire: Wire, me: InitProducerIdResponse) -> None:
    request = EndTxnRequest(
        transactional_id="t", producer_id=me.producer_id, producer_epoch=me.producer_epoch, committed=True
    )
    assert wire.ask(request, 5).error_code == ErrorCode.NONE


def join(wire: Wire, member: str) -> tuple[int, str]:
    answer = wire.ask(
        JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id=member,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        ),
        5,
    )
    return answer.error_code, answer.member_id


def test_groups_rebalance_while_transactions_wait_for_their_markers_fsyncs(tmp_path: Path, disk: SlowDisk) -> None:
    settings = {
        "background.threads": str(THREADS),
        "group.initial.rebalance.delay.ms": "100",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
    }
    with RunningBroker(tmp_path, settings) as running, Wire(HOST, running.port, timeout_s=30) as wire:
        flushed = [CreatableTopicConfig(name="flush.messages", value="1")]
        topic = CreatableTopic(
            name="slow", num_partitions=PARTITIONS, replication_factor=1, assignments=[], configs=flushed
        )
        wire.ask(CreateTopicsRequest(timeout_ms=10_000, topics=[topic]), 5)
        me = producer(wire)
        begin(wire, me)
        with disk.held():
            end(wire, me)
            wait_until(lambda: disk.waiting > 0, 60, "no marker waits for its fsync")

            code, member = join(wire, "")
            assert code == ErrorCode.MEMBER_ID_REQUIRED
            assert join(wire, member) == (ErrorCode.NONE, member), "a timer ends the delay of the first rebalance"


def test_a_producer_waits_for_no_fsync_of_a_segment_that_was_closed(tmp_path: Path, disk: SlowDisk) -> None:
    with RunningBroker(tmp_path) as running, Wire(HOST, running.port, timeout_s=30) as wire:
        small = [CreatableTopicConfig(name="segment.bytes", value="1000")]
        topic = CreatableTopic(name="slow", num_partitions=1, replication_factor=1, assignments=[], configs=small)
        wire.ask(CreateTopicsRequest(timeout_ms=10_000, topics=[topic]), 5)
        batch = build_batch([Record(timestamp_ms=1, key=None, value=bytes(400))])
        with disk.held():
            for number in range(10):
                data = PartitionProduceData(index=0, records=memoryview(bytearray(batch)))
                topics = [TopicProduceData(name="slow", partition_data=[data])]
                answer = wire.ask(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=topics), 9).responses[0]
                assert [(each.error_code, each.base_offset) for each in answer.partition_responses] == [(0, number)]
            wait_until(lambda: disk.waiting > 0, 60, "no closed segment waits for its fsync")
            assert len(list(tmp_path.rglob("slow-0/*.log"))) == 5
