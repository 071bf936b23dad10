"""Internal topics that get partitions while their groups and transactions live: everybody keeps the shard they had."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kavka.coordinator.partitioning import partition_for
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kavka.protocol.messages.end_txn import EndTxnRequest
from kavka.protocol.messages.find_coordinator import FindCoordinatorRequest
from kavka.protocol.messages.init_producer_id import InitProducerIdRequest
from kavka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kavka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kavka.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kavka.protocol.records.builder import build_batch
from kavka.protocol.records.record import Record
from tests.support.broker_core import NOW_MS
from tests.support.processes import wait_until
from tests.support.running_broker import HOST, RunningBroker
from tests.support.wire import Wire, create_topic, produce_request

FEW, MANY = 2, 7
KEY = next(key for key in map(str, range(99)) if partition_for(key, FEW) != partition_for(key, MANY))
GROUP_TYPE, TRANSACTION_TYPE = 0, 1
PATIENCE_S = 60.0
TRANSACTIONS_OF_VERSION_2 = 12


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningBroker]:
    settings = {"offsets.topic.num.partitions": str(FEW), "transaction.state.log.num.partitions": str(FEW)}
    with RunningBroker(tmp_path, settings) as running:
        running.errors.expect("partitions were added to an internal topic")
        yield running


@pytest.fixture
def client(running: RunningBroker) -> Iterator[Wire]:
    with Wire(HOST, running.port) as client:
        create_topic(client, "t")
        yield client


def grow(client: Wire, topic: str) -> None:
    added = CreatePartitionsTopic(name=topic, count=MANY, assignments=None)
    (result,) = client.ask(CreatePartitionsRequest(topics=[added], timeout_ms=30_000, validate_only=False), 1).results
    assert result.error_code == ErrorCode.NONE
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    wait_until(lambda: len(client.ask(asked, 9).topics[0].partitions) == MANY, PATIENCE_S, f"{topic} did not grow")


def commit(client: Wire, offset: int) -> ErrorCode:
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    topics = [OffsetCommitRequestTopic(name="t", partitions=[part])]
    answer = client.ask(OffsetCommitRequest(group_id=KEY, topics=topics), 8)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


def committed(client: Wire) -> int:
    asked = OffsetFetchRequestGroup(group_id=KEY, topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0])])
    offset: int = client.ask(OffsetFetchRequest(groups=[asked]), 8).groups[0].topics[0].partitions[0].committed_offset
    return offset


def test_committed_offsets_are_found_when_their_topic_has_grown(client: Wire) -> None:
    client.ask(FindCoordinatorRequest(key=KEY, key_type=GROUP_TYPE), 2)
    wait_until(lambda: commit(client, 42) is ErrorCode.NONE, PATIENCE_S, "the group is not served")

    grow(client, "__consumer_offsets")

    assert committed(client) == 42
    assert commit(client, 43) is ErrorCode.NONE
    assert committed(client) == 43


def test_a_transaction_can_be_committed_when_the_topic_of_transactions_has_grown(client: Wire) -> None:
    client.ask(FindCoordinatorRequest(key=KEY, key_type=TRANSACTION_TYPE), 2)
    begin = InitProducerIdRequest(transactional_id=KEY, transaction_timeout_ms=60_000)

    def producer_of() -> tuple[int, int] | None:
        answer = client.ask(begin, 5)
        return None if answer.error_code else (answer.producer_id, answer.producer_epoch)

    producer = wait_until(producer_of, PATIENCE_S, "the transactional id is not served")
    assert produce(client, producer, 0) is ErrorCode.NONE

    grow(client, "__transaction_state")

    assert produce(client, producer, 1) is ErrorCode.NONE
    end = EndTxnRequest(transactional_id=KEY, producer_id=producer[0], producer_epoch=producer[1], committed=True)
    assert client.ask(end, 5).error_code == ErrorCode.NONE


def produce(client: Wire, producer: tuple[int, int], sequence: int) -> ErrorCode:
    batch = build_batch(
        [Record(0, NOW_MS, None, b"v", ())],
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=sequence,
        transactional=True,
    )
    request = produce_request("t", batch, acks=-1)
    request.transactional_id = KEY
    answer = client.ask(request, TRANSACTIONS_OF_VERSION_2)
    return ErrorCode(answer.responses[0].partition_responses[0].error_code)
