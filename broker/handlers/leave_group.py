"""LeaveGroup v0-5.

Behaviour
- Members leave their classic group, each with an error of its own; an administrator removes a static member by its
  instance id alone (KIP-345). The rebalance begins before the answer is sent.
- A group that is unknown has unknown members: UNKNOWN_MEMBER_ID for each.
- Not done: nothing.

Versions
- v3: several members in one request; before, the one member's error is the request's. v5: reasons (KIP-800).
"""

from typing import TYPE_CHECKING

from kavka.broker.coordination.clients import client_of
from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import Operation, group
from kavka.cluster.promise import Promise
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse

if TYPE_CHECKING:
    from kavka.broker.services import Services


@handles(LeaveGroupRequest, versions="0-5")
def leave_group(
    request: LeaveGroupRequest, context: Context, services: "Services"
) -> LeaveGroupResponse | Promise[LeaveGroupResponse]:
    context.require(Operation.READ, group(request.group_id))
    if not request.group_id:
        raise BrokerError(ErrorCode.INVALID_GROUP_ID)
    promise: Promise[LeaveGroupResponse] = Promise(effects_complete=True)
    client = client_of(context)

    services.groups.run(
        request.group_id,
        lambda shard: shard.leave(request, client, promise.complete),
        lambda error: promise.complete(LeaveGroupResponse(error_code=error.code, members=[])),
    )
    return promise.or_response()
