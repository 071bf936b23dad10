"""ControlledShutdown (key 7): a broker asks the controller to move its leaderships away before it stops.

v0 has a request header without client id · v2 broker epoch (KIP-380) · v3 flexible
"""

from kavka.protocol.schema import Int16, Int32, Int64, Request, Response, String, Struct, since


class ControlledShutdownRequest(Request, key=7, versions="0-3", flexible="3+"):
    broker_id: Int32
    broker_epoch: Int64 = since(2, default=-1, ignorable=True)


class RemainingPartition(Struct):
    topic_name: String
    partition_index: Int32


class ControlledShutdownResponse(Response, key=7, versions="0-3", flexible="3+"):
    error_code: Int16
    remaining_partitions: list[RemainingPartition]
