"""DescribeCluster v0-2.

Behaviour
- The live brokers with the endpoints of the listener that the client came through, the controller, the cluster id
  (KIP-700); authorized operations when asked for.
- Only brokers can be asked for, not controllers: UNSUPPORTED_ENDPOINT_TYPE otherwise.
- Not done: nothing. There are no fenced brokers without KRaft.

Versions
- v1: endpoint type (KIP-919). v2: fenced brokers (KIP-1073).
"""

from typing import TYPE_CHECKING, Final

from kavka.broker.metadata.first_metadata import once_known
from kavka.broker.metadata.topic_views import NO_OPERATIONS, ClusterView, reached_endpoint
from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import CLUSTER, Operation
from kavka.cluster.promise import Promise
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from kavka.broker.services import Services

BROKERS: Final = 1
CONTROLLERS: Final = 2


@handles(DescribeClusterRequest, versions="0-2")
def describe_cluster(
    request: DescribeClusterRequest, context: Context, services: "Services"
) -> DescribeClusterResponse | Promise[DescribeClusterResponse]:
    if not services.metadata.current.brokers:
        return once_known(services, lambda: describe_cluster(request, context, services))
    if request.endpoint_type == CONTROLLERS:
        raise BrokerError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE, "the request was sent to a broker, but asks for controllers"
        )
    if request.endpoint_type != BROKERS:
        raise BrokerError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"unsupported endpoint type {request.endpoint_type}")
    snapshot = services.metadata.current
    view = ClusterView(snapshot, context.listener_name, reached_endpoint(context))
    operations = NO_OPERATIONS
    if request.include_cluster_authorized_operations:
        allowed = context.allows(Operation.DESCRIBE, CLUSTER)
        operations = context.authorized_operations(CLUSTER) if allowed else 0
    return DescribeClusterResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        cluster_id=services.cluster_id,
        controller_id=view.controller_id,
        brokers=[
            DescribeClusterBroker(broker_id=each.broker_id, host=each.host, port=each.port, rack=each.rack)
            for each in view.brokers
        ],
        cluster_authorized_operations=operations,
    )
