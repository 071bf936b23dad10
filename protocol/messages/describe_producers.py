"""DescribeProducers (key 61): the producers that write to partitions, from the leader's producer state (KIP-664).

v0 is flexible already
"""

from kavka.protocol.schema import Int16, Int32, Int64, NullableString, Request, Response, String, Struct


class TopicRequest(Struct):
    name: String
    partition_indexes: list[Int32]


class DescribeProducersRequest(Request, key=61, versions="0", flexible="0+"):
    topics: list[TopicRequest]


class ProducerState(Struct):
    producer_id: Int64
    producer_epoch: Int32
    last_sequence: Int32 = -1
    last_timestamp: Int64 = -1
    coordinator_epoch: Int32
    current_txn_start_offset: Int64 = -1


class PartitionResponse(Struct):
    partition_index: Int32
    error_code: Int16
    error_message: NullableString = None
    active_producers: list[ProducerState]


class TopicResponse(Struct):
    name: String
    partitions: list[PartitionResponse]


class DescribeProducersResponse(Response, key=61, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    topics: list[TopicResponse]
