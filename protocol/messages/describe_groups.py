"""DescribeGroups (key 15): state and members of classic groups.

v3 authorized operations (KIP-430) · v4 static members (KIP-345) · v5 flexible
v6 GROUP_ID_NOT_FOUND with a message (KIP-1043)
The tagged fields from 10000 on are Kavka's own: what happened to a group lately, for those who ask.
"""

from typing import Final

from kavka.protocol.schema import (
    Bool,
    Bytes,
    Int16,
    Int32,
    Int64,
    NullableString,
    Request,
    Response,
    String,
    Struct,
    since,
)

HISTORY_TAG: Final = 10_000
"""Of Kavka's own fields in requests and answers: far from the tags that Kafka gives out, one after the other from 0."""


class DescribeGroupsRequest(Request, key=15, versions="0-6", flexible="5+"):
    groups: list[String]
    include_authorized_operations: Bool = since(3)
    include_history: Bool = since(5, tag=HISTORY_TAG, ignorable=True)


class GroupTransition(Struct):
    timestamp_ms: Int64
    old_state: String
    new_state: String
    reason: String
    epoch: Int32
    member_count: Int32
    begins_rebalance: Bool


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
    history: list[GroupTransition] = since(5, tag=HISTORY_TAG, ignorable=True)


class DescribeGroupsResponse(Response, key=15, versions="0-6", flexible="5+"):
    throttle_time_ms: Int32 = since(1, ignorable=True)
    groups: list[DescribedGroup]
