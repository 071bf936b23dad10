"""DescribeClientQuotas (key 48): quotas of users, client ids and addresses (KIP-546).

v1 flexible
"""

from kavka.protocol.schema import Bool, Float64, Int8, Int16, Int32, NullableString, Request, Response, String, Struct


class ComponentData(Struct):
    entity_type: String
    match_type: Int8
    match: NullableString


class DescribeClientQuotasRequest(Request, key=48, versions="0-1", flexible="1+"):
    components: list[ComponentData]
    strict: Bool


class EntityData(Struct):
    entity_type: String
    entity_name: NullableString


class ValueData(Struct):
    key: String
    value: Float64


class EntryData(Struct):
    entity: list[EntityData]
    values: list[ValueData]


class DescribeClientQuotasResponse(Response, key=48, versions="0-1", flexible="1+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: NullableString
    entries: list[EntryData] | None
