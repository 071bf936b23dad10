"""DescribeClientQuotas v0-1 (KIP-546).

Behaviour
- The quotas that are stored of users, client ids and addresses, by a filter; needs DESCRIBE_CONFIGS on the cluster.
- A filter names types with a name, their default, or whatever there is. Unless it is strict, entities with other types
  besides are found too.
- A type named twice, an empty one, and addresses beside others are INVALID_REQUEST; other types UNSUPPORTED_VERSION.
- Who asks waits for the registry, however long that is out of reach; no thread that serves others does.
- Not done: nothing.

Versions
- v1 is the first flexible one; otherwise both are alike.
"""

from typing import TYPE_CHECKING

from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import CLUSTER, Operation
from kavka.cluster.promise import Promise
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

if TYPE_CHECKING:
    from kavka.broker.quotas.describing import Component
    from kavka.broker.services import Services
    from kavka.cluster.registry.base import Registry


def _refused(
    _request: DescribeClientQuotasRequest, code: ErrorCode, message: str | None
) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=code, error_message=message, entries=None)


@handles(DescribeClientQuotasRequest, versions="0-1", error_answer=_refused)
def describe_client_quotas(
    request: DescribeClientQuotasRequest, context: Context, services: "Services"
) -> Promise[DescribeClientQuotasResponse]:
    context.require(Operation.DESCRIBE_CONFIGS, CLUSTER)
    components = _components(request)
    return services.registry_worker().run(lambda: _described(components, services.registry, strict=request.strict))


def _described(
    components: "dict[str, Component]", registry: "Registry", *, strict: bool
) -> DescribeClientQuotasResponse:
    # Not needed before somebody asks.
    from kavka.broker.quotas.describing import describe

    entries = [
        EntryData(
            entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
            values=[ValueData(key=key, value=value) for key, value in values.items()],
        )
        for entity, values in describe(registry, components, strict=strict)
    ]
    return DescribeClientQuotasResponse(error_code=ErrorCode.NONE, error_message="", entries=entries)


def _components(request: DescribeClientQuotasRequest) -> "dict[str, Component]":
    from kavka.broker.quotas.describing import ANY, CLIENT_ID, DEFAULT, EXACT, IP, USER, Component

    components: dict[str, Component] = {}
    words = {USER: "user", CLIENT_ID: "client", IP: "ip"}
    for each in request.components:
        kind = each.entity_type
        if not kind:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "Unexpected empty filter component entity type")
        if kind not in words:
            raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, f"Custom entity type '{kind[:100]}' not supported")
        if kind in components:
            reason = f"Duplicate {words[kind]} filter component entity type"
            raise BrokerError(ErrorCode.INVALID_REQUEST, reason)
        if each.match_type not in (EXACT, DEFAULT, ANY) or (each.match_type == EXACT and each.match is None):
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"Unexpected match type: {each.match_type}")
        components[kind] = Component(each.match_type, each.match)
    return components
