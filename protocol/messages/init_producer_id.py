"""InitProducerId (key 22): a producer id for idempotent or transactional producing.

v2 flexible · v3 the producer's current id and epoch (KIP-360) · v4 PRODUCER_FENCED · v5 TRANSACTION_ABORTABLE
v6 two-phase commit (KIP-939; Kafka 4.3 holds it to be unstable)
"""

from kavka.protocol.schema import Bool, Int16, Int32, Int64, NullableString, Request, Response, since


class InitProducerIdRequest(Request, key=22, versions="0-6", flexible="2+"):
    transactional_id: NullableString
    transaction_timeout_ms: Int32
    producer_id: Int64 = since(3, default=-1)
    producer_epoch: Int16 = since(3, default=-1)
    enable2_pc: Bool = since(6)
    keep_prepared_txn: Bool = since(6)


class InitProducerIdResponse(Response, key=22, versions="0-6", flexible="2+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    producer_id: Int64 = -1
    producer_epoch: Int16
    ongoing_txn_producer_id: Int64 = since(6, default=-1)
    ongoing_txn_producer_epoch: Int16 = since(6, default=-1)
