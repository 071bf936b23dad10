"""AllocateProducerIds v0.

Behaviour
- A broker asks the controller for a block of producer ids that nobody else gets (KIP-730).
- Only the controller does it: NOT_CONTROLLER elsewhere. BROKER_ID_NOT_REGISTERED for a broker that is not alive,
  STALE_BROKER_EPOCH for an earlier start of one.
- Not done: nothing.

Versions
- v0 is the only one.
"""

from typing import TYPE_CHECKING

from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import CLUSTER, Operation
from kavka.cluster.controller.requests import ProducerIdBlock
from kavka.cluster.promise import Promise
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse

if TYPE_CHECKING:
    from kavka.broker.services import Services


@handles(AllocateProducerIdsRequest, versions="0", in_clusters=True)
def allocate_producer_ids(
    request: AllocateProducerIdsRequest, context: Context, services: "Services"
) -> Promise[AllocateProducerIdsResponse]:
    context.require(Operation.CLUSTER_ACTION, CLUSTER)
    return services.controller.allocate_producer_id_block(request.broker_id, request.broker_epoch).then(_granted)


def _granted(block: ProducerIdBlock) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        producer_id_start=block.first,
        producer_id_len=block.last - block.first + 1,
    )
