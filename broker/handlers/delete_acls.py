"""DeleteAcls v0-3.

Behaviour
- What filters mean is removed on condition that nobody else wrote meanwhile, and answered once it counts on this
  broker; others follow by a notice. Each ACL is told with the first filter that means it. Without an authorizer:
  SECURITY_DISABLED.
- It is answered when nobody acts any more by what was allowed before, and REQUEST_TIMED_OUT if that takes longer than
  `request.timeout.ms`: it counts by then.
- A filter with numbers that nobody knows means none; with the number of UNKNOWN it closes the connection, as in Kafka.
- Not done: nothing.

Versions
- v0: literal patterns only; ANY means them. v1: types of patterns (KIP-290). v3: resources of the type USER (KIP-373).
"""

from typing import TYPE_CHECKING

from kavka.broker.requests.acl_requests import NO_AUTHORIZER, answered_in_time, asker, filter_of, told
from kavka.broker.requests.handling import Context, Services, handles
from kavka.broker.security.acl import CLUSTER, Operation
from kavka.broker.security.authorizer.bindings import is_known
from kavka.broker.security.authorizer.names import OPERATION_CODES, PERMISSION_CODES, TYPE_CODES, PatternType
from kavka.cluster.promise import Promise
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)

if TYPE_CHECKING:
    from kavka.broker.security.authorizer.kept_acls import Deletion


def _refused(request: DeleteAclsRequest, code: ErrorCode, message: str | None) -> DeleteAclsResponse:
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(error_code=code, error_message=told(BrokerError(code, message)), matching_acls=[])
            for _ in request.filters
        ]
    )


@handles(DeleteAclsRequest, versions="0-3", error_answer=_refused)
def delete_acls(request: DeleteAclsRequest, context: Context, services: Services) -> Promise[DeleteAclsResponse]:
    wanted = [filter_of(each, context.api_version) for each in request.filters]
    context.require(Operation.ALTER, CLUSTER)
    if services.acls is None:
        raise BrokerError(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
    deleting = services.acls.delete(wanted, asker(context)).then(_response)
    return answered_in_time(deleting, services, takes_away=True)


def _response(matched: "list[list[Deletion]]") -> DeleteAclsResponse:
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(
                error_code=ErrorCode.NONE,
                error_message=None,
                matching_acls=[_matching(each) for each in deletions if is_known(each[0].entry)],
            )
            for deletions in matched
        ]
    )


def _matching(deletion: "Deletion") -> DeleteAclsMatchingAcl:
    (pattern, entry), error = deletion
    return DeleteAclsMatchingAcl(
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else told(error),
        resource_type=TYPE_CODES[pattern.type_name],
        resource_name=pattern.name,
        pattern_type=PatternType.PREFIXED if pattern.is_prefixed else PatternType.LITERAL,
        principal=entry.principal,
        host=entry.host,
        operation=OPERATION_CODES[entry.operation],
        permission_type=PERMISSION_CODES[entry.permission],
    )
