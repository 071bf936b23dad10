"""Heartbeat (key 12): a member tells its group's coordinator that it is alive.

v1 throttle time · v3 static members (KIP-345) · v4 flexible
"""

from kavka.protocol.schema import Int16, Int32, NullableString, Request, Response, String, since


class HeartbeatRequest(Request, key=12, versions="0-4", flexible="4+"):
    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: NullableString = since(3, default=None)


class HeartbeatResponse(Response, key=12, versions="0-4", flexible="4+"):
    throttle_time_ms: Int32 = since(1, ignorable=True)
    error_code: Int16
