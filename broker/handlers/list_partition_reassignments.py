"""ListPartitionReassignments v0.

Behaviour
- The reassignments that go on, of the partitions asked for or of all: all their replicas, those that come and those
  that go. Answered by the controller only; others say NOT_CONTROLLER.
- Not done: the timeout is not looked at, as in Kafka.

Versions
- v0 is the only one.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import CLUSTER, Operation
from kavka.cluster.promise import Promise
from kavka.cluster.znodes.topic import PartitionAssignment
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

if TYPE_CHECKING:
    from kavka.broker.services import Services


def _refused(
    request: ListPartitionReassignmentsRequest, code: ErrorCode, message: str | None
) -> ListPartitionReassignmentsResponse:
    """With the partitions that were asked for, of which nothing is said: so does Kafka."""
    return ListPartitionReassignmentsResponse(
        throttle_time_ms=0,
        error_code=code,
        error_message=message or code.message,
        topics=[
            OngoingTopicReassignment(
                name=topic.name,
                partitions=[
                    OngoingPartitionReassignment(
                        partition_index=index, replicas=[], adding_replicas=[], removing_replicas=[]
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ],
    )


@handles(ListPartitionReassignmentsRequest, versions="0", error_answer=_refused)
def list_partition_reassignments(
    request: ListPartitionReassignmentsRequest, context: Context, services: "Services"
) -> Promise[ListPartitionReassignmentsResponse]:
    context.require(Operation.DESCRIBE, CLUSTER)
    asked = None
    if request.topics is not None:
        asked = [(topic.name, index) for topic in request.topics for index in topic.partition_indexes]
    return services.controller.list_reassignments(asked).then(_answer)


def _answer(moving: Mapping[tuple[str, int], PartitionAssignment]) -> ListPartitionReassignmentsResponse:
    by_topic: dict[str, list[OngoingPartitionReassignment]] = {}
    for (topic, partition), assignment in moving.items():
        by_topic.setdefault(topic, []).append(
            OngoingPartitionReassignment(
                partition_index=partition,
                replicas=list(assignment.replicas),
                adding_replicas=list(assignment.adding),
                removing_replicas=list(assignment.removing),
            )
        )
    return ListPartitionReassignmentsResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        error_message=None,
        topics=[OngoingTopicReassignment(name=topic, partitions=each) for topic, each in by_topic.items()],
    )
