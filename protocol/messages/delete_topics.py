"""DeleteTopics (key 20): delete topics.

v1 throttle time · v4 flexible · v5 error messages · v6 topics by id (KIP-516)
"""

from kavka.protocol.schema import Int16, Int32, NullableString, Request, Response, String, Struct, Uuid, since


class DeleteTopicState(Struct):
    name: NullableString = None
    topic_id: Uuid


class DeleteTopicsRequest(Request, key=20, versions="0-6", flexible="4+"):
    topics: list[DeleteTopicState] = since(6)
    topic_names: list[String] = since(0, until=5, ignorable=True)
    timeout_ms: Int32


class DeletableTopicResult(Struct):
    name: NullableString = since(0, nullable_since=6)
    topic_id: Uuid = since(6, ignorable=True)
    error_code: Int16
    error_message: NullableString = since(5, default=None, ignorable=True)


class DeleteTopicsResponse(Response, key=20, versions="0-6", flexible="4+"):
    throttle_time_ms: Int32 = since(1, ignorable=True)
    responses: list[DeletableTopicResult]
