"""UpdateFeatures (key 57): change what the cluster has agreed on (KIP-584).

v0 is flexible already · v1 kinds of downgrades, validation alone (KIP-778) · v2 one error for all
"""

from kavka.protocol.schema import Bool, Int8, Int16, Int32, NullableString, Request, Response, String, Struct, since


class FeatureUpdateKey(Struct):
    feature: String
    max_version_level: Int16
    allow_downgrade: Bool = since(0, until=0)
    upgrade_type: Int8 = since(1, default=1)


class UpdateFeaturesRequest(Request, key=57, versions="0-2", flexible="0+"):
    timeout_ms: Int32 = 60000
    feature_updates: list[FeatureUpdateKey]
    validate_only: Bool = since(1, default=False)


class UpdatableFeatureResult(Struct):
    feature: String
    error_code: Int16
    error_message: NullableString


class UpdateFeaturesResponse(Response, key=57, versions="0-2", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: NullableString
    results: list[UpdatableFeatureResult] = since(0, until=1, ignorable=True)
