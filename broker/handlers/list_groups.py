"""ListGroups v0-5.

Behaviour
- The groups that this broker coordinates and the client may describe; all of them for who may describe the cluster.
- While a shard loads its groups aren't known: COORDINATOR_LOAD_IN_PROGRESS, and no groups at all.
- Not done: nothing.

Versions
- v4: a filter by states (KIP-518). v5: one by types (KIP-848). Case does not matter, unknown names match nothing.
"""

from functools import partial
from typing import TYPE_CHECKING

from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import CLUSTER, Operation, ResourceType
from kavka.cluster.promise import Promise, gather
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from kavka.broker.services import Services
    from kavka.coordinator.group.shard import GroupShard
    from kavka.coordinator.runtime.result import Reply, Result

ShardAnswer = list[ListedGroup] | BrokerError


@handles(ListGroupsRequest, versions="0-5")
def list_groups(request: ListGroupsRequest, context: Context, services: "Services") -> Promise[ListGroupsResponse]:
    runtime = services.groups.existing_runtime
    answers: list[Promise[ShardAnswer]] = []
    if runtime is not None:
        for partition in list(runtime.states()):
            answer: Promise[ShardAnswer] = Promise()
            answers.append(answer)
            runtime.run(partition, partial(_list, request, answer.complete), answer.complete)
    return gather(answers, lambda of_shards: _response(of_shards, context), effects_complete=True)


def _list(request: ListGroupsRequest, reply: "Reply", shard: "GroupShard") -> "Result":
    return shard.list_groups(request.states_filter, request.types_filter, reply)


def _response(answers: list[ShardAnswer], context: Context) -> ListGroupsResponse:
    groups: list[ListedGroup] = []
    for answer in answers:
        if not isinstance(answer, BrokerError):
            groups += answer
        elif answer.code is not ErrorCode.NOT_COORDINATOR:
            return ListGroupsResponse(error_code=answer.code, groups=[])
    if not context.allows(Operation.DESCRIBE, CLUSTER, quiet=True):
        may_describe = context.allowed_names(Operation.DESCRIBE, ResourceType.GROUP)
        groups = [each for each in groups if may_describe(each.group_id)]
    return ListGroupsResponse(error_code=ErrorCode.NONE, groups=groups)
