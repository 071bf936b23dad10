"""SaslAuthenticate (key 36): one step of a SASL exchange (KIP-152).

v1 session lifetime (KIP-368) · v2 flexible
"""

from kavka.protocol.schema import Bytes, Int16, Int64, NullableString, Request, Response, since


class SaslAuthenticateRequest(Request, key=36, versions="0-2", flexible="2+"):
    auth_bytes: Bytes


class SaslAuthenticateResponse(Response, key=36, versions="0-2", flexible="2+"):
    error_code: Int16
    error_message: NullableString
    auth_bytes: Bytes
    session_lifetime_ms: Int64 = since(1, ignorable=True)
