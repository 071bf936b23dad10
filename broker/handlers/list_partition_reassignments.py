"""ListPartitionReassignments v0.

Behaviour
- The reassignments that go on, of the partitions asked for or of all. Answered by the controller only; others say
  NOT_CONTROLLER.
- Not done: reassignments cannot be started on this broker, so that the list is empty.

Versions
- v0 is the only one.
"""

from typing import TYPE_CHECKING

from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import CLUSTER, Operation
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

if TYPE_CHECKING:
    from kavka.broker.services import Services


@handles(ListPartitionReassignmentsRequest, versions="0")
def list_partition_reassignments(
    _request: ListPartitionReassignmentsRequest, context: Context, services: "Services"
) -> ListPartitionReassignmentsResponse:
    context.require(Operation.DESCRIBE, CLUSTER)
    if not services.controller.is_active:
        raise BrokerError(ErrorCode.NOT_CONTROLLER)
    return ListPartitionReassignmentsResponse(
        throttle_time_ms=0, error_code=ErrorCode.NONE, error_message=None, topics=[]
    )
