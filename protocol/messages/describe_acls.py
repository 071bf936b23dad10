"""DescribeAcls (key 29): the access control entries that match a filter.

v1 prefixed resource patterns (KIP-290) · v2 flexible · v3 user resources (KIP-373)
"""

from kavka.protocol.schema import Int8, Int16, Int32, NullableString, Request, Response, String, Struct, since


class DescribeAclsRequest(Request, key=29, versions="0-3", flexible="2+"):
    resource_type_filter: Int8
    resource_name_filter: NullableString
    pattern_type_filter: Int8 = since(1, default=3)
    principal_filter: NullableString
    host_filter: NullableString
    operation: Int8
    permission_type: Int8


class AclDescription(Struct):
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


class DescribeAclsResource(Struct):
    resource_type: Int8
    resource_name: String
    pattern_type: Int8 = since(1, default=3)
    acls: list[AclDescription]


class DescribeAclsResponse(Response, key=29, versions="0-3", flexible="2+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: NullableString
    resources: list[DescribeAclsResource]
