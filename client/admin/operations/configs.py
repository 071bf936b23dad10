"""DescribeConfigs, IncrementalAlterConfigs, AlterConfigs and ListConfigResources."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kavka.client.admin.operation import (
    Answered,
    Operation,
    Outcome,
    check,
    error_or,
)
from kavka.client.admin.targets import Anywhere, Broker, Target
from kavka.client.admin.types.configs import (
    AlterConfigOp,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    ConfigSynonym,
    ConfigType,
)
from kavka.client.call import RequestBuilder
from kavka.protocol.api import ApiKey
from kavka.protocol.messages import alter_configs as legacy
from kavka.protocol.messages import incremental_alter_configs as incremental
from kavka.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kavka.protocol.messages.list_config_resources import ListConfigResourcesRequest
from kavka.protocol.schema import Request

DOCUMENTED_SINCE: Final = 3
_OF_ONE_BROKER: Final = frozenset({ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER})


def _target(resource: ConfigResource) -> Target:
    """A broker's own settings are known to it alone; all else to any."""
    return Broker(int(resource.name)) if resource.type in _OF_ONE_BROKER and resource.name else Anywhere.ANY


def _checked(resources: Iterable[ConfigResource]) -> None:
    """Raises TypeError for what is no resource, ValueError for a broker that cannot be."""
    for resource in resources:
        if not isinstance(resource, ConfigResource):
            raise TypeError(f"a ConfigResource is expected, not {resource!r}")
        name = resource.name
        if resource.type in _OF_ONE_BROKER and name and not (name.isascii() and name.isdecimal()):
            raise ValueError(f"a broker's settings are asked for by its id, as in '1', not by {name!r}")


def _key(row: Any) -> ConfigResource:
    return ConfigResource(ConfigResourceType(row.resource_type), row.resource_name)


def describe_configs(
    resources: Sequence[ConfigResource], names: Sequence[str] | None, with_synonyms: bool, with_documentation: bool
) -> Operation[ConfigResource, dict[str, ConfigEntry]]:
    _checked(resources)

    def request(asked: Sequence[ConfigResource], _timeout_ms: int) -> RequestBuilder:
        rows = [
            DescribeConfigsResource(
                resource_type=resource.type,
                resource_name=resource.name,
                configuration_keys=None if names is None else list(names),
            )
            for resource in asked
        ]
        return RequestBuilder(
            ApiKey.DESCRIBE_CONFIGS,
            lambda version: DescribeConfigsRequest(
                resources=rows,
                include_synonyms=with_synonyms,
                # An older broker has none to give.
                include_documentation=with_documentation and version >= DOCUMENTED_SINCE,
            ),
        )

    def read(answered: Answered[ConfigResource]) -> Iterator[tuple[ConfigResource, Outcome[dict[str, ConfigEntry]]]]:
        for row in answered.body.results:
            entries = {config.name: _entry(config) for config in row.configs}
            yield _key(row), error_or(row, entries)

    return Operation(
        "describing configurations", resources, request=request, read=read, target=_target, versions=(1, 4)
    )


def _entry(row: Any) -> ConfigEntry:
    return ConfigEntry(
        row.name,
        row.value,
        ConfigSource(row.config_source),
        row.is_sensitive,
        row.read_only,
        tuple(ConfigSynonym(each.name, each.value, ConfigSource(each.source)) for each in row.synonyms),
        ConfigType(row.config_type),
        row.documentation,
    )


def incremental_alter_configs(
    changes: Mapping[ConfigResource, Sequence[AlterConfigOp]], validate_only: bool
) -> Operation[ConfigResource, None]:
    """Raises TypeError and ValueError for resources that cannot be."""
    _checked(changes)

    def request(asked: Sequence[ConfigResource], _timeout_ms: int) -> Request:
        rows = [
            incremental.AlterConfigsResource(
                resource_type=resource.type,
                resource_name=resource.name,
                configs=[
                    incremental.AlterableConfig(name=change.name, config_operation=change.operation, value=change.value)
                    for change in changes[resource]
                ],
            )
            for resource in asked
        ]
        return incremental.IncrementalAlterConfigsRequest(resources=rows, validate_only=validate_only)

    def does_not_append(resource: ConfigResource) -> bool:
        # What was appended to a list might be there twice.
        return all(change.operation is not AlterConfigOpType.APPEND for change in changes[resource])

    return Operation(
        "changing configurations",
        changes,
        request=request,
        read=_altered,
        target=_target,
        repeatable=does_not_append,
    )


def alter_configs(
    configs: Mapping[ConfigResource, Mapping[str, str | None]], validate_only: bool
) -> Operation[ConfigResource, None]:
    _checked(configs)

    def request(asked: Sequence[ConfigResource], _timeout_ms: int) -> Request:
        rows = [
            legacy.AlterConfigsResource(
                resource_type=resource.type,
                resource_name=resource.name,
                configs=[legacy.AlterableConfig(name=name, value=value) for name, value in configs[resource].items()],
            )
            for resource in asked
        ]
        return legacy.AlterConfigsRequest(resources=rows, validate_only=validate_only)

    return Operation("replacing configurations", configs, request=request, read=_altered, target=_target)


def _altered(answered: Answered[ConfigResource]) -> Iterator[tuple[ConfigResource, Outcome[None]]]:
    for row in answered.body.responses:
        yield _key(row), error_or(row, None)


def list_config_resources(types: Sequence[ConfigResourceType]) -> Operation[None, list[ConfigResource]]:
    def request(_items: Sequence[None], _timeout_ms: int) -> RequestBuilder:
        return RequestBuilder(
            ApiKey.LIST_CONFIG_RESOURCES,
            lambda version: ListConfigResourcesRequest(resource_types=list(types) if version > 0 else []),
        )

    def read(answered: Answered[None]) -> Iterator[tuple[None, list[ConfigResource]]]:
        check(answered.body.error_code)
        yield None, [_key(row) for row in answered.body.config_resources]

    # Version 0 knows clients' metrics alone.
    oldest = 0 if list(types) == [ConfigResourceType.CLIENT_METRICS] else 1
    return Operation("listing resources", [None], request=request, read=read, versions=(oldest, 1))
