"""Produce (key 0): append record batches to partitions; not answered at all with acks=0.

v1 throttle time · v2 log append time · v3 record batches v2 and transactional_id (KIP-98) · v5 log start offset
v7 zstd · v8 errors of single records (KIP-467) · v9 flexible
v10 the leader's whereabouts in tagged fields (KIP-951) · v12 adds partitions to the transaction by itself (KIP-890)
v13 topics by id (KIP-516)
"""

from kavka.protocol.schema import (
    Int16,
    Int32,
    Int64,
    NullableRecords,
    NullableString,
    Request,
    Response,
    String,
    Struct,
    Uuid,
    since,
)


class PartitionProduceData(Struct):
    index: Int32
    records: NullableRecords


class TopicProduceData(Struct):
    name: String = since(0, until=12, ignorable=True)
    topic_id: Uuid = since(13, ignorable=True)
    partition_data: list[PartitionProduceData]


class ProduceRequest(Request, key=0, versions="0-13", flexible="9+"):
    transactional_id: NullableString = since(3, default=None)
    acks: Int16
    timeout_ms: Int32
    topic_data: list[TopicProduceData]


class BatchIndexAndErrorMessage(Struct):
    batch_index: Int32
    batch_index_error_message: NullableString = None


class LeaderIdAndEpoch(Struct):
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


class PartitionProduceResponse(Struct):
    index: Int32
    error_code: Int16
    base_offset: Int64
    log_append_time_ms: Int64 = since(2, default=-1, ignorable=True)
    log_start_offset: Int64 = since(5, default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = since(8, ignorable=True)
    error_message: NullableString = since(8, default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = since(10, tag=0)


class TopicProduceResponse(Struct):
    name: String = since(0, until=12, ignorable=True)
    topic_id: Uuid = since(13, ignorable=True)
    partition_responses: list[PartitionProduceResponse]


class NodeEndpoint(Struct):
    node_id: Int32
    host: String
    port: Int32
    rack: NullableString = None


class ProduceResponse(Response, key=0, versions="0-13", flexible="9+"):
    responses: list[TopicProduceResponse]
    throttle_time_ms: Int32 = since(1, ignorable=True)
    node_endpoints: list[NodeEndpoint] = since(10, tag=0)
