"""DescribeQuorum (key 55): who votes and who follows in KRaft's log of metadata, and how far each is (KIP-595).

v0 is flexible already · v1 times of the last fetches (KIP-836) · v2 messages, directories, endpoints (KIP-853)
"""

from kavka.protocol.schema import (
    Int16,
    Int32,
    Int64,
    NullableString,
    Request,
    Response,
    String,
    Struct,
    Uint16,
    Uuid,
    since,
)


class PartitionRequest(Struct):
    partition_index: Int32


class TopicRequest(Struct):
    topic_name: String
    partitions: list[PartitionRequest]


class DescribeQuorumRequest(Request, key=55, versions="0-2", flexible="0+"):
    topics: list[TopicRequest]


class ReplicaState(Struct):
    replica_id: Int32
    replica_directory_id: Uuid = since(2)
    log_end_offset: Int64
    last_fetch_timestamp: Int64 = since(1, default=-1, ignorable=True)
    last_caught_up_timestamp: Int64 = since(1, default=-1, ignorable=True)


class PartitionData(Struct):
    partition_index: Int32
    error_code: Int16
    error_message: NullableString = since(2, default=None, ignorable=True)
    leader_id: Int32
    leader_epoch: Int32
    high_watermark: Int64
    current_voters: list[ReplicaState]
    observers: list[ReplicaState]


class TopicData(Struct):
    topic_name: String
    partitions: list[PartitionData]


class Listener(Struct):
    name: String
    host: String
    port: Uint16


class Node(Struct):
    node_id: Int32
    listeners: list[Listener]


class DescribeQuorumResponse(Response, key=55, versions="0-2", flexible="0+"):
    error_code: Int16
    error_message: NullableString = since(2, default=None, ignorable=True)
    topics: list[TopicData]
    nodes: list[Node] = since(2)
