"""FindCoordinator v0-6.

Behaviour
- Which broker coordinates a consumer group or a transactional id.
- Not done: there are no coordinators on this broker. Each key is answered COORDINATOR_NOT_AVAILABLE, which clients
  retry; consumers that assign partitions themselves and commit nothing never ask.

Versions
- v1: transactional ids too. v4: several keys in one request (KIP-699). v6: keys of share groups, refused as
  INVALID_REQUEST.
"""

from typing import TYPE_CHECKING, Final

from kavka.broker.handling import Context, handles
from kavka.broker.security.acl import Operation, group, transactional_id
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

if TYPE_CHECKING:
    from kavka.broker.services import Services

GROUP: Final = 0
TRANSACTION: Final = 1
NO_NODE: Final = -1


@handles(FindCoordinatorRequest, versions="0-6")
def find_coordinator(
    request: FindCoordinatorRequest, context: Context, services: "Services"
) -> FindCoordinatorResponse:
    if context.api_version >= 4:
        keys = request.coordinator_keys
        return FindCoordinatorResponse(coordinators=[_coordinator(key, request.key_type, context) for key in keys])
    answer = _coordinator(request.key, request.key_type, context)
    return FindCoordinatorResponse(
        error_code=answer.error_code,
        error_message=answer.error_message,
        node_id=answer.node_id,
        host=answer.host,
        port=answer.port,
    )


def _coordinator(key: str, key_type: int, context: Context) -> Coordinator:
    try:
        if key_type == GROUP:
            context.require(Operation.DESCRIBE, group(key))
        elif key_type == TRANSACTION:
            context.require(Operation.DESCRIBE, transactional_id(key))
        else:
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"there is no coordinator for keys of type {key_type}")
        raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    except BrokerError as error:
        return Coordinator(
            key=key,
            node_id=NO_NODE,
            host="",
            port=NO_NODE,
            error_code=error.code,
            error_message=error.message or error.code.message,
        )
