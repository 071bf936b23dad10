"""ListConfigResources (key 74): the resources of given types that have, or may have, a configuration.

v0 lists client metrics subscriptions (ListClientMetricsResources, KIP-714) · v1 asks for types, and answers with them
(KIP-1142)
"""

from kavka.protocol.schema import Int8, Int16, Int32, Request, Response, String, Struct, since


class ListConfigResourcesRequest(Request, key=74, versions="0-1", flexible="0+"):
    resource_types: list[Int8] = since(1)


class ConfigResource(Struct):
    resource_name: String
    resource_type: Int8 = since(1, default=16, ignorable=True)


class ListConfigResourcesResponse(Response, key=74, versions="0-1", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    config_resources: list[ConfigResource]
