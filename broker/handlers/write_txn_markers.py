"""WriteTxnMarkers v0-2.

Behaviour
- A transaction coordinator has the leader of partitions write the markers that end transactions there. Each partition
  fails by itself; the answer comes when all markers are on every in-sync replica.
- On `__consumer_offsets` the group coordinator takes the marker in: it decides the pending offsets.
- Not done: nothing.

Versions
- v1: flexible. v2: the transaction's version (KIP-1228): from 2 on a marker's epoch must be later than what it ends.
"""

from itertools import repeat
from typing import TYPE_CHECKING

from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import CLUSTER, Operation
from kavka.cluster.promise import Promise
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

if TYPE_CHECKING:
    from kavka.broker.services import Services


def _refused(request: WriteTxnMarkersRequest, code: ErrorCode, _message: str | None) -> WriteTxnMarkersResponse:
    from kavka.broker.coordination.markers import marker_response

    return marker_response(request, repeat(code))


@handles(WriteTxnMarkersRequest, versions="0-2", error_answer=_refused)
def write_txn_markers(
    request: WriteTxnMarkersRequest, context: Context, services: "Services"
) -> Promise[WriteTxnMarkersResponse]:
    if not context.allows(Operation.ALTER, CLUSTER, quiet=True):
        context.require(Operation.CLUSTER_ACTION, CLUSTER)
    return services.transactions.marker_writer.write(request)
