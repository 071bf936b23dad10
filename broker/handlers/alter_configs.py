"""AlterConfigs v0-2.

Behaviour
- Replaces all settings of a topic, of a group, of this broker, or of the cluster's dynamic defaults (an empty broker
  name): what the request does not name is gone. IncrementalAlterConfigs is the better way (KIP-339).
- Answered when this broker has taken the settings in; each resource goes its own way.
- Refused: unknown settings and wrong values of topics and groups (INVALID_CONFIG); read-only broker settings, wrong
  values of brokers, null values, a resource named twice, loggers (INVALID_REQUEST).
- Not done: `alter.config.policy.class.name`.

Versions
- v2 is the first flexible one; otherwise all are alike.
"""

from typing import TYPE_CHECKING

from kavka.broker.requests.handling import Context, handles
from kavka.broker.settings.config_alteration import (
    ResourceOutcome,
    alter_config,
    alter_each,
    check_resource,
    entries_of,
    refuse_all,
)
from kavka.cluster.promise import Promise
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from kavka.broker.services import Services


def _refused(request: AlterConfigsRequest, code: ErrorCode, message: str | None) -> AlterConfigsResponse:
    return _response(refuse_all(request.resources, code, message))


@handles(AlterConfigsRequest, versions="0-2", error_answer=_refused)
def alter_configs(
    request: AlterConfigsRequest, context: Context, services: "Services"
) -> Promise[AlterConfigsResponse]:
    return alter_each(
        request.resources,
        context,
        lambda each: _check(each, services),
        lambda each: _replace(each, services, validate_only=request.validate_only),
        _response,
    )


def _check(each: AlterConfigsResource, services: "Services") -> None:
    nulls = [setting.name for setting in each.configs if setting.value is None]
    if nulls:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {','.join(nulls)}")
    check_resource(each, services)


def _replace(each: AlterConfigsResource, services: "Services", *, validate_only: bool) -> Promise[None]:
    new = {setting.name: setting.value or "" for setting in each.configs}
    kind, name = each.resource_type, each.resource_name
    return alter_config(kind, name, lambda _: dict(new), services, validate_only=validate_only)


def _response(outcomes: list[ResourceOutcome]) -> AlterConfigsResponse:
    return AlterConfigsResponse(throttle_time_ms=0, responses=entries_of(outcomes, AlterConfigsResourceResponse))
