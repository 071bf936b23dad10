"""FindCoordinator v0-6.

Behaviour
- Which broker coordinates a consumer group or a transactional id: the leader of the internal topic's partition that its
  name hashes to, at its endpoint on the client's listener.
- An internal topic that does not exist yet is created. The answer waits up to CREATION_WAIT_MS for that, then says
  COORDINATOR_NOT_AVAILABLE, which clients retry.
- Share groups (KIP-932) have no coordinator here: who may ask is told INVALID_REQUEST, as by Kafka 3.9.
- Not done: share groups.

Versions
- v1: transactional ids too. v4: several keys in one request (KIP-699). v6: keys of share groups, refused as
  INVALID_REQUEST.
"""

from typing import TYPE_CHECKING, Any, Final

from kavka.broker.metadata.first_metadata import once_known
from kavka.broker.metadata.topic_views import reached_endpoint
from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import CLUSTER, Operation, Resource, group, transactional_id
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

if TYPE_CHECKING:
    from kavka.broker.coordination.coordination import AnyCoordination
    from kavka.broker.services import Services

GROUP: Final = 0
TRANSACTION: Final = 1
SHARE: Final = 2
NO_NODE: Final = -1
CREATION_WAIT_MS: Final = 10_000
FIRST_BATCHED: Final = 4
SHARES_SINCE: Final = 6


def _refused(request: FindCoordinatorRequest, code: ErrorCode, message: str | None) -> FindCoordinatorResponse:
    if not request.coordinator_keys:
        return FindCoordinatorResponse(error_code=code, error_message=message, node_id=NO_NODE, port=NO_NODE)
    return FindCoordinatorResponse(
        coordinators=[_failed(key, BrokerError(code, message)) for key in request.coordinator_keys]
    )


@handles(FindCoordinatorRequest, versions="0-6", error_answer=_refused)
def find_coordinator(request: FindCoordinatorRequest, context: Context, services: "Services") -> Any:
    # A response, or a promise of one.
    if not services.metadata.current.brokers:
        return once_known(services, lambda: find_coordinator(request, context, services))
    keys = request.coordinator_keys if context.api_version >= FIRST_BATCHED else [request.key]
    coordination = _coordination(request.key_type, services)
    denied = _denied(keys, request.key_type, context)
    if coordination is None or coordination.creation.exists or denied.keys() >= set(keys):
        return _answer(keys, denied, coordination, context, services)
    created = services.purgatory.within(CREATION_WAIT_MS, coordination.create_topic(), lambda: None)
    return created.then(lambda _: _answer(keys, denied, coordination, context, services))


def _coordination(key_type: int, services: "Services") -> "AnyCoordination | None":
    if key_type == GROUP:
        return services.groups
    return services.transactions if key_type == TRANSACTION else None


def _denied(keys: list[str], key_type: int, context: Context) -> dict[str, BrokerError]:
    """The keys whose coordinator the client must not be told."""
    if key_type == SHARE and context.api_version >= SHARES_SINCE:
        return _refusals(dict.fromkeys(keys, CLUSTER), Operation.CLUSTER_ACTION, context)
    if key_type not in (GROUP, TRANSACTION):
        return {}
    resource = group if key_type == GROUP else transactional_id
    return _refusals({key: resource(key) for key in keys}, Operation.DESCRIBE, context)


def _refusals(resources: dict[str, Resource], operation: Operation, context: Context) -> dict[str, BrokerError]:
    refused = {}
    for key, resource in resources.items():
        try:
            context.require(operation, resource)
        except BrokerError as error:
            refused[key] = error
    return refused


def _answer(
    keys: list[str],
    denied: dict[str, BrokerError],
    coordination: "AnyCoordination | None",
    context: Context,
    services: "Services",
) -> FindCoordinatorResponse:
    answers = []
    for key in keys:
        try:
            if key in denied:
                raise denied[key]
            answers.append(_coordinator(key, coordination, context, services))
        except BrokerError as error:
            answers.append(_failed(key, error))
    if context.api_version >= FIRST_BATCHED:
        return FindCoordinatorResponse(coordinators=answers)
    only = answers[0]
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


def _failed(key: str, error: BrokerError) -> Coordinator:
    return Coordinator(
        key=key,
        node_id=NO_NODE,
        host="",
        port=NO_NODE,
        error_code=error.code,
        error_message=error.message or error.code.message,
    )


def _coordinator(
    key: str, coordination: "AnyCoordination | None", context: Context, services: "Services"
) -> Coordinator:
    """Raises BrokerError: what is wrong with that key."""
    if coordination is None:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "there is no coordinator for keys of that type")
    snapshot = services.metadata.current
    partition = snapshot.partition(coordination.topic.name, coordination.partition_of(key))
    endpoint = None
    if partition is not None and partition.leader >= 0:
        endpoint = snapshot.endpoint(partition.leader, context.listener_name, reached_endpoint(context))
    if partition is None or endpoint is None:
        raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return Coordinator(
        key=key,
        node_id=partition.leader,
        host=endpoint.host,
        port=endpoint.port,
        error_code=ErrorCode.NONE,
        # What Kafka says of success.
        error_message="" if context.api_version >= FIRST_BATCHED else ErrorCode.NONE.name,
    )
