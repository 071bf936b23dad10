"""IncrementalAlterConfigs (key 44): set, delete, append to or subtract from single settings (KIP-339).

v1 flexible
"""

from kavka.protocol.schema import Bool, Int8, Int16, Int32, NullableString, Request, Response, String, Struct


class AlterableConfig(Struct):
    name: String
    config_operation: Int8
    value: NullableString


class AlterConfigsResource(Struct):
    resource_type: Int8
    resource_name: String
    configs: list[AlterableConfig]


class IncrementalAlterConfigsRequest(Request, key=44, versions="0-1", flexible="1+"):
    resources: list[AlterConfigsResource]
    validate_only: Bool


class AlterConfigsResourceResponse(Struct):
    error_code: Int16
    error_message: NullableString
    resource_type: Int8
    resource_name: String


class IncrementalAlterConfigsResponse(Response, key=44, versions="0-1", flexible="1+"):
    throttle_time_ms: Int32 = 0
    responses: list[AlterConfigsResourceResponse]
