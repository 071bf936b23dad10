"""CreateDelegationToken (key 38): a secret with which others authenticate as its owner for a while (KIP-48).

v2 flexible · v3 a token for somebody else (KIP-373)
"""

from kavka.protocol.schema import Bytes, Int16, Int32, Int64, NullableString, Request, Response, String, Struct, since


class CreatableRenewers(Struct):
    principal_type: String
    principal_name: String


class CreateDelegationTokenRequest(Request, key=38, versions="0-3", flexible="2+"):
    owner_principal_type: NullableString = since(3, default=None)
    owner_principal_name: NullableString = since(3, default=None)
    renewers: list[CreatableRenewers]
    max_lifetime_ms: Int64


class CreateDelegationTokenResponse(Response, key=38, versions="0-3", flexible="2+"):
    error_code: Int16
    principal_type: String
    principal_name: String
    token_requester_principal_type: String = since(3)
    token_requester_principal_name: String = since(3)
    issue_timestamp_ms: Int64
    expiry_timestamp_ms: Int64
    max_timestamp_ms: Int64
    token_id: String
    hmac: Bytes
    throttle_time_ms: Int32 = 0
