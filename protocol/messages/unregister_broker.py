"""UnregisterBroker (key 64): a broker that will not come back is forgotten by KRaft's controllers (KIP-500).

v0 is flexible already
"""

from kavka.protocol.schema import Int16, Int32, NullableString, Request, Response


class UnregisterBrokerRequest(Request, key=64, versions="0", flexible="0+"):
    broker_id: Int32


class UnregisterBrokerResponse(Response, key=64, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: NullableString = None
