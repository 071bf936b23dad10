"""DescribeGroups (key 15): state and members of classic groups.

v3 authorized operations (KIP-430) · v4 static members (KIP-345) · v5 flexible
v6 GROUP_ID_NOT_FOUND with a message (KIP-1043)
"""

from kavka.protocol.schema import Bool, Bytes, Int16, Int32, NullableString, Request, Response, String, Struct, since


class DescribeGroupsRequest(Request, key=15, versions="0-6", flexible="5+"):
    groups: list[String]
    include_authorized_operations: Bool = since(3)


class DescribedGroupMember(Struct):
    member_id: String
    group_instance_id: NullableString = since(4, default=None, ignorable=True)
    client_id: String
    client_host: String
    member_metadata: Bytes
    member_assignment: Bytes


class DescribedGroup(Struct):
    error_code: Int16
    error_message: NullableString = since(6, default=None)
    group_id: String
    group_state: String
    protocol_type: String
    protocol_data: String
    members: list[DescribedGroupMember]
    authorized_operations: Int32 = since(3, default=-(2**31))


class DescribeGroupsResponse(Response, key=15, versions="0-6", flexible="5+"):
    throttle_time_ms: Int32 = since(1, ignorable=True)
    groups: list[DescribedGroup]
