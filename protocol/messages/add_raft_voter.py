"""AddRaftVoter (key 80): one more of KRaft's controllers votes (KIP-853).

v0 is flexible already · v1 answered before it is committed (KIP-1186)
"""

from kavka.protocol.schema import (
    Bool,
    Int16,
    Int32,
    NullableString,
    Request,
    Response,
    String,
    Struct,
    Uint16,
    Uuid,
    since,
)


class Listener(Struct):
    name: String
    host: String
    port: Uint16


class AddRaftVoterRequest(Request, key=80, versions="0-1", flexible="0+"):
    cluster_id: NullableString
    timeout_ms: Int32
    voter_id: Int32
    voter_directory_id: Uuid
    listeners: list[Listener]
    ack_when_committed: Bool = since(1, default=True)


class AddRaftVoterResponse(Response, key=80, versions="0-1", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: NullableString = None
