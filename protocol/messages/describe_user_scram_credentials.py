"""DescribeUserScramCredentials (key 50): which SCRAM mechanisms users have (KIP-554).

v0 is flexible already
"""

from kavka.protocol.schema import Int8, Int16, Int32, NullableString, Request, Response, String, Struct


class UserName(Struct):
    name: String


class DescribeUserScramCredentialsRequest(Request, key=50, versions="0", flexible="0+"):
    users: list[UserName] | None


class CredentialInfo(Struct):
    mechanism: Int8
    iterations: Int32


class DescribeUserScramCredentialsResult(Struct):
    user: String
    error_code: Int16
    error_message: NullableString
    credential_infos: list[CredentialInfo]


class DescribeUserScramCredentialsResponse(Response, key=50, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: NullableString
    results: list[DescribeUserScramCredentialsResult]
