"""SyncGroup (key 14): the leader hands out its assignment; the others ask for theirs.

v3 static members (KIP-345) · v4 flexible · v5 protocol type and name are checked (KIP-559)
"""

from kavka.protocol.schema import Bytes, Int16, Int32, NullableString, Request, Response, String, Struct, since


class SyncGroupRequestAssignment(Struct):
    member_id: String
    assignment: Bytes


class SyncGroupRequest(Request, key=14, versions="0-5", flexible="4+"):
    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: NullableString = since(3, default=None)
    protocol_type: NullableString = since(5, default=None, ignorable=True)
    protocol_name: NullableString = since(5, default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment]


class SyncGroupResponse(Response, key=14, versions="0-5", flexible="4+"):
    throttle_time_ms: Int32 = since(1, ignorable=True)
    error_code: Int16
    protocol_type: NullableString = since(5, default=None, ignorable=True)
    protocol_name: NullableString = since(5, default=None, ignorable=True)
    assignment: Bytes
