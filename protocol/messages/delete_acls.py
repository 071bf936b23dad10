"""DeleteAcls (key 31): remove the access control entries that match filters.

v1 prefixed resource patterns (KIP-290) · v2 flexible · v3 user resources (KIP-373)
"""

from kavka.protocol.schema import Int8, Int16, Int32, NullableString, Request, Response, String, Struct, since


class DeleteAclsFilter(Struct):
    resource_type_filter: Int8
    resource_name_filter: NullableString
    pattern_type_filter: Int8 = since(1, default=3)
    principal_filter: NullableString
    host_filter: NullableString
    operation: Int8
    permission_type: Int8


class DeleteAclsRequest(Request, key=31, versions="0-3", flexible="2+"):
    filters: list[DeleteAclsFilter]


class DeleteAclsMatchingAcl(Struct):
    error_code: Int16
    error_message: NullableString
    resource_type: Int8
    resource_name: String
    pattern_type: Int8 = since(1, default=3)
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


class DeleteAclsFilterResult(Struct):
    error_code: Int16
    error_message: NullableString
    matching_acls: list[DeleteAclsMatchingAcl]


class DeleteAclsResponse(Response, key=31, versions="0-3", flexible="2+"):
    throttle_time_ms: Int32 = 0
    filter_results: list[DeleteAclsFilterResult]
