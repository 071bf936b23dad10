"""Requests about records: produce, fetch, offsets in logs."""

from typing import Final

from kavka.broker.security.acl import Operation
from kavka.protocol.api import ApiKey
from kavka.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kavka.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from kavka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kavka.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kavka.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kavka.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka.protocol.records.batch import Record
from kavka.protocol.records.legacy import build_message_set
from tests.integration.oracle.answers.stage import TIME_MS, batch
from tests.integration.oracle.rights.table import TOO, Names, cluster, row, topic, transaction

FOLLOWER: Final = 5
"""The id of no broker that there is."""
WITH_BATCHES: Final = 3
BY_ID: Final = 13
BY_STATE: Final = 15


@row(ApiKey.PRODUCE, topic(Operation.WRITE))
def produce(version: int, names: Names) -> ProduceRequest:
    if version >= WITH_BATCHES:
        return _produce(names, batch())
    return _produce(names, build_message_set([Record(timestamp_ms=TIME_MS, value=b"v")], 0 if version < 2 else 1))


@row(ApiKey.PRODUCE, topic(Operation.WRITE), versions="3-12")
def produce_with_an_id_that_no_batch_is_of(version: int, names: Names) -> ProduceRequest:
    return _produce(names, batch(), transactional_id=names.transaction)


@row(ApiKey.PRODUCE, transaction(Operation.WRITE) + topic(Operation.WRITE), versions="3-12")
def produce_in_a_transaction(version: int, names: Names) -> ProduceRequest:
    return _produce(names, _transactional(), transactional_id=names.transaction)


@row(ApiKey.PRODUCE, topic(Operation.WRITE), versions="3-12")
def produce_in_a_transaction_without_an_id(version: int, names: Names) -> ProduceRequest:
    return _produce(names, _transactional())


@row(ApiKey.PRODUCE, topic(Operation.WRITE), versions="3-12")
def produce_with_acks_of_2(version: int, names: Names) -> ProduceRequest:
    return _produce(names, batch(), acks=2)


@row(ApiKey.FETCH, topic(Operation.READ), versions="0-12")
def fetch(version: int, names: Names) -> FetchRequest:
    return _fetch(version, names)


@row(ApiKey.FETCH, topic(Operation.READ), versions="13-99", hides=False)
def fetch_by_id(version: int, names: Names) -> FetchRequest:
    return _fetch(version, names)


@row(ApiKey.FETCH, topic(Operation.READ), versions="7-12", hides=False)
def fetch_that_opens_a_session(version: int, names: Names) -> FetchRequest:
    request = _fetch(version, names)
    request.session_epoch = 0
    return request


@row(ApiKey.FETCH, cluster(Operation.CLUSTER_ACTION), topic(Operation.READ), versions="4-99", hides=False)
def fetch_by_a_follower(version: int, names: Names) -> FetchRequest:
    request = _fetch(version, names)
    if version >= BY_STATE:
        request.replica_state = ReplicaState(replica_id=FOLLOWER)
    else:
        request.replica_id = FOLLOWER
    return request


@row(ApiKey.LIST_OFFSETS, topic(Operation.DESCRIBE), versions="1-99")
def list_offsets(version: int, names: Names) -> ListOffsetsRequest:
    partitions = [ListOffsetsPartition(partition_index=0, timestamp=-2)]
    return ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=partitions) for name in (names.topic, TOO)]
    )


@row(ApiKey.DELETE_RECORDS, topic(Operation.DELETE))
def delete_records(version: int, names: Names) -> DeleteRecordsRequest:
    partitions = [DeleteRecordsPartition(partition_index=0, offset=0)]
    topics = [DeleteRecordsTopic(name=name, partitions=partitions) for name in (names.topic, TOO)]
    return DeleteRecordsRequest(topics=topics, timeout_ms=30_000)


@row(ApiKey.OFFSET_FOR_LEADER_EPOCH, cluster(Operation.CLUSTER_ACTION), topic(Operation.DESCRIBE))
def offset_for_leader_epoch(version: int, names: Names) -> OffsetForLeaderEpochRequest:
    partitions = [OffsetForLeaderPartition(partition=0, leader_epoch=0)]
    return OffsetForLeaderEpochRequest(
        topics=[OffsetForLeaderTopic(topic=name, partitions=partitions) for name in (names.topic, TOO)]
    )


@row(ApiKey.DESCRIBE_PRODUCERS, topic(Operation.READ))
def describe_producers(version: int, names: Names) -> DescribeProducersRequest:
    return DescribeProducersRequest(
        topics=[TopicRequest(name=name, partition_indexes=[0, 7]) for name in (names.topic, TOO)]
    )


def _transactional() -> bytes:
    return batch(producer_id=4_000_000, producer_epoch=0, base_sequence=0, transactional=True)


def _produce(names: Names, records: bytes, *, transactional_id: str | None = None, acks: int = 1) -> ProduceRequest:
    data = [PartitionProduceData(index=0, records=records)]
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=name, partition_data=data) for name in (names.topic, TOO)],
    )


def _fetch(version: int, names: Names) -> FetchRequest:
    partitions = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)]
    topics = [
        FetchTopic(topic=name, topic_id=names.id_of(name) if version >= BY_ID else bytes(16), partitions=partitions)
        for name in (names.topic, TOO)
    ]
    return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1, topics=topics, forgotten_topics_data=[])
