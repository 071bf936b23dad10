"""CreateAcls v0-3.

Behaviour
- Each entry is written on condition that nobody else wrote meanwhile, and answered once it counts on this broker;
  others follow by a notice. One that is there already is as good as made. Without an authorizer: SECURITY_DISABLED.
- What denies is answered when nobody acts any more by what was allowed before, and REQUEST_TIMED_OUT if that takes
  longer than `request.timeout.ms`: it counts by then. What allows waits for nobody.
- An entry is refused for its resource's name (INVALID_REQUEST), or for its principal (UNKNOWN_SERVER_ERROR, with all of
  the same resource, as in Kafka). One with the numbers of UNKNOWN closes the connection.
- Not done: nothing.

Versions
- v0: literal patterns only. v1: types of patterns (KIP-290). v3: resources of the type USER (KIP-373).
"""

from kavka.broker.requests.acl_requests import (
    NO_AUTHORIZER,
    answered_in_time,
    asker,
    operation_of,
    pattern_type_of,
    permission_of,
    refuse_unknown,
    resource_type_of,
    told,
)
from kavka.broker.requests.handling import Context, Services, handles
from kavka.broker.security.acl import CLUSTER, Operation, ResourceType
from kavka.broker.security.authorizer.bindings import AclBinding
from kavka.broker.security.authorizer.names import (
    OPERATION_NAMES,
    PERMISSION_NAMES,
    TYPE_NAMES,
    PatternType,
    Permission,
)
from kavka.cluster.promise import Promise
from kavka.cluster.znodes.acl import AclEntry, ResourcePattern
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.create_acls import AclCreation, AclCreationResult, CreateAclsRequest, CreateAclsResponse


def _refused(request: CreateAclsRequest, code: ErrorCode, message: str | None) -> CreateAclsResponse:
    error = BrokerError(code, message)
    return CreateAclsResponse(results=[_result(error) for _ in request.creations])


@handles(CreateAclsRequest, versions="0-3", error_answer=_refused)
def create_acls(request: CreateAclsRequest, context: Context, services: Services) -> Promise[CreateAclsResponse]:
    for each in request.creations:
        refuse_unknown(each.resource_type, each.resource_pattern_type, each.operation, each.permission_type)
    context.require(Operation.ALTER, CLUSTER)
    if services.acls is None:
        raise BrokerError(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
    for each in request.creations:
        _refuse_vague(each)
    errors = _errors(request.creations)
    valid = [_binding(each) for each, error in zip(request.creations, errors, strict=True) if error is None]

    def respond(outcomes: list[BrokerError | None]) -> CreateAclsResponse:
        became = iter(outcomes)
        return CreateAclsResponse(results=[_result(next(became) if error is None else error) for error in errors])

    creating = services.acls.create(valid, asker(context)).then(respond)
    return answered_in_time(creating, services, takes_away=services.acls.takes_away(valid))


def _refuse_vague(asked: AclCreation) -> None:
    """Raise BrokerError for numbers that are for filters alone: Kafka fails over them as a whole."""
    for number, vague, name in (
        (asked.resource_type, (ResourceType.ANY,), "resourceType"),
        (asked.resource_pattern_type, (PatternType.ANY, PatternType.MATCH), "patternType"),
        (asked.operation, (Operation.ANY,), "operation"),
        (asked.permission_type, (Permission.ANY,), "permissionType"),
    ):
        if number in vague:
            raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{name} must not be {vague[0].__class__(number).name}")


def _errors(asked: list[AclCreation]) -> list[BrokerError | None]:
    """Of each that is not even tried, why."""
    errors = [_error(each) for each in asked]
    nameless = {
        (each.resource_type, each.resource_name, each.resource_pattern_type): each.principal
        for each, error in zip(asked, errors, strict=True)
        if error is None and ":" not in each.principal
    }
    for place, each in enumerate(asked):
        principal = nameless.get((each.resource_type, each.resource_name, each.resource_pattern_type))
        if errors[place] is None and principal is not None:
            expected = f"expected a string in format principalType:principalName but got {principal}"
            errors[place] = BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, expected)
    return errors


def _error(asked: AclCreation) -> BrokerError | None:
    if asked.resource_type == ResourceType.CLUSTER and asked.resource_name != CLUSTER.name:
        return BrokerError(ErrorCode.INVALID_REQUEST, f"The only valid name for the CLUSTER resource is {CLUSTER.name}")
    if not asked.resource_name:
        return BrokerError(ErrorCode.INVALID_REQUEST, "Invalid empty resource name")
    is_unknown = (
        resource_type_of(asked.resource_type) is ResourceType.UNKNOWN
        or pattern_type_of(asked.resource_pattern_type) is PatternType.UNKNOWN
        or operation_of(asked.operation) is Operation.UNKNOWN
        or permission_of(asked.permission_type) is Permission.UNKNOWN
    )
    if is_unknown or "/" in asked.resource_name:
        return BrokerError(ErrorCode.INVALID_REQUEST, "Failed to create ACL")
    return None


def _binding(asked: AclCreation) -> AclBinding:
    is_prefixed = asked.resource_pattern_type == PatternType.PREFIXED
    pattern = ResourcePattern(TYPE_NAMES[resource_type_of(asked.resource_type)], asked.resource_name, is_prefixed)
    permission = PERMISSION_NAMES[permission_of(asked.permission_type)]
    return AclBinding(
        pattern, AclEntry(asked.principal, permission, OPERATION_NAMES[operation_of(asked.operation)], asked.host)
    )


def _result(error: BrokerError | None) -> AclCreationResult:
    if error is None:
        return AclCreationResult(error_code=ErrorCode.NONE, error_message="")
    return AclCreationResult(error_code=error.code, error_message=told(error))
