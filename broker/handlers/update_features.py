"""UpdateFeatures v0-2.

Behaviour
- The controller changes the levels that the cluster has agreed on, by the rules of Kafka 4's: up to what every
  registered broker can do, down only where the request says so, away with level 0. One that cannot be refuses the whole
  request, in every version: INVALID_UPDATE_VERSION. Brokers that are not the controller say NOT_CONTROLLER.
- The answer comes when this broker goes by the change, or after the request's timeout (REQUEST_TIMED_OUT).
- Not done: nothing.

Versions
- v0 says by a flag that a level may go down. v1: safe and unsafe downgrades (KIP-778), which are the same here, and
  validation alone. v2: no result for each feature.
"""

from typing import TYPE_CHECKING, Final, NoReturn

from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import CLUSTER, Operation
from kavka.cluster.controller.requests import FeatureUpdate, UpgradeType
from kavka.cluster.promise import Promise
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

if TYPE_CHECKING:
    from kavka.broker.services import Services

KINDS_SINCE: Final = 1
WITHOUT_RESULTS_SINCE: Final = 2


def _refused(request: UpdateFeaturesRequest, code: ErrorCode, message: str | None) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(error_code=code, error_message=message or code.message, results=[])


@handles(UpdateFeaturesRequest, versions="0-2", error_answer=_refused)
def update_features(
    request: UpdateFeaturesRequest, context: Context, services: "Services"
) -> UpdateFeaturesResponse | Promise[UpdateFeaturesResponse]:
    context.require(Operation.ALTER, CLUSTER)
    version = context.api_version
    updates = {each.feature: _update(each, version) for each in request.feature_updates}
    if len(updates) < len(request.feature_updates):
        raise BrokerError(ErrorCode.INVALID_REQUEST, "A feature is named twice.")
    changing = services.controller.update_features(list(updates.values()), validate_only=request.validate_only)

    def respond(_: None) -> UpdateFeaturesResponse:
        shown = updates if version < WITHOUT_RESULTS_SINCE else ()
        return UpdateFeaturesResponse(
            error_code=ErrorCode.NONE, error_message=None, results=[_changed(name) for name in shown]
        )

    return services.purgatory.within(max(0, request.timeout_ms), changing, _late).then(respond)


def _update(asked: FeatureUpdateKey, version: int) -> FeatureUpdate:
    kind = asked.upgrade_type
    if version < KINDS_SINCE:
        kind = UpgradeType.SAFE_DOWNGRADE if asked.allow_downgrade else UpgradeType.UPGRADE
    is_known = kind in tuple(UpgradeType)
    return FeatureUpdate(asked.feature, asked.max_version_level, UpgradeType(kind) if is_known else UpgradeType.UNKNOWN)


def _late() -> NoReturn:
    raise BrokerError(ErrorCode.REQUEST_TIMED_OUT)


def _changed(name: str) -> UpdatableFeatureResult:
    return UpdatableFeatureResult(feature=name, error_code=ErrorCode.NONE, error_message=ErrorCode.NONE.name)
