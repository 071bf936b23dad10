"""Heartbeat v0-4.

Behaviour
- A member of a classic group says that it is alive; answered from memory, nothing is written.
- REBALANCE_IN_PROGRESS sends it to JoinGroup; the heartbeat still counts as a sign of life.
- While the group's partition is being loaded the answer is NONE: the member's session has not begun yet.
- Not done: nothing.

Versions
- v3: a static member is fenced by its instance id (KIP-345).
"""

from typing import TYPE_CHECKING

from kavka.broker.coordination.clients import client_of
from kavka.broker.requests.handling import Context, handles
from kavka.broker.requests.prepared_member import prepare_heartbeat
from kavka.broker.security.acl import Operation, group
from kavka.cluster.promise import Promise
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from kavka.broker.services import Services


@handles(HeartbeatRequest, versions="0-4", is_small=True)
def heartbeat(
    request: HeartbeatRequest, context: Context, services: "Services"
) -> HeartbeatResponse | Promise[HeartbeatResponse]:
    context.require(Operation.READ, group(request.group_id))
    if not request.group_id:
        raise BrokerError(ErrorCode.INVALID_GROUP_ID)
    prepare_heartbeat(request, context, services)
    promise: Promise[HeartbeatResponse] = Promise(effects_complete=True)
    client = client_of(context)

    def refused(error: BrokerError) -> None:
        is_loading = error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        promise.complete(HeartbeatResponse(error_code=ErrorCode.NONE if is_loading else error.code))

    services.groups.run(request.group_id, lambda shard: shard.heartbeat(request, client, promise.complete), refused)
    return promise.or_response()
