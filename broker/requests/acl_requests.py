"""What the APIs about ACLs (29 to 31) have in common: filters, patterns, and what is refused of them."""

from threading import get_ident
from typing import TYPE_CHECKING, Final, Generic, NoReturn, Protocol, TypeVar

from kavka.broker.requests.dispatcher import CloseConnection
from kavka.broker.security.acl import Operation, ResourceType
from kavka.broker.security.authorizer.bindings import AclFilter
from kavka.broker.security.authorizer.names import PatternType, Permission
from kavka.cluster.promise import Promise
from kavka.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from kavka.broker.requests.handling import Context
    from kavka.broker.requests.turns import Wait
    from kavka.broker.services import Services

T = TypeVar("T")

PATTERN_TYPES_SINCE: Final = 1
NO_AUTHORIZER: Final = "No Authorizer is configured on the broker"

_OPERATIONS: Final = {int(each): each for each in Operation}
_TYPES: Final = {int(each): each for each in ResourceType}
_PATTERN_TYPES: Final = {int(each): each for each in PatternType}
_PERMISSIONS: Final = {int(each): each for each in Permission}


class Filter(Protocol):
    """As requests have it."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


def filter_of(asked: Filter, version: int) -> AclFilter:
    """What a request's filter means. Raises CloseConnection."""
    pattern_type = pattern_type_of(asked.pattern_type_filter)
    if version < PATTERN_TYPES_SINCE and pattern_type is PatternType.ANY:
        pattern_type = PatternType.LITERAL
    refuse_unknown(asked.resource_type_filter, asked.pattern_type_filter, asked.operation, asked.permission_type)
    return AclFilter(
        resource_type_of(asked.resource_type_filter),
        asked.resource_name_filter,
        pattern_type,
        asked.principal_filter,
        asked.host_filter,
        operation_of(asked.operation),
        permission_of(asked.permission_type),
    )


def refuse_unknown(*numbers: int) -> None:
    """Kafka's requests cannot have these, so that its brokers close the connection. Raises CloseConnection."""
    if 0 in numbers:
        raise CloseConnection("a request about ACLs has the number of UNKNOWN")


def operation_of(number: int) -> Operation:
    """UNKNOWN for what nobody knows; so are those below."""
    return _OPERATIONS.get(number, Operation.UNKNOWN)


def resource_type_of(number: int) -> ResourceType:
    return _TYPES.get(number, ResourceType.UNKNOWN)


def pattern_type_of(number: int) -> PatternType:
    return _PATTERN_TYPES.get(number, PatternType.UNKNOWN)


def permission_of(number: int) -> Permission:
    return _PERMISSIONS.get(number, Permission.UNKNOWN)


def told(error: BrokerError) -> str | None:
    """What clients are told of an error: of those that Kafka has no words for, only the log tells more."""
    return None if error.code is ErrorCode.UNKNOWN_SERVER_ERROR else error.message or error.code.message


def asker(context: "Context") -> str:
    """Who asks, for the audit."""
    return f"{context.principal} from host = {context.client_host}"


def answered_in_time(counted: Promise[T], services: "Services", *, takes_away: bool) -> Promise[T]:
    """What `counted` brings, which is settled once a change counts: REQUEST_TIMED_OUT if it takes too long.

    Where the change `takes_away` rights, once nobody acts by them any more.
    """
    settling = _Settling[T](services)
    changed: Promise[T] = counted.then(settling.settled) if takes_away else counted
    return services.purgatory.within(services.config.current.request_timeout_ms, changed, settling.late)


class _Settling(Generic[T]):
    """An answer that waits for the turns that go on. Threads: `settled` by who changes ACLs, `late` by the timer's."""

    def __init__(self, services: "Services") -> None:
        self._services: Final = services
        self._wait: Wait | None = None
        self._is_late = False

    def settled(self, response: T) -> Promise[T]:
        """A promise of `response`. By another thread than this it is not brought by who ran requests meanwhile.

        To write a long answer takes its time, and the others' next requests would wait for that.
        """
        promise: Promise[T] = Promise()
        asking, execute = get_ident(), self._services.groups.workers.operations

        def complete() -> None:
            promise.complete(response)

        def over() -> None:
            if get_ident() == asking:
                complete()
            else:
                execute(complete)

        self._wait = wait = self._services.turns.when_over(over)
        if self._is_late:
            wait.give_up()
        return promise

    def late(self) -> NoReturn:
        """The registry does not answer in time, or a request that had begun hangs. Raises BrokerError."""
        self._is_late = True
        wait = self._wait
        if wait is not None:
            wait.give_up()
        raise BrokerError(ErrorCode.REQUEST_TIMED_OUT)
