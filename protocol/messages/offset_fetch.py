"""OffsetFetch (key 9): a group's stored offsets.

v2 null for all topics, a top-level error · v5 leader epochs · v6 flexible · v7 require_stable (KIP-447)
v8 several groups in one request (KIP-709) · v9 member epochs (KIP-848) · v10 topics by id
"""

from kavka.protocol.schema import (
    Bool,
    Int16,
    Int32,
    Int64,
    NullableString,
    Request,
    Response,
    String,
    Struct,
    Uuid,
    since,
)


class OffsetFetchRequestTopic(Struct):
    name: String
    partition_indexes: list[Int32]


class OffsetFetchRequestTopics(Struct):
    name: String = since(8, until=9, ignorable=True)
    topic_id: Uuid = since(10, ignorable=True)
    partition_indexes: list[Int32]


class OffsetFetchRequestGroup(Struct):
    group_id: String
    member_id: NullableString = since(9, default=None, ignorable=True)
    member_epoch: Int32 = since(9, default=-1, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None


class OffsetFetchRequest(Request, key=9, versions="0-10", flexible="6+"):
    group_id: String = since(0, until=7)
    topics: list[OffsetFetchRequestTopic] | None = since(0, until=7, nullable_since=2)
    groups: list[OffsetFetchRequestGroup] = since(8)
    require_stable: Bool = since(7)


class OffsetFetchResponsePartition(Struct):
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = since(5, default=-1, ignorable=True)
    metadata: NullableString
    error_code: Int16


class OffsetFetchResponseTopic(Struct):
    name: String
    partitions: list[OffsetFetchResponsePartition]


class OffsetFetchResponsePartitions(Struct):
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = -1
    metadata: NullableString
    error_code: Int16


class OffsetFetchResponseTopics(Struct):
    name: String = since(8, until=9, ignorable=True)
    topic_id: Uuid = since(10, ignorable=True)
    partitions: list[OffsetFetchResponsePartitions]


class OffsetFetchResponseGroup(Struct):
    group_id: String
    topics: list[OffsetFetchResponseTopics]
    error_code: Int16


class OffsetFetchResponse(Response, key=9, versions="0-10", flexible="6+"):
    throttle_time_ms: Int32 = since(3, ignorable=True)
    topics: list[OffsetFetchResponseTopic] = since(0, until=7)
    error_code: Int16 = since(2, until=7, ignorable=True)
    groups: list[OffsetFetchResponseGroup] = since(8)
