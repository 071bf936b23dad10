"""ConsumerGroupDescribe v0-1.

Behaviour
- State, epochs and members of groups of the consumer protocol (KIP-848), each as its own coordinator knows it: what a
  member is subscribed to, what it has, and what it shall have.
- A group that doesn't exist, or is of the classic protocol, is answered GROUP_ID_NOT_FOUND.
- A group with topics that the client may not describe is answered TOPIC_AUTHORIZATION_FAILED, without members.
- Who asks for it by a tagged field of Kavka's own is told what happened to a group lately, by the same right.
- Not done: nothing.

Versions
- v1: whether a member speaks the classic (0) or the consumer protocol (1) (KIP-1099).
"""

from typing import TYPE_CHECKING

from kavka.broker.coordination.groups import require_consumer_protocol
from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import Operation, group, topic
from kavka.cluster.promise import Promise, gather
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)

if TYPE_CHECKING:
    from kavka.broker.services import Services

HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


def _refused(
    request: ConsumerGroupDescribeRequest, code: ErrorCode, message: str | None
) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(groups=[_error(each, code, message) for each in request.group_ids])


@handles(ConsumerGroupDescribeRequest, versions="0-1", error_answer=_refused)
def consumer_group_describe(
    request: ConsumerGroupDescribeRequest, context: Context, services: "Services"
) -> Promise[ConsumerGroupDescribeResponse]:
    require_consumer_protocol(services)
    denied = [
        _error(each, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        for each in request.group_ids
        if not context.allows(Operation.DESCRIBE, group(each))
    ]
    refused = {each.group_id for each in denied}
    allowed = [each for each in request.group_ids if each not in refused]

    def respond(groups: list[DescribedGroup]) -> ConsumerGroupDescribeResponse:
        shown = [_as_allowed(each, context) for each in groups]
        if request.include_authorized_operations:
            for each in shown:
                if each.error_code == ErrorCode.NONE:
                    each.authorized_operations = context.authorized_operations(group(each.group_id))
        return ConsumerGroupDescribeResponse(groups=denied + shown)

    return gather(
        [_describe(each, request.include_history, services) for each in allowed], respond, effects_complete=True
    )


def _describe(group_id: str, include_history: bool, services: "Services") -> Promise[DescribedGroup]:
    described: Promise[DescribedGroup] = Promise()

    def answer(groups: list[DescribedGroup]) -> None:
        described.complete(groups[0])

    def refused(error: BrokerError) -> None:
        described.complete(_error(group_id, error.code, error.message))

    if group_id:
        services.groups.run(
            group_id,
            lambda shard: shard.consumer.describe([group_id], answer, include_history=include_history),
            refused,
        )
    else:
        refused(BrokerError(ErrorCode.INVALID_GROUP_ID))
    return described


def _as_allowed(described: DescribedGroup, context: Context) -> DescribedGroup:
    """The group, if the client may describe all topics that its members' assignments name."""
    names = {
        each.topic_name
        for member in described.members
        for assignment in (member.assignment, member.target_assignment)
        for each in assignment.topic_partitions
    }
    names.update(name for member in described.members for name in member.subscribed_topic_names)
    if all(context.allows(Operation.DESCRIBE, topic(name)) for name in names):
        return described
    return _error(described.group_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, HIDDEN_TOPICS)


def _error(group_id: str, code: ErrorCode, message: str | None = None) -> DescribedGroup:
    return DescribedGroup(
        error_code=code,
        error_message=message or code.message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=[],
    )
