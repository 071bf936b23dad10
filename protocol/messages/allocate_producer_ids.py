"""AllocateProducerIds (key 67): a broker asks the controller for a block of producer ids (KIP-730).

v0 is flexible already
"""

from kavka.protocol.schema import Int16, Int32, Int64, Request, Response


class AllocateProducerIdsRequest(Request, key=67, versions="0", flexible="0+"):
    broker_id: Int32
    broker_epoch: Int64 = -1


class AllocateProducerIdsResponse(Response, key=67, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    producer_id_start: Int64
    producer_id_len: Int32
