"""CreateAcls (key 30): add access control entries.

v1 prefixed resource patterns (KIP-290) · v2 flexible · v3 user resources (KIP-373)
"""

from kavka.protocol.schema import Int8, Int16, Int32, NullableString, Request, Response, String, Struct, since


class AclCreation(Struct):
    resource_type: Int8
    resource_name: String
    resource_pattern_type: Int8 = since(1, default=3)
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


class CreateAclsRequest(Request, key=30, versions="0-3", flexible="2+"):
    creations: list[AclCreation]


class AclCreationResult(Struct):
    error_code: Int16
    error_message: NullableString


class CreateAclsResponse(Response, key=30, versions="0-3", flexible="2+"):
    throttle_time_ms: Int32 = 0
    results: list[AclCreationResult]
