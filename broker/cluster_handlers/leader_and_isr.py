"""LeaderAndIsr v5-7.

Behaviour
- The controller says which partitions this broker leads or follows; each one fails by itself. Done when answered.
- A controller that was deposed hears STALE_CONTROLLER_EPOCH; orders for an earlier start of this broker are refused
  with STALE_BROKER_EPOCH (KIP-380); a partition's order that is no newer than the last one changes nothing
  (STALE_CONTROLLER_EPOCH for that partition). Another topic of the same name is INCONSISTENT_TOPIC_ID.
- Not done: orders of KRaft controllers that migrate a cluster (the full type of KIP-866).

Versions
- v5: topic ids (KIP-516), the oldest that `inter.broker.protocol.version` 2.8 sends. v6: the leader's recovery state
  (KIP-704). v7: KRaft controllers.
"""

from typing import TYPE_CHECKING

from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import CLUSTER, Operation
from kavka.cluster.promise import Promise
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)

if TYPE_CHECKING:
    from kavka.broker.services import Services


def _refused(request: LeaderAndIsrRequest, code: ErrorCode, _message: str | None) -> LeaderAndIsrResponse:
    return LeaderAndIsrResponse(
        error_code=code,
        topics=[
            LeaderAndIsrTopicError(
                topic_id=each.topic_id,
                partition_errors=[
                    LeaderAndIsrPartitionError(partition_index=partition.partition_index, error_code=code)
                    for partition in each.partition_states
                ],
            )
            for each in request.topic_states
        ],
    )


@handles(LeaderAndIsrRequest, versions="5-7", error_answer=_refused, in_clusters=True)
def leader_and_isr(
    request: LeaderAndIsrRequest, context: Context, services: "Services"
) -> LeaderAndIsrResponse | Promise[LeaderAndIsrResponse]:
    context.require(Operation.CLUSTER_ACTION, CLUSTER)
    local_broker, number = services.local_broker, context.correlation_id
    return local_broker.once_registered(lambda: local_broker.leader_and_isr(request, number))
