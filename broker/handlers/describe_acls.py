"""DescribeAcls v0-3.

Behaviour
- Those ACLs that a filter means, of all that count on this broker, in order. Without an authorizer: SECURITY_DISABLED.
- A filter with numbers that nobody knows means none; with the number of UNKNOWN it closes the connection, as in Kafka.
- Not done: ACLs in the tree whose operation or permission has no number are left out.

Versions
- v0: literal patterns only; ANY means them. v1: types of patterns (KIP-290). v3: resources of the type USER (KIP-373).
"""

from itertools import groupby
from operator import attrgetter

from kavka.broker.requests.acl_requests import NO_AUTHORIZER, filter_of, told
from kavka.broker.requests.handling import Context, Services, handles
from kavka.broker.security.acl import CLUSTER, Operation
from kavka.broker.security.authorizer.bindings import is_known
from kavka.broker.security.authorizer.names import OPERATION_CODES, PERMISSION_CODES, TYPE_CODES, PatternType
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)


def _refused(request: DescribeAclsRequest, code: ErrorCode, message: str | None) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=code, error_message=told(BrokerError(code, message)), resources=[])


@handles(DescribeAclsRequest, versions="0-3", error_answer=_refused)
def describe_acls(request: DescribeAclsRequest, context: Context, services: Services) -> DescribeAclsResponse:
    wanted = filter_of(request, context.api_version)
    context.require(Operation.DESCRIBE, CLUSTER)
    if services.acls is None:
        raise BrokerError(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
    found = [each for each in services.acls.find(wanted) if is_known(each.entry)]
    return DescribeAclsResponse(
        error_code=ErrorCode.NONE,
        error_message="",
        resources=[
            DescribeAclsResource(
                resource_type=TYPE_CODES[pattern.type_name],
                resource_name=pattern.name,
                pattern_type=PatternType.PREFIXED if pattern.is_prefixed else PatternType.LITERAL,
                acls=[
                    AclDescription(
                        principal=entry.principal,
                        host=entry.host,
                        operation=OPERATION_CODES[entry.operation],
                        permission_type=PERMISSION_CODES[entry.permission],
                    )
                    for _, entry in bindings
                ],
            )
            for pattern, bindings in groupby(found, key=attrgetter("pattern"))
        ],
    )
