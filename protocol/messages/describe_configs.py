"""DescribeConfigs (key 32): all settings of topics and brokers, and where their values come from.

v1 sources and synonyms (KIP-226), instead of is_default · v3 types and documentation (KIP-569) · v4 flexible
"""

from kavka.protocol.schema import Bool, Int8, Int16, Int32, NullableString, Request, Response, String, Struct, since


class DescribeConfigsResource(Struct):
    resource_type: Int8
    resource_name: String
    configuration_keys: list[String] | None


class DescribeConfigsRequest(Request, key=32, versions="0-4", flexible="4+"):
    resources: list[DescribeConfigsResource]
    include_synonyms: Bool = since(1)
    include_documentation: Bool = since(3)


class DescribeConfigsSynonym(Struct):
    name: String
    value: NullableString
    source: Int8


class DescribeConfigsResourceResult(Struct):
    name: String
    value: NullableString
    read_only: Bool
    is_default: Bool = since(0, until=0)
    config_source: Int8 = since(1, default=-1, ignorable=True)
    is_sensitive: Bool
    synonyms: list[DescribeConfigsSynonym] = since(1, ignorable=True)
    config_type: Int8 = since(3, ignorable=True)
    documentation: NullableString = since(3, ignorable=True)


class DescribeConfigsResult(Struct):
    error_code: Int16
    error_message: NullableString
    resource_type: Int8
    resource_name: String
    configs: list[DescribeConfigsResourceResult]


class DescribeConfigsResponse(Response, key=32, versions="0-4", flexible="4+"):
    throttle_time_ms: Int32 = 0
    results: list[DescribeConfigsResult]
