"""The small APIs: epochs, producer ids, DeleteRecords, the cluster, log directories."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kavka.broker.handlers import (
    delete_records,
    describe_cluster,
    describe_log_dirs,
    init_producer_id,
    offset_for_leader_epoch,
)
from kavka.broker.security.acl import Operation
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kavka.protocol.messages.describe_cluster import DescribeClusterRequest
from kavka.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from kavka.protocol.messages.init_producer_id import InitProducerIdRequest
from kavka.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.support.broker_handlers import BROKER_ID, Broker, Denying, FakeLog

HANDLERS = (
    delete_records,
    describe_cluster,
    describe_log_dirs,
    init_producer_id,
    offset_for_leader_epoch,
)


def end_of_epoch(broker: Broker, epoch: int, version: int = 4, current: int = -1, **more: Any) -> tuple[int, int, int]:
    part = OffsetForLeaderPartition(partition=0, leader_epoch=epoch, current_leader_epoch=current)
    request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic="visits", partitions=[part])])
    (topic,) = broker.ask(request, version, **more).topics
    (end,) = topic.partitions
    return end.error_code, end.leader_epoch, end.end_offset


@pytest.mark.parametrize("version", range(5))
def test_the_end_of_an_epoch_is_found_in_every_version(version: int) -> None:
    broker = Broker(visits=[BROKER_ID])
    broker.host("visits")

    assert end_of_epoch(broker, 2, version) == (ErrorCode.NONE, 2 if version >= 1 else -1, 42)
    assert end_of_epoch(broker, 9, version) == (ErrorCode.NONE, -1, -1)


def test_epochs_are_looked_up_by_leaders_for_those_who_may_ask() -> None:
    broker = Broker(visits=[BROKER_ID])
    assert end_of_epoch(broker, 2)[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    broker.host("visits")

    assert end_of_epoch(broker, 2, current=2)[0] == ErrorCode.FENCED_LEADER_EPOCH
    assert end_of_epoch(broker, 2, current=4)[0] == ErrorCode.UNKNOWN_LEADER_EPOCH
    client = Denying((Operation.DESCRIBE, "visits"), (Operation.CLUSTER_ACTION, "*"))
    assert end_of_epoch(broker, 2, authorizer=client)[0] == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    another_broker = Denying((Operation.DESCRIBE, "visits"))
    assert end_of_epoch(broker, 2, authorizer=another_broker)[0] == ErrorCode.NONE


def producer(broker: Broker, version: int = 4, **more: Any) -> tuple[int, int, int]:
    fields = {"transactional_id": None, "transaction_timeout_ms": 60000} | more
    authorizer = fields.pop("authorizer", None)
    response = broker.ask(InitProducerIdRequest(**fields), version, authorizer=authorizer)
    return response.error_code, response.producer_id, response.producer_epoch


@pytest.mark.parametrize("version", range(6))
def test_idempotent_producers_get_different_ids(version: int) -> None:
    broker = Broker()

    assert [producer(broker, version) for _ in range(2)] == [(ErrorCode.NONE, 1000, 0), (ErrorCode.NONE, 1001, 0)]


def test_a_producer_that_brings_its_id_gets_a_new_one() -> None:
    assert producer(Broker(), producer_id=7, producer_epoch=3) == (ErrorCode.NONE, 1000, 0)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"producer_id": 7}, ErrorCode.INVALID_REQUEST),
        ({"producer_epoch": 3}, ErrorCode.INVALID_REQUEST),
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
        (
            {"transactional_id": "t", "authorizer": Denying((Operation.WRITE, "t"))},
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ),
        (
            {"authorizer": Denying((Operation.IDEMPOTENT_WRITE, "*"), (Operation.WRITE, "*"))},
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ),
    ],
)
def test_a_producer_that_is_refused_gets_no_id(fields: dict[str, Any], error: ErrorCode) -> None:
    assert producer(Broker(), **fields) == (error, -1, -1)


def delete_before(broker: Broker, offset: int, topic: str = "visits", version: int = 2, **more: Any) -> tuple[int, int]:
    part = DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[part])], timeout_ms=1000)
    (result,) = broker.ask(request, version, **more).topics[0].partitions
    return result.error_code, result.low_watermark


@pytest.mark.parametrize("version", range(3))
def test_records_are_deleted_up_to_an_offset_or_the_high_watermark(version: int) -> None:
    broker = Broker(visits=[BROKER_ID])
    log = broker.host("visits")

    assert delete_before(broker, 30, version=version) == (ErrorCode.NONE, 30)
    assert delete_before(broker, -1, version=version) == (ErrorCode.NONE, 90)
    assert log.log_start_offset == 90


def test_records_that_cannot_be_deleted_are_refused() -> None:
    broker = Broker(visits=[BROKER_ID], elsewhere=[2])
    log = broker.host("visits")

    assert delete_before(broker, 91) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert delete_before(broker, 1, "nowhere") == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert delete_before(broker, 1, "elsewhere") == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert delete_before(broker, 1, "__consumer_offsets") == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    denied = delete_before(broker, 30, authorizer=Denying((Operation.DELETE, "visits")))
    assert denied == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, -1)
    assert log.log_start_offset == 5


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_is_described(version: int) -> None:
    response = Broker().ask(DescribeClusterRequest(include_cluster_authorized_operations=True), version)

    assert (response.error_code, response.cluster_id, response.controller_id) == (0, "cluster-of-the-test", BROKER_ID)
    assert [(each.broker_id, each.host, each.port) for each in response.brokers] == [
        (BROKER_ID, "broker.example", 9092)
    ]
    assert response.cluster_authorized_operations == 0x1FA0


def test_controllers_cannot_be_asked_for_here() -> None:
    def code(endpoint_type: int) -> int:
        request = DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=endpoint_type)
        answered: int = Broker().ask(request, 1).error_code
        return answered

    assert [code(2), code(9)] == [ErrorCode.MISMATCHED_ENDPOINT_TYPE, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE]


def with_directories(broker: Broker, tmp_path: Path) -> FakeLog:
    """Two log directories: one with a partition, one that failed."""
    log = broker.host("visits")
    good = SimpleNamespace(path=tmp_path, online=True)
    bad = SimpleNamespace(path=tmp_path / "bad", online=False)
    logs = SimpleNamespace(directories=(good, bad), logs_in=lambda directory: [log] if directory is good else [])
    broker.services.logs = logs
    return log


@pytest.mark.parametrize("version", range(6))
def test_log_directories_are_described(tmp_path: Path, version: int) -> None:
    broker = Broker(visits=[BROKER_ID])
    with_directories(broker, tmp_path)

    good, bad = broker.ask(DescribeLogDirsRequest(topics=None), version).results

    assert [good.log_dir, bad.log_dir] == [str(tmp_path), str(tmp_path / "bad")]
    assert [good.error_code, bad.error_code] == [ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR]
    assert [(part.partition_size, part.offset_lag) for part in good.topics[0].partitions] == [(1234, 0)]
    assert (good.total_bytes > good.usable_bytes > 0) == (version >= 4)


def test_only_the_partitions_asked_for_are_described(tmp_path: Path) -> None:
    broker = Broker(visits=[BROKER_ID])
    with_directories(broker, tmp_path)
    others = DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic="visits", partitions=[1])])

    good, _ = broker.ask(others, 4).results

    assert (good.error_code, good.topics) == (ErrorCode.NONE, [])


def test_who_may_not_describe_the_cluster_sees_no_directories(tmp_path: Path) -> None:
    broker = Broker(visits=[BROKER_ID])
    with_directories(broker, tmp_path)
    forbids = Denying((Operation.DESCRIBE, "kafka-cluster"))

    response = broker.ask(DescribeLogDirsRequest(topics=None), 4, authorizer=forbids)

    assert (response.error_code, response.results) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])
    assert broker.ask(DescribeLogDirsRequest(topics=None), 2, authorizer=forbids).results == []
