"""ApiVersions v0-4.

Behaviour
- Lists what the registered handlers serve, and the finalised features. Asked before authentication by every client.
- An unknown version is answered in version 0 with UNSUPPORTED_VERSION and the versions of this API alone (KIP-511).
- Not done: nothing.

Versions
- v3: the client names its software; features in the answer (KIP-584), but for supported ones whose lowest version is
  0, which old clients stumble over. v4: those too.
"""

import re
from typing import Final

from kavka.broker.requests.handling import Context, Services, handles
from kavka.cluster.features import SUPPORTED
from kavka.protocol.api import ApiKey
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

SOFTWARE_NAME: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?", re.ASCII)
SHOWS_ZERO: Final = 4
OWN_VERSIONS: Final = (0, 4)


def _own_versions(_request: object, code: ErrorCode, _message: str | None) -> ApiVersionsResponse:
    known = [_shown(ApiKey.API_VERSIONS, OWN_VERSIONS)] if code is ErrorCode.UNSUPPORTED_VERSION else []
    return ApiVersionsResponse(error_code=code, api_keys=known)


@handles(ApiVersionsRequest, versions=f"{OWN_VERSIONS[0]}-{OWN_VERSIONS[1]}", error_answer=_own_versions)
def api_versions(request: ApiVersionsRequest, context: Context, services: Services) -> ApiVersionsResponse:
    if context.api_version >= 3:
        names = (request.client_software_name, request.client_software_version)
        if not all(SOFTWARE_NAME.fullmatch(name) for name in names):
            raise BrokerError(ErrorCode.INVALID_REQUEST)
    agreed = services.features
    return ApiVersionsResponse(
        error_code=ErrorCode.NONE,
        api_keys=[_shown(key, versions) for key, versions in sorted(services.served_versions.items())],
        supported_features=[
            SupportedFeatureKey(name=name, min_version=lowest, max_version=highest)
            for name, (lowest, highest) in SUPPORTED.items()
            if lowest > 0 or context.api_version >= SHOWS_ZERO
        ],
        finalized_features_epoch=agreed.epoch,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in agreed.levels.items()
            if level > 0
        ],
    )


def _shown(key: int, versions: tuple[int, int]) -> ApiVersion:
    return ApiVersion(api_key=key, min_version=versions[0], max_version=versions[1])
