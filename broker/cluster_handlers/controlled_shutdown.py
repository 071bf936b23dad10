"""ControlledShutdown v0-3.

Behaviour
- A broker that is about to stop has the controller move its leaderships away. The answer names the partitions that it
  still leads because nobody else can; those it holds alone are not among them.
- Only the controller does it: NOT_CONTROLLER elsewhere. STALE_BROKER_EPOCH for an earlier start of that broker
  (KIP-380), BROKER_NOT_AVAILABLE for one that is not alive.
- Not done: nothing.

Versions
- v0: its request header has no client id. v2: the broker's epoch. v3: flexible.
"""

from typing import TYPE_CHECKING

from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import CLUSTER, Operation
from kavka.cluster.promise import Promise
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)

if TYPE_CHECKING:
    from kavka.broker.services import Services


@handles(ControlledShutdownRequest, versions="0-3", in_clusters=True)
def controlled_shutdown(
    request: ControlledShutdownRequest, context: Context, services: "Services"
) -> Promise[ControlledShutdownResponse]:
    context.require(Operation.CLUSTER_ACTION, CLUSTER)
    return services.controller.controlled_shutdown(request.broker_id, request.broker_epoch).then(_remaining)


def _remaining(partitions: list[tuple[str, int]]) -> ControlledShutdownResponse:
    return ControlledShutdownResponse(
        error_code=ErrorCode.NONE,
        remaining_partitions=[
            RemainingPartition(topic_name=topic, partition_index=index) for topic, index in partitions
        ],
    )
