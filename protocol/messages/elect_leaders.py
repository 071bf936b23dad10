"""ElectLeaders (key 43): elect the preferred, or any living, replica as leader (KIP-460).

v1 election types, a top-level error · v2 flexible
"""

from kavka.protocol.schema import Int8, Int16, Int32, NullableString, Request, Response, String, Struct, since


class TopicPartitions(Struct):
    topic: String
    partitions: list[Int32]


class ElectLeadersRequest(Request, key=43, versions="0-2", flexible="2+"):
    election_type: Int8 = since(1)
    topic_partitions: list[TopicPartitions] | None
    timeout_ms: Int32 = 60000


class PartitionResult(Struct):
    partition_id: Int32
    error_code: Int16
    error_message: NullableString


class ReplicaElectionResult(Struct):
    topic: String
    partition_result: list[PartitionResult]


class ElectLeadersResponse(Response, key=43, versions="0-2", flexible="2+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = since(1, ignorable=True)
    replica_election_results: list[ReplicaElectionResult]
