"""What a handler is given and how it is found.

A handler is a plain function of (request, context, services), kept in `broker/handlers/NAME.py` (`cluster_handlers`
where only brokers ask it) and registered there by `@handles(NameRequest, versions="0-4")`. It returns the response, a
`Promise` of it, or raises `BrokerError`.
ApiVersions, the dispatcher and the tests over all handlers read the registry; there is no other list, but for the names
of those APIs that few brokers are asked for: their modules are imported with the first request.
"""

import importlib
import logging
import pkgutil
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kavka.broker.network.addresses import java_address
from kavka.broker.security.acl import SUPPORTED_OPERATIONS, Operation, Resource, ResourceType, Rights
from kavka.broker.services import Services as Services
from kavka.cluster.promise import Promise
from kavka.protocol.api import VERSIONS, ApiKey
from kavka.protocol.errors import BrokerError, DecodeError, ErrorCode
from kavka.protocol.schema import Request, Response, schema_of

if TYPE_CHECKING:
    from kavka.broker.network.connection import Connection
    from kavka.broker.quotas.charging import Charge
    from kavka.broker.requests.session import Session

AnyHandler = Callable[[Any, "Context", Services], Any]
ErrorAnswer = Callable[[Any, ErrorCode, str | None], Response | None]
RequestT = TypeVar("RequestT", bound=Request)
HANDLERS: Final = "kavka.broker.handlers."
CLUSTER_HANDLERS: Final = "kavka.broker.cluster_handlers."

log = logging.getLogger(__name__)

_DENIED: Final = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ResourceType.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}

ON_DEMAND: Final = (
    ApiKey.SASL_HANDSHAKE,
    ApiKey.DESCRIBE_ACLS,
    ApiKey.CREATE_ACLS,
    ApiKey.DELETE_ACLS,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_CLIENT_QUOTAS,
    ApiKey.ALTER_CLIENT_QUOTAS,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
)
"""A broker that nobody has secured is asked for none of these. All their versions are served."""


class Context:
    """One request on its way: where it came from, its header, and the slot of its answer.

    Threads: made and owned by the thread that runs it. `answer` is written once by whoever completes the request,
    and read under the connection's write lock.
    """

    __slots__ = (
        "answer",
        "api_key",
        "api_version",
        "charge",
        "charged_size_bytes",
        "client_id",
        "completed_ns",
        "connection",
        "correlation_id",
        "frame",
        "generation",
        "is_inline",
        "local_done_ns",
        "received_ns",
        "route",
        "session",
        "started_ns",
    )

    def __init__(self, connection: "Connection", frame: memoryview, received_ns: int, charged_size_bytes: int) -> None:
        self.connection = connection
        self.session: Session = connection.session
        self.frame: memoryview | None = frame
        self.received_ns = received_ns
        self.charged_size_bytes = charged_size_bytes
        self.answer: Any = None
        self.started_ns = 0
        self.local_done_ns = 0
        self.completed_ns = 0
        self.charge: Charge | None = None
        """What it costs its client; None where there is no quota."""
        self.generation: object = None
        """`services.generation` from before the request was looked at; None: nothing may be remembered of it."""
        self.is_inline = False
        """Whether a network thread runs it, all of whose connections wait meanwhile."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    route: Any

    def resumed(self) -> None:
        """This thread goes on with a fetch: what it does counts from here on."""
        if self.charge is not None:
            self.charge.resumed()

    @property
    def listener_name(self) -> str:
        """The name of the listener that the client connected to."""
        return self.connection.listener_name

    @property
    def client_host(self) -> str:
        """The client's address as Java prints it, without its port."""
        return java_address(self.connection.peer_host)

    @property
    def principal(self) -> str:
        """Who the client is, as `User:NAME`."""
        return self.session.principal

    @property
    def local_host(self) -> str:
        """The broker's address as this client reached it."""
        return self.connection.local_host

    @property
    def local_port(self) -> int:
        """The broker's port as this client reached it."""
        return self.connection.local_port

    @property
    def rights(self) -> Rights | None:
        """What the client may do; None: everything. Its session keeps them for as long as it is the same principal."""
        session = self.session
        if session.authorizer is None:
            return None
        rights = session.rights
        if rights is None or rights.principal != session.principal:
            rights = session.rights = session.authorizer.rights(session.principal, self.client_host)
        return rights

    def allows(self, operation: Operation, resource: Resource, *, quiet: bool = False) -> bool:
        """Whether the client may perform `operation` on `resource`.

        `quiet`: it is only probed, and a refusal keeps nothing from the client that it has asked for.
        """
        rights = self.rights
        return rights is None or rights.allows(operation, resource, self.api_key, quiet=quiet)

    def allows_on_any(self, operation: Operation, resource_type: ResourceType, *, quiet: bool = False) -> bool:
        """Whether the client may perform `operation` on at least one resource of the type (KIP-679)."""
        rights = self.rights
        return rights is None or rights.allows_on_any(operation, resource_type, self.api_key, quiet=quiet)

    def allowed_names(self, operation: Operation, resource_type: ResourceType) -> Callable[[str], bool]:
        """A check by name, not audited, for who looks through many resources: quicker than `allows` for each."""
        rights = self.rights
        return _allows_every if rights is None else rights.unaudited(operation, resource_type)

    def require(self, operation: Operation, resource: Resource) -> None:
        """Raise BrokerError (the resource type's AUTHORIZATION_FAILED) unless the client may do this."""
        if not self.allows(operation, resource):
            raise BrokerError(_DENIED.get(resource.type, ErrorCode.CLUSTER_AUTHORIZATION_FAILED))

    def authorized_operations(self, resource: Resource) -> int:
        """The operations that the client may perform on `resource`, one bit each, not audited (KIP-430)."""
        bits = 0
        for operation in SUPPORTED_OPERATIONS.get(resource.type, frozenset()):
            if self.allowed_names(operation, resource.type)(resource.name):
                bits |= 1 << operation
        return bits


