"""ListConfigResources v0-1 (KIP-1142).

Behaviour
- The resources that can have a configuration: all topics, all brokers (once as such, once for their loggers); and of
  groups those that have one of their own. Needs DESCRIBE_CONFIGS on the cluster.
- Without types all of them are listed; one that has no configurations is UNSUPPORTED_VERSION.
- Not done: client metrics subscriptions (KIP-714), of which there are none.

Versions
- v0 is ListClientMetricsResources: always empty. v1 asks for types and answers with them.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import CLUSTER, Operation
from kavka.broker.settings.config_answers import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

if TYPE_CHECKING:
    from kavka.broker.services import Services

ALL_TYPES: Final = (GROUP, CLIENT_METRICS, BROKER_LOGGER, BROKER, TOPIC)


def _refused(
    _request: ListConfigResourcesRequest, code: ErrorCode, _message: str | None
) -> ListConfigResourcesResponse:
    return ListConfigResourcesResponse(error_code=code, config_resources=[])


@handles(ListConfigResourcesRequest, versions="0-1", error_answer=_refused)
def list_config_resources(
    request: ListConfigResourcesRequest, context: Context, services: "Services"
) -> ListConfigResourcesResponse:
    context.require(Operation.DESCRIBE_CONFIGS, CLUSTER)
    wanted = {CLIENT_METRICS} if context.api_version == 0 else set(request.resource_types or ALL_TYPES)
    if not wanted <= set(ALL_TYPES):
        return _refused(request, ErrorCode.UNSUPPORTED_VERSION, None)
    return ListConfigResourcesResponse(
        error_code=ErrorCode.NONE,
        config_resources=[
            ConfigResource(resource_name=name, resource_type=resource_type)
            for resource_type in ALL_TYPES
            if resource_type in wanted
            for name in _names(resource_type, services)
        ],
    )


def _names(resource_type: int, services: "Services") -> Iterable[str]:
    metadata = services.metadata.current
    if resource_type == GROUP:
        return services.config.configured_groups()
    if resource_type in (BROKER, BROKER_LOGGER):
        return [str(broker_id) for broker_id in metadata.brokers]
    return metadata.topics.keys() if resource_type == TOPIC else ()
