"""IncrementalAlterConfigs v0-1.

Behaviour
- Sets, deletes, appends to and subtracts from single settings of topics, of groups, of this broker, of the cluster's
  dynamic defaults (an empty broker name), and the levels of this broker's loggers (KIP-339, KIP-412). Dynamic broker
  settings take effect at once.
- Appending and subtracting start from what is stored, else from the default; what is in a list already is not added
  again.
- Answered when this broker has taken the settings in; each resource goes its own way, all settings of one together.
- Refused: unknown settings and wrong values of topics and groups, append and subtract of what is no list
  (INVALID_CONFIG); read-only broker settings, wrong values of brokers, null values, a setting or resource named twice
  (INVALID_REQUEST).
- Not done: `alter.config.policy.class.name`; client metrics subscriptions.

Versions
- v1 is the first flexible one; otherwise both are alike.
"""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from kavka.broker.requests.handling import Context, handles
from kavka.broker.settings import logger_levels
from kavka.broker.settings.config_alteration import (
    ResourceOutcome,
    alter_config,
    alter_each,
    check_resource,
    entries_of,
    refuse_all,
    setting_row,
)
from kavka.broker.settings.config_answers import BROKER_LOGGER, own_broker_id
from kavka.cluster.promise import Promise
from kavka.config.values import Type
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from kavka.broker.services import Services

SET: Final = 0
DELETE: Final = 1
APPEND: Final = 2
SUBTRACT: Final = 3
"""Operations; the numbers are the wire's (AlterConfigOp.OpType)."""


def _refused(
    request: IncrementalAlterConfigsRequest, code: ErrorCode, message: str | None
) -> IncrementalAlterConfigsResponse:
    return _response(refuse_all(request.resources, code, message))


@handles(IncrementalAlterConfigsRequest, versions="0-1", error_answer=_refused)
def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, context: Context, services: "Services"
) -> Promise[IncrementalAlterConfigsResponse]:
    return alter_each(
        request.resources,
        context,
        lambda each: _check(each, services),
        lambda each: _alter(each, services, validate_only=request.validate_only),
        _response,
    )


def _check(each: AlterConfigsResource, services: "Services") -> None:
    _check_settings(each.configs)
    check_resource(each, services, with_loggers=True)


def _check_settings(settings: Iterable[AlterableConfig]) -> None:
    times = Counter(setting.name for setting in settings)
    if doubled := sorted(name for name, count in times.items() if count > 1):
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"Error due to duplicate config keys : {','.join(doubled)}")
    if nulls := [each.name for each in settings if each.value is None and each.config_operation != DELETE]:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {','.join(nulls)}")
    if any(each.config_operation not in (SET, DELETE, APPEND, SUBTRACT) for each in settings):
        raise BrokerError(ErrorCode.INVALID_REQUEST, "unknown operation")


def _alter(each: AlterConfigsResource, services: "Services", *, validate_only: bool) -> Promise[None]:
    if each.resource_type == BROKER_LOGGER:
        _alter_loggers(each, services, validate_only=validate_only)
        altered: Promise[None] = Promise()
        altered.complete(None)
        return altered

    def new_settings(stored: dict[str, str]) -> dict[str, str]:
        new = dict(stored)
        for setting in each.configs:
            _apply(each.resource_type, setting, new)
        return new

    return alter_config(each.resource_type, each.resource_name, new_settings, services, validate_only=validate_only)


def _apply(resource_type: int, setting: AlterableConfig, settings: dict[str, str]) -> None:
    name, value = setting.name, setting.value or ""
    if setting.config_operation == SET:
        settings[name] = value
        return
    if setting.config_operation == DELETE:
        settings.pop(name, None)
        return
    row = setting_row(resource_type, name)
    if row is None or row.type is not Type.LIST:
        verb = "append" if setting.config_operation == APPEND else "subtract"
        raise BrokerError(ErrorCode.INVALID_CONFIG, f"Config value {verb} is not allowed for config key: {name}")
    present = _items(settings.get(name, row.default_text or ""))
    given = _items(value)
    if setting.config_operation == APPEND:
        present += [item for item in dict.fromkeys(given) if item not in present]
    else:
        present = [item for item in present if item not in given]
    settings[name] = ",".join(present)


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _alter_loggers(each: AlterConfigsResource, services: "Services", *, validate_only: bool) -> None:
    if own_broker_id(each.resource_name, services) is None:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    levels = {setting.name: setting.value if setting.config_operation == SET else None for setting in each.configs}
    for setting in each.configs:
        if setting.config_operation not in (SET, DELETE):
            raise BrokerError(ErrorCode.INVALID_REQUEST, "loggers have no lists to append to or subtract from")
        logger_levels.check(setting.name, levels[setting.name])
    if not validate_only:
        for name, level in levels.items():
            logger_levels.set_level(name, level)
        # It may be the audit's: whether requests may pass that are not asked for hangs on it.
        services.changed()


def _response(outcomes: list[ResourceOutcome]) -> IncrementalAlterConfigsResponse:
    entries = entries_of(outcomes, AlterConfigsResourceResponse)
    return IncrementalAlterConfigsResponse(throttle_time_ms=0, responses=entries)
