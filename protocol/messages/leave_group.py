"""LeaveGroup (key 13): members leave their classic group.

v3 several members in one request (KIP-345) · v4 flexible · v5 reasons (KIP-800)
"""

from kavka.protocol.schema import Int16, Int32, NullableString, Request, Response, String, Struct, since


class MemberIdentity(Struct):
    member_id: String
    group_instance_id: NullableString = None
    reason: NullableString = since(5, default=None, ignorable=True)


class LeaveGroupRequest(Request, key=13, versions="0-5", flexible="4+"):
    group_id: String
    member_id: String = since(0, until=2)
    members: list[MemberIdentity] = since(3)


class MemberResponse(Struct):
    member_id: String
    group_instance_id: NullableString
    error_code: Int16


class LeaveGroupResponse(Response, key=13, versions="0-5", flexible="4+"):
    throttle_time_ms: Int32 = since(1, ignorable=True)
    error_code: Int16
    members: list[MemberResponse] = since(3)
