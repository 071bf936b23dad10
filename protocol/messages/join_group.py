"""JoinGroup (key 11): a member joins a classic group and waits until the rebalance is complete.

v1 rebalance timeout · v4 MEMBER_ID_REQUIRED (KIP-394) · v5 static members (KIP-345) · v6 flexible
v7 protocol type in the answer · v8 the reason for joining (KIP-800) · v9 skip_assignment (KIP-814)
"""

from kavka.protocol.schema import Bool, Bytes, Int16, Int32, NullableString, Request, Response, String, Struct, since


class JoinGroupRequestProtocol(Struct):
    name: String
    metadata: Bytes


class JoinGroupRequest(Request, key=11, versions="0-9", flexible="6+"):
    group_id: String
    session_timeout_ms: Int32
    rebalance_timeout_ms: Int32 = since(1, default=-1, ignorable=True)
    member_id: String
    group_instance_id: NullableString = since(5, default=None)
    protocol_type: String
    protocols: list[JoinGroupRequestProtocol]
    reason: NullableString = since(8, default=None, ignorable=True)


class JoinGroupResponseMember(Struct):
    member_id: String
    group_instance_id: NullableString = since(5, default=None, ignorable=True)
    metadata: Bytes


class JoinGroupResponse(Response, key=11, versions="0-9", flexible="6+"):
    throttle_time_ms: Int32 = since(2, ignorable=True)
    error_code: Int16
    generation_id: Int32 = -1
    protocol_type: NullableString = since(7, default=None, ignorable=True)
    protocol_name: NullableString = since(0, nullable_since=7)
    leader: String
    skip_assignment: Bool = since(9)
    member_id: String
    members: list[JoinGroupResponseMember]
