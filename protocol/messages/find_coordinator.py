"""FindCoordinator (key 10): which broker coordinates a group or transactional id.

v1 key types (KIP-98) · v3 flexible · v4 several keys in one request (KIP-699) · v5 TRANSACTION_ABORTABLE
v6 share keys (KIP-932)
"""

from kavka.protocol.schema import Int8, Int16, Int32, NullableString, Request, Response, String, Struct, since


class FindCoordinatorRequest(Request, key=10, versions="0-6", flexible="3+"):
    key: String = since(0, until=3)
    key_type: Int8 = since(1)
    coordinator_keys: list[String] = since(4)


class Coordinator(Struct):
    key: String
    node_id: Int32
    host: String
    port: Int32
    error_code: Int16
    error_message: NullableString


class FindCoordinatorResponse(Response, key=10, versions="0-6", flexible="3+"):
    throttle_time_ms: Int32 = since(1, ignorable=True)
    error_code: Int16 = since(0, until=3)
    error_message: NullableString = since(1, until=3, ignorable=True)
    node_id: Int32 = since(0, until=3)
    host: String = since(0, until=3)
    port: Int32 = since(0, until=3)
    coordinators: list[Coordinator] = since(4)
