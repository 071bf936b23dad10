"""StopReplica v3-4.

Behaviour
- The controller has this broker stop hosting partitions, and delete their logs where it says so. Each one fails by
  itself: FENCED_LEADER_EPOCH for an order older than what is known here, KAFKA_STORAGE_ERROR where the disk refuses.
- Controllers that were deposed and orders for an earlier start of this broker are refused as in LeaderAndIsr.
- Not done: nothing.

Versions
- v3: a leader epoch and a wish to delete for each partition (KIP-570), the oldest that
  `inter.broker.protocol.version` 2.8 sends. v4: KRaft controllers.
"""

from typing import TYPE_CHECKING

from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import CLUSTER, Operation
from kavka.cluster.promise import Promise
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.stop_replica import StopReplicaPartitionError, StopReplicaRequest, StopReplicaResponse

if TYPE_CHECKING:
    from kavka.broker.services import Services


def _refused(request: StopReplicaRequest, code: ErrorCode, _message: str | None) -> StopReplicaResponse:
    return StopReplicaResponse(
        error_code=code,
        partition_errors=[
            StopReplicaPartitionError(
                topic_name=each.topic_name, partition_index=partition.partition_index, error_code=code
            )
            for each in request.topic_states
            for partition in each.partition_states
        ],
    )


@handles(StopReplicaRequest, versions="3-4", error_answer=_refused, in_clusters=True)
def stop_replica(
    request: StopReplicaRequest, context: Context, services: "Services"
) -> StopReplicaResponse | Promise[StopReplicaResponse]:
    context.require(Operation.CLUSTER_ACTION, CLUSTER)
    local_broker, number = services.local_broker, context.correlation_id
    return local_broker.once_registered(lambda: local_broker.stop_replica(request, number))
