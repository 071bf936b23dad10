"""ConsumerGroupHeartbeat v0-1.

Behaviour
- A member joins a group of the consumer protocol (epoch 0), stays in it, or leaves (-1; -2 for a static member that
  will be back); it says what it is subscribed to and owns, and is told its epoch and what it shall own (KIP-848).
- Answered at once: nobody waits for others to join. UNSUPPORTED_VERSION if the protocol is switched off by
  `group.coordinator.rebalance.protocols`, or the cluster has not agreed on it (`group.version`).
- Topics that are named must be visible to the client, or the whole request is refused.
- A regular expression matches only topics that all who are subscribed to it in the group may describe.
- Not done: nothing.

Versions
- v1: subscription by regular expression (RE2's syntax), member ids made by the client (KIP-1082).
"""

from typing import TYPE_CHECKING

from kavka.broker.coordination.clients import subscriber_of
from kavka.broker.coordination.groups import require_consumer_protocol
from kavka.broker.requests.handling import Context, handles
from kavka.broker.requests.prepared_group import prepare_for_group
from kavka.broker.security.acl import Operation, group, topic
from kavka.cluster.promise import Promise
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from kavka.broker.services import Services


def _refused(
    _request: ConsumerGroupHeartbeatRequest, code: ErrorCode, message: str | None
) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        error_code=code, error_message=message or code.message, member_epoch=0, heartbeat_interval_ms=0
    )


@handles(ConsumerGroupHeartbeatRequest, versions="0-1", error_answer=_refused)
def consumer_group_heartbeat(
    request: ConsumerGroupHeartbeatRequest, context: Context, services: "Services"
) -> ConsumerGroupHeartbeatResponse | Promise[ConsumerGroupHeartbeatResponse]:
    require_consumer_protocol(services)
    context.require(Operation.READ, group(request.group_id))
    for name in request.subscribed_topic_names or ():
        context.require(Operation.DESCRIBE, topic(name))
    prepare_for_group(request.group_id, context, services)
    promise: Promise[ConsumerGroupHeartbeatResponse] = Promise(effects_complete=True)
    client = subscriber_of(context)

    services.groups.run(
        request.group_id,
        lambda shard: shard.consumer_heartbeat(request, client, promise.complete),
        lambda error: promise.complete(_refused(request, error.code, error.message)),
    )
    return promise.or_response()
