"""AlterPartitionReassignments v0-1.

Behaviour
- The controller begins to move partitions to the brokers named, or with null goes back to the replicas before; the
  answer comes when that has begun. Each partition has its own outcome. Brokers that are not the controller say
  NOT_CONTROLLER.
- A target of brokers that do not live, but for those that hold the partition, is INVALID_REPLICA_ASSIGNMENT, and so is
  what would leave no replica in sync.
- Not done: the timeout is not looked at, as in Kafka.

Versions
- v1: a change of the replication factor can be forbidden (KIP-860): INVALID_REPLICATION_FACTOR.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import CLUSTER, Operation
from kavka.cluster.promise import Promise
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

if TYPE_CHECKING:
    from kavka.broker.services import Services


def _refused(
    request: AlterPartitionReassignmentsRequest, code: ErrorCode, message: str | None
) -> AlterPartitionReassignmentsResponse:
    error = BrokerError(code, message)
    outcomes = {(topic.name, each.partition_index): error for topic in request.topics for each in topic.partitions}
    answer = _answer(request, outcomes)
    answer.error_code = code
    answer.error_message = message or code.message
    return answer


@handles(AlterPartitionReassignmentsRequest, versions="0-1", error_answer=_refused)
def alter_partition_reassignments(
    request: AlterPartitionReassignmentsRequest, context: Context, services: "Services"
) -> Promise[AlterPartitionReassignmentsResponse]:
    context.require(Operation.ALTER, CLUSTER)
    targets = {
        (topic.name, each.partition_index): each.replicas for topic in request.topics for each in topic.partitions
    }
    begun = services.controller.alter_reassignments(
        targets, allow_factor_change=request.allow_replication_factor_change
    )
    return begun.then(lambda outcomes: _answer(request, outcomes))


def _answer(
    request: AlterPartitionReassignmentsRequest, outcomes: Mapping[tuple[str, int], BrokerError | None]
) -> AlterPartitionReassignmentsResponse:
    by_topic: dict[str, list[ReassignablePartitionResponse]] = {}
    for (topic, partition), error in outcomes.items():
        by_topic.setdefault(topic, []).append(
            ReassignablePartitionResponse(
                partition_index=partition,
                error_code=error.code if error is not None else ErrorCode.NONE,
                error_message=(error.message or error.code.message) if error is not None else None,
            )
        )
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=ErrorCode.NONE,
        error_message=None,
        responses=[ReassignableTopicResponse(name=topic, partitions=each) for topic, each in by_topic.items()],
    )
