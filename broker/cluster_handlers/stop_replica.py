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
from kavka.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse

if TYPE_CHECKING:
    from kavka.broker.services import Services


@handles(StopReplicaRequest, versions="3-4", in_clusters=True)
def stop_replica(
    request: StopReplicaRequest, context: Context, services: "Services"
) -> StopReplicaResponse | Promise[StopReplicaResponse]:
    context.require(Operation.CLUSTER_ACTION, CLUSTER)
    local_broker, number = services.local_broker, context.correlation_id
    return local_broker.once_registered(lambda: local_broker.stop_replica(request, number))
