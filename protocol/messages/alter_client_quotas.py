"""AlterClientQuotas (key 49): change quotas of users, client ids and addresses (KIP-546).

v1 flexible
"""

from kavka.protocol.schema import Bool, Float64, Int16, Int32, NullableString, Request, Response, String, Struct


class EntityData(Struct):
    entity_type: String
    entity_name: NullableString


class OpData(Struct):
    key: String
    value: Float64
    remove: Bool


class AlterClientQuotasRequestEntryData(Struct):
    entity: list[EntityData]
    ops: list[OpData]


class AlterClientQuotasRequest(Request, key=49, versions="0-1", flexible="1+"):
    entries: list[AlterClientQuotasRequestEntryData]
    validate_only: Bool


class AlterClientQuotasResponseEntryData(Struct):
    error_code: Int16
    error_message: NullableString
    entity: list[EntityData]


class AlterClientQuotasResponse(Response, key=49, versions="0-1", flexible="1+"):
    throttle_time_ms: Int32 = 0
    entries: list[AlterClientQuotasResponseEntryData]
