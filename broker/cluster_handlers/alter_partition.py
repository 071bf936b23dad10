"""AlterPartition v0-3.

Behaviour
- A leader asks the controller for another ISR (KIP-497), and hears of each partition's state as it is now.
- Only the controller does it: NOT_CONTROLLER elsewhere. STALE_BROKER_EPOCH for a leader that is dead or was started
  again since; what each partition may be refused for is said in `cluster/controller/isr_changes.py`.
- Not done: nothing.

Versions
- v0, v1: topics by name; v1: the leader's recovery state (KIP-704). v2: topics by id. v3: the epochs of the brokers in
  the ISR, so that none is taken in that was started again meanwhile (KIP-903).
"""

from typing import TYPE_CHECKING

from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import CLUSTER, Operation
from kavka.cluster.promise import Promise
from kavka.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse

if TYPE_CHECKING:
    from kavka.broker.services import Services


@handles(AlterPartitionRequest, versions="0-3", in_clusters=True)
def alter_partition(
    request: AlterPartitionRequest, context: Context, services: "Services"
) -> Promise[AlterPartitionResponse]:
    context.require(Operation.CLUSTER_ACTION, CLUSTER)
    return services.controller.alter_partition(request)
