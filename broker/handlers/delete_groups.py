"""DeleteGroups v0-2.

Behaviour
- Deletes groups that have no members, with all their offsets, also those of transactions that are going on. Each group
  is answered by itself: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND.
- Not done: nothing.

Versions
- v2 is the first flexible one; otherwise all are alike.
"""

from typing import TYPE_CHECKING

from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import Operation, group
from kavka.cluster.promise import Promise, gather
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse

if TYPE_CHECKING:
    from kavka.broker.services import Services


def _refused(request: DeleteGroupsRequest, code: ErrorCode, _message: str | None) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(results=[_result(each, code) for each in dict.fromkeys(request.groups_names)])


@handles(DeleteGroupsRequest, versions="0-2", error_answer=_refused)
def delete_groups(
    request: DeleteGroupsRequest, context: Context, services: "Services"
) -> Promise[DeleteGroupsResponse]:
    asked = list(dict.fromkeys(request.groups_names))
    deleted, denied = [], []
    for each in asked:
        if context.allows(Operation.DELETE, group(each)):
            deleted.append(_delete(each, services))
        else:
            denied.append(_result(each, ErrorCode.GROUP_AUTHORIZATION_FAILED))
    return gather(deleted, lambda results: DeleteGroupsResponse(results=results + denied), effects_complete=True)


def _delete(group_id: str, services: "Services") -> Promise[DeletableGroupResult]:
    deleted: Promise[DeletableGroupResult] = Promise()

    def answer(results: list[DeletableGroupResult]) -> None:
        deleted.complete(results[0])

    def refused(error: BrokerError) -> None:
        deleted.complete(_result(group_id, error.code))

    services.groups.run(group_id, lambda shard: shard.delete_groups([group_id], answer), refused)
    return deleted


def _result(group_id: str, code: ErrorCode) -> DeletableGroupResult:
    return DeletableGroupResult(group_id=group_id, error_code=code)
