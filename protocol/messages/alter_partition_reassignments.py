"""AlterPartitionReassignments (key 45): move partitions to other brokers, or stop moving them (KIP-455).

v0 is flexible already · v1 a change of replication factor can be forbidden (KIP-860)
"""

from kavka.protocol.schema import Bool, Int16, Int32, NullableString, Request, Response, String, Struct, since


class ReassignablePartition(Struct):
    partition_index: Int32
    replicas: list[Int32] | None = None


class ReassignableTopic(Struct):
    name: String
    partitions: list[ReassignablePartition]


class AlterPartitionReassignmentsRequest(Request, key=45, versions="0-1", flexible="0+"):
    timeout_ms: Int32 = 60000
    allow_replication_factor_change: Bool = since(1, default=True)
    topics: list[ReassignableTopic]


class ReassignablePartitionResponse(Struct):
    partition_index: Int32
    error_code: Int16
    error_message: NullableString


class ReassignableTopicResponse(Struct):
    name: String
    partitions: list[ReassignablePartitionResponse]


class AlterPartitionReassignmentsResponse(Response, key=45, versions="0-1", flexible="0+"):
    throttle_time_ms: Int32 = 0
    allow_replication_factor_change: Bool = since(1, default=True, ignorable=True)
    error_code: Int16
    error_message: NullableString
    responses: list[ReassignableTopicResponse]
