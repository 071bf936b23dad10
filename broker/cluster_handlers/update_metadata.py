"""UpdateMetadata v7-8.

Behaviour
- The controller tells of all live brokers, and of the partitions that changed. Clients' Metadata shows it from then on.
- Controllers that were deposed and messages for an earlier start of this broker are refused as in LeaderAndIsr.
- Not done: nothing.

Versions
- v7: topic ids (KIP-516), the oldest that `inter.broker.protocol.version` 2.8 sends. v8: KRaft controllers, which may
  say that the request lists all topics there are (KIP-866).
"""

from typing import TYPE_CHECKING

from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import CLUSTER, Operation
from kavka.cluster.promise import Promise
from kavka.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse

if TYPE_CHECKING:
    from kavka.broker.services import Services


@handles(UpdateMetadataRequest, versions="7-8", in_clusters=True)
def update_metadata(
    request: UpdateMetadataRequest, context: Context, services: "Services"
) -> UpdateMetadataResponse | Promise[UpdateMetadataResponse]:
    context.require(Operation.CLUSTER_ACTION, CLUSTER)
    local_broker, number = services.local_broker, context.correlation_id
    return local_broker.once_registered(lambda: local_broker.update_metadata(request, number))
