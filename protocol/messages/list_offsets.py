"""ListOffsets (key 2): the offset of a timestamp, or of the earliest or latest record.

v0 lists segment starts · v1 one offset and its timestamp (KIP-79) · v2 isolation level · v4 leader epochs (KIP-320)
v6 flexible · v7 the largest timestamp, -3 (KIP-734) · v8, v9 tiered storage, -4 and -5 · v10 timeout
v11 -6 (KIP-1023)
"""

from kavka.protocol.schema import Int8, Int16, Int32, Int64, Request, Response, String, Struct, since


class ListOffsetsPartition(Struct):
    partition_index: Int32
    current_leader_epoch: Int32 = since(4, default=-1, ignorable=True)
    timestamp: Int64
    max_num_offsets: Int32 = since(0, until=0, default=1)


class ListOffsetsTopic(Struct):
    name: String
    partitions: list[ListOffsetsPartition]


class ListOffsetsRequest(Request, key=2, versions="0-11", flexible="6+"):
    replica_id: Int32
    isolation_level: Int8 = since(2)
    topics: list[ListOffsetsTopic]
    timeout_ms: Int32 = since(10, ignorable=True)


class ListOffsetsPartitionResponse(Struct):
    partition_index: Int32
    error_code: Int16
    old_style_offsets: list[Int64] = since(0, until=0)
    timestamp: Int64 = since(1, default=-1)
    offset: Int64 = since(1, default=-1)
    leader_epoch: Int32 = since(4, default=-1)


class ListOffsetsTopicResponse(Struct):
    name: String
    partitions: list[ListOffsetsPartitionResponse]


class ListOffsetsResponse(Response, key=2, versions="0-11", flexible="6+"):
    throttle_time_ms: Int32 = since(2, ignorable=True)
    topics: list[ListOffsetsTopicResponse]
