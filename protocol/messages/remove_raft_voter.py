"""RemoveRaftVoter (key 81): one of KRaft's controllers votes no longer (KIP-853).

v0 is flexible already
"""

from kavka.protocol.schema import Int16, Int32, NullableString, Request, Response, Uuid


class RemoveRaftVoterRequest(Request, key=81, versions="0", flexible="0+"):
    cluster_id: NullableString
    voter_id: Int32
    voter_directory_id: Uuid


class RemoveRaftVoterResponse(Response, key=81, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: NullableString = None