def counting(context: Context, strict_since: int) -> Callable[[int], None] | None:
    """What the controller is to tell of the partitions that it makes or deletes for a request (KIP-599).

    From version `strict_since` on it refuses those that are too many. None: nobody counts.
    """
    return None if context.charge is None else context.charge.mutations(is_strict=context.api_version >= strict_since)


def _allows_every(_name: str) -> bool:
    return True


class Handler:
    """A registered handler: the request class, the versions served, the function."""

    __slots__ = (
        "advertised_min",
        "api_key",
        "error_answer",
        "function",
        "in_clusters",
        "is_small",
        "max_version",
        "min_version",
        "request_class",
    )

    def __init__(
        self,
        request_class: type[Request],
        versions: tuple[int, int],
        advertised_min: int,
        function: AnyHandler,
        error_answer: ErrorAnswer | None,
        is_small: bool = False,
        in_clusters: bool = False,
    ) -> None:
        self.request_class = request_class
        key = schema_of(request_class).key
        if key is None:
            raise TypeError(f"{request_class.__name__} has no API key")
        self.api_key = key
        self.min_version, self.max_version = versions
        self.advertised_min = advertised_min
        self.function = function
        self.error_answer = error_answer
        self.is_small = is_small
        self.in_clusters = in_clusters

    def ready(self) -> "Handler":
        """What runs the requests."""
        return self


class HandlerOnDemand(Handler):
    """Stands for one of ON_DEMAND until the first request: only what ApiVersions shows is known of it before."""

    __slots__ = ()

    def __init__(self, key: ApiKey) -> None:
        self.api_key = key
        self.min_version, self.max_version, _ = VERSIONS[key]
        self.advertised_min = self.min_version
        self.is_small = self.in_clusters = False

    def ready(self) -> Handler:
        """Import it. Any thread. Raises DecodeError, which closes the connection, where that cannot be done."""
        name = ApiKey(self.api_key).name.lower()
        try:
            importlib.import_module(HANDLERS + name)
        except Exception as failure:
            # Somebody replaces the program while it runs, or has all descriptors: that is no reason to stop.
            log.exception("an API cannot be loaded api=%s", name)
            raise DecodeError(f"{name} cannot be loaded") from failure
        return _handlers[self.api_key]


_handlers: dict[int, Handler] = {}


def handles(
    request_class: type[RequestT],
    *,
    versions: str,
    advertised_from: int | None = None,
    error_answer: Callable[[RequestT, ErrorCode, str | None], Response | None] | None = None,
    is_small: bool = False,
    in_clusters: bool = False,
) -> Callable[[Callable[[RequestT, Context, Services], Response | Promise[Any] | None]], Any]:
    """Register a handler for `request_class` in `versions` ("low-high"). A second one for the same API is an error.

    `advertised_from`: the lowest version that ApiVersions shows, where it is not the lowest served (KAFKA-18659).
    `error_answer(request, code, message)`: the response for an error that concerns the whole request, for
    APIs whose response has no top-level error code.
    `is_small`: whether requests never wait for a disk, unless logs move, and cost little, so that network threads may
    run them.
    `in_clusters`: whether only brokers of one cluster ask it of each other, so that one that stands alone refuses it.
    """
    low, _, high = versions.partition("-")

    def register(function: Callable[[RequestT, Context, Services], Any]) -> Any:
        served = (int(low), int(high or low))
        shown = served[0] if advertised_from is None else advertised_from
        handler = Handler(request_class, served, shown, function, error_answer, is_small, in_clusters)
        other = _handlers.setdefault(handler.api_key, handler)
        if other is not handler:
            raise RuntimeError(f"API key {handler.api_key} has two handlers: {other.function} and {function}")
        return function

    return register


def registered_handlers() -> dict[int, Handler]:
    """The registry as it is: API key to handler. Not to be changed."""
    return _handlers


def load_handlers(*, in_cluster: bool = False, at_once: bool = True) -> dict[int, Handler]:
    """Import every module of `broker/handlers` and give the registry: API key to handler.

    `in_cluster`: with those of `broker/cluster_handlers`. Unless `at_once`, without the modules of those ON_DEMAND.
    """
    late = {} if at_once else {HANDLERS + key.name.lower(): HandlerOnDemand(key) for key in ON_DEMAND}
    for prefix in (HANDLERS, CLUSTER_HANDLERS)[: 1 + in_cluster]:
        package = importlib.import_module(prefix[:-1])
        for module in pkgutil.iter_modules(package.__path__):
            if prefix + module.name not in late:
                importlib.import_module(prefix + module.name)
    found = {key: handler for key, handler in list(_handlers.items()) if in_cluster or not handler.in_clusters}
    return found | {handler.api_key: handler for handler in late.values()}


def shown_versions(handlers: Mapping[int, Handler]) -> dict[int, tuple[int, int]]:
    """What ApiVersions shows of a broker with these handlers: API key to its lowest and highest version."""
    return {key: (handler.advertised_min, handler.max_version) for key, handler in handlers.items()}
