"""DescribeConfigs v0-4.

Behaviour
- Every setting of topics, of groups, there or not, of this broker (its id), of the cluster's dynamic defaults (an empty
  broker name), and the levels of this broker's loggers; or of each the keys asked for. Values with their source,
  secrets without a value.
- A resource that is unknown or belongs to another broker is refused by itself.
- Not done: client metrics subscriptions (INVALID_REQUEST); groups' settings for the share and streams protocols.

Versions
- v1: sources and synonyms instead of `is_default` (KIP-226). v3: types and documentation (KIP-569).
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import Operation
from kavka.broker.settings import logger_levels
from kavka.broker.settings.config_answers import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    entries_of,
    own_broker_id,
    require_on,
)
from kavka.config.describe import ConfigEntry
from kavka.config.values import Source, Type
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

if TYPE_CHECKING:
    from kavka.broker.services import Services

DESCRIBED_TYPES: Final = frozenset({TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP})
"""With any other, the whole request is refused."""
DYNAMIC_BROKER_LOGGER: Final = 6
"""Where a logger's level comes from (ConfigSource)."""


def _refused(request: DescribeConfigsRequest, code: ErrorCode, message: str | None) -> DescribeConfigsResponse:
    error = BrokerError(code, message)
    return DescribeConfigsResponse(throttle_time_ms=0, results=[_failed(each, error) for each in request.resources])


@handles(DescribeConfigsRequest, versions="0-4", error_answer=_refused)
def describe_configs(
    request: DescribeConfigsRequest, context: Context, services: "Services"
) -> DescribeConfigsResponse:
    if unknown := {each.resource_type for each in request.resources} - DESCRIBED_TYPES:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"Unexpected resource type {min(unknown)}")
    results = []
    for each in request.resources:
        try:
            require_on(context, Operation.DESCRIBE_CONFIGS, each.resource_type, each.resource_name)
            results.append(_described(each, request, context.api_version, services))
        except BrokerError as error:
            results.append(_failed(each, error))
    return DescribeConfigsResponse(throttle_time_ms=0, results=results)


def _described(
    each: DescribeConfigsResource, request: DescribeConfigsRequest, version: int, services: "Services"
) -> DescribeConfigsResult:
    if each.resource_type == BROKER_LOGGER:
        shown = _loggers(each.resource_name, services)
    else:
        entries = entries_of(each.resource_type, each.resource_name, services)
        shown = [_result(entry, request, version) for entry in entries]
    if each.configuration_keys:
        keys = set(each.configuration_keys)
        shown = [result for result in shown if result.name in keys]
    return DescribeConfigsResult(
        error_code=ErrorCode.NONE,
        error_message="",
        resource_type=each.resource_type,
        resource_name=each.resource_name,
        configs=shown,
    )


def _result(entry: ConfigEntry, request: DescribeConfigsRequest, version: int) -> DescribeConfigsResourceResult:
    synonyms: Iterable[DescribeConfigsSynonym] = ()
    if request.include_synonyms:
        synonyms = (
            DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in entry.synonyms
        )
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.is_read_only,
        is_default=version == 0 and entry.source is Source.DEFAULT,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=list(synonyms),
        config_type=entry.type_code,
        documentation=entry.documentation if request.include_documentation else None,
    )


def _loggers(broker: str, services: "Services") -> list[DescribeConfigsResourceResult]:
    if own_broker_id(broker, services) is None:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    return [
        DescribeConfigsResourceResult(
            name=name,
            value=level,
            read_only=False,
            config_source=DYNAMIC_BROKER_LOGGER,
            is_sensitive=False,
            config_type=Type.STRING,
            documentation=None,
        )
        for name, level in logger_levels.levels().items()
    ]


def _failed(each: DescribeConfigsResource, error: BrokerError) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=error.code,
        error_message=error.message or error.code.message,
        resource_type=each.resource_type,
        resource_name=each.resource_name,
        configs=[],
    )
