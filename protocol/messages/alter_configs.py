"""AlterConfigs (key 33): replace all dynamic settings of a topic or broker.

v2 flexible
"""

from kavka.protocol.schema import Bool, Int8, Int16, Int32, NullableString, Request, Response, String, Struct


class AlterableConfig(Struct):
    name: String
    value: NullableString


class AlterConfigsResource(Struct):
    resource_type: Int8
    resource_name: String
    configs: list[AlterableConfig]


class AlterConfigsRequest(Request, key=33, versions="0-2", flexible="2+"):
    resources: list[AlterConfigsResource]
    validate_only: Bool


class AlterConfigsResourceResponse(Struct):
    error_code: Int16
    error_message: NullableString
    resource_type: Int8
    resource_name: String


class AlterConfigsResponse(Response, key=33, versions="0-2", flexible="2+"):
    throttle_time_ms: Int32 = 0
    responses: list[AlterConfigsResourceResponse]
