"""DescribeGroups v0-6.

Behaviour
- State, protocol and members of classic groups, each as its own coordinator knows it. Metadata and assignments are told
  of Stable groups only, as in Kafka.
- A group that doesn't exist is Dead, and so is one of the consumer protocol: ConsumerGroupDescribe tells of those.
- Who asks for it by a tagged field of Kavka's own is told what happened to a group lately, by the same right.
- Not done: nothing.

Versions
- v3: authorized operations (KIP-430). v4: instance ids (KIP-345). v6: GROUP_ID_NOT_FOUND with a message instead of a
  Dead group without an error (KIP-1043).
"""

from typing import TYPE_CHECKING

from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import Operation, group
from kavka.cluster.promise import Promise, gather
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse

if TYPE_CHECKING:
    from kavka.broker.services import Services


def _refused(request: DescribeGroupsRequest, code: ErrorCode, _message: str | None) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(groups=[_error(each, code) for each in request.groups])


@handles(DescribeGroupsRequest, versions="0-6", error_answer=_refused)
def describe_groups(
    request: DescribeGroupsRequest, context: Context, services: "Services"
) -> Promise[DescribeGroupsResponse]:
    allowed, denied = [], []
    for group_id in request.groups:
        if context.allows(Operation.DESCRIBE, group(group_id)):
            allowed.append(group_id)
        else:
            denied.append(_error(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED))

    def respond(groups: list[DescribedGroup]) -> DescribeGroupsResponse:
        if request.include_authorized_operations:
            for each in groups:
                if each.error_code == ErrorCode.NONE:
                    each.authorized_operations = context.authorized_operations(group(each.group_id))
        return DescribeGroupsResponse(groups=denied + groups)

    described = [_describe(each, context.api_version, request.include_history, services) for each in allowed]
    return gather(described, respond, effects_complete=True)


def _describe(group_id: str, api_version: int, include_history: bool, services: "Services") -> Promise[DescribedGroup]:
    described: Promise[DescribedGroup] = Promise()

    def answer(groups: list[DescribedGroup]) -> None:
        described.complete(groups[0])

    def refused(error: BrokerError) -> None:
        described.complete(_error(group_id, error.code))

    services.groups.run(
        group_id,
        lambda shard: shard.describe_groups([group_id], api_version, answer, include_history=include_history),
        refused,
    )
    return described


def _error(group_id: str, code: ErrorCode) -> DescribedGroup:
    return DescribedGroup(
        error_code=code, group_id=group_id, group_state="", protocol_type="", protocol_data="", members=[]
    )
