"""DeleteGroups (key 42): delete groups that have no members.

v2 flexible
"""

from kavka.protocol.schema import Int16, Int32, Request, Response, String, Struct


class DeleteGroupsRequest(Request, key=42, versions="0-2", flexible="2+"):
    groups_names: list[String]


class DeletableGroupResult(Struct):
    group_id: String
    error_code: Int16


class DeleteGroupsResponse(Response, key=42, versions="0-2", flexible="2+"):
    throttle_time_ms: Int32 = 0
    results: list[DeletableGroupResult]
