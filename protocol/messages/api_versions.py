"""ApiVersions (key 18): which APIs and versions a broker serves; every client's first request.

The answer always has response header v0, and goes out as v0 with UNSUPPORTED_VERSION to a client that asks too high.
v1 throttle time · v3 flexible, the client's software (KIP-511), finalized features (KIP-584)
v4 features with minimum 0
"""

from kavka.protocol.schema import Bool, Int16, Int32, Int64, Request, Response, String, Struct, since


class ApiVersionsRequest(Request, key=18, versions="0-4", flexible="3+"):
    client_software_name: String = since(3, ignorable=True)
    client_software_version: String = since(3, ignorable=True)


class ApiVersion(Struct):
    api_key: Int16
    min_version: Int16
    max_version: Int16


class SupportedFeatureKey(Struct):
    name: String
    min_version: Int16
    max_version: Int16


class FinalizedFeatureKey(Struct):
    name: String
    max_version_level: Int16
    min_version_level: Int16


class ApiVersionsResponse(Response, key=18, versions="0-4", flexible="3+"):
    error_code: Int16
    api_keys: list[ApiVersion]
    throttle_time_ms: Int32 = since(1, ignorable=True)
    supported_features: list[SupportedFeatureKey] = since(3, tag=0, ignorable=True)
    finalized_features_epoch: Int64 = since(3, tag=1, default=-1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = since(3, tag=2, ignorable=True)
    zk_migration_ready: Bool = since(3, tag=3, ignorable=True)
