"""ExpireDelegationToken (key 40): have a delegation token expire after a period, or at once (KIP-48).

v2 flexible
"""

from kavka.protocol.schema import Bytes, Int16, Int32, Int64, Request, Response


class ExpireDelegationTokenRequest(Request, key=40, versions="0-2", flexible="2+"):
    hmac: Bytes
    expiry_time_period_ms: Int64


class ExpireDelegationTokenResponse(Response, key=40, versions="0-2", flexible="2+"):
    error_code: Int16
    expiry_timestamp_ms: Int64
    throttle_time_ms: Int32 = 0
