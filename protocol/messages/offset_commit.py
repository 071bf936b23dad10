"""OffsetCommit (key 8): a group's offsets are stored.

v1 member and generation · v2 retention time, instead of v1's commit timestamps · v5 no retention time (KIP-211)
v6 leader epochs (KIP-320) · v7 static members (KIP-345) · v8 flexible · v9 member epochs (KIP-848) · v10 topics by id
"""

from kavka.protocol.schema import Int16, Int32, Int64, NullableString, Request, Response, String, Struct, Uuid, since


class OffsetCommitRequestPartition(Struct):
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = since(6, default=-1, ignorable=True)
    commit_timestamp: Int64 = since(1, until=1, default=-1)
    committed_metadata: NullableString


class OffsetCommitRequestTopic(Struct):
    name: String = since(0, until=9, ignorable=True)
    topic_id: Uuid = since(10, ignorable=True)
    partitions: list[OffsetCommitRequestPartition]


class OffsetCommitRequest(Request, key=8, versions="0-10", flexible="8+"):
    group_id: String
    generation_id_or_member_epoch: Int32 = since(1, default=-1, ignorable=True)
    member_id: String = since(1, ignorable=True)
    group_instance_id: NullableString = since(7, default=None)
    retention_time_ms: Int64 = since(2, until=4, default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic]


class OffsetCommitResponsePartition(Struct):
    partition_index: Int32
    error_code: Int16


class OffsetCommitResponseTopic(Struct):
    name: String = since(0, until=9, ignorable=True)
    topic_id: Uuid = since(10, ignorable=True)
    partitions: list[OffsetCommitResponsePartition]


class OffsetCommitResponse(Response, key=8, versions="0-10", flexible="8+"):
    throttle_time_ms: Int32 = since(3, ignorable=True)
    topics: list[OffsetCommitResponseTopic]
