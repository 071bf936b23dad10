"""OffsetForLeaderEpoch (key 23): where a leader epoch ends; for truncation by followers and consumers.

v1 the epoch in the answer (KIP-279) · v2 fencing by current epoch (KIP-320) · v3 replica id · v4 flexible
"""

from kavka.protocol.schema import Int16, Int32, Int64, Request, Response, String, Struct, since


class OffsetForLeaderPartition(Struct):
    partition: Int32
    current_leader_epoch: Int32 = since(2, default=-1, ignorable=True)
    leader_epoch: Int32


class OffsetForLeaderTopic(Struct):
    topic: String
    partitions: list[OffsetForLeaderPartition]


class OffsetForLeaderEpochRequest(Request, key=23, versions="0-4", flexible="4+"):
    replica_id: Int32 = since(3, default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic]


class EpochEndOffset(Struct):
    error_code: Int16
    partition: Int32
    leader_epoch: Int32 = since(1, default=-1, ignorable=True)
    end_offset: Int64 = -1


class OffsetForLeaderTopicResult(Struct):
    topic: String
    partitions: list[EpochEndOffset]


class OffsetForLeaderEpochResponse(Response, key=23, versions="0-4", flexible="4+"):
    throttle_time_ms: Int32 = since(2, ignorable=True)
    topics: list[OffsetForLeaderTopicResult]
