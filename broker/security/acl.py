"""Operations, resources, and the port that decides whether a principal may perform one on the other (KIP-11)."""

from collections.abc import Callable
from enum import IntEnum
from typing import Final, NamedTuple, Protocol


class Operation(IntEnum):
    """What a request does to a resource; the numbers are the wire's (AclOperation)."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14


class ResourceType(IntEnum):
    """What a request touches; the numbers are the wire's (ResourceType)."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class Resource(NamedTuple):
    """One thing that can be protected."""

    type: ResourceType
    name: str


CLUSTER: Final = Resource(ResourceType.CLUSTER, "kafka-cluster")

SUPPORTED_OPERATIONS: Final[dict[ResourceType, frozenset[Operation]]] = {
    ResourceType.TOPIC: frozenset(
        {
            Operation.READ,
            Operation.WRITE,
            Operation.CREATE,
            Operation.DELETE,
            Operation.ALTER,
            Operation.DESCRIBE,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
        }
    ),
    ResourceType.GROUP: frozenset({Operation.READ, Operation.DELETE, Operation.DESCRIBE}),
    ResourceType.CLUSTER: frozenset(
        {
            Operation.CREATE,
            Operation.CLUSTER_ACTION,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
            Operation.IDEMPOTENT_WRITE,
            Operation.ALTER,
            Operation.DESCRIBE,
        }
    ),
    ResourceType.TRANSACTIONAL_ID: frozenset({Operation.WRITE, Operation.DESCRIBE}),
    ResourceType.DELEGATION_TOKEN: frozenset({Operation.DESCRIBE}),
    ResourceType.USER: frozenset({Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS}),
}
"""The operations that make sense on a resource: what `authorized_operations` bit fields can hold (KIP-430)."""


def topic(name: str) -> Resource:
    """The topic of that name."""
    return Resource(ResourceType.TOPIC, name)


def group(group_id: str) -> Resource:
    """The consumer group of that id."""
    return Resource(ResourceType.GROUP, group_id)


def transactional_id(name: str) -> Resource:
    """The transactional id of that name."""
    return Resource(ResourceType.TRANSACTIONAL_ID, name)


class Rights(Protocol):
    """What one principal may do from one host. Threads: any; nothing here blocks.

    `api_key` is the request's for which it is asked, and goes into the audit log.
    """

    @property
    def principal(self) -> str:
        """Whose they are, as `User:NAME`."""

    def allows(self, operation: Operation, resource: Resource, api_key: int, *, quiet: bool = False) -> bool:
        """Whether the principal may do that. A refusal is audited, unless `quiet`: then it was only probed."""

    def allows_on_any(
        self, operation: Operation, resource_type: ResourceType, api_key: int, *, quiet: bool = False
    ) -> bool:
        """Whether the principal may do that on at least one resource of the type (KIP-679); audited as above."""

    def unaudited(self, operation: Operation, resource_type: ResourceType) -> Callable[[str], bool]:
        """A check by name for many resources, as the rights are now: to be asked for anew with each request."""


class Authorizer(Protocol):
    """Decides by what counts now. Threads: any; nothing here blocks."""

    @property
    def audits_everything(self) -> bool:
        """Whether what is allowed is audited too, so that no request may be answered without being asked for."""

    def rights(self, principal: str, host: str) -> Rights:
        """Those of a client, which its connection keeps: they follow every change. `host`: as Java prints addresses."""
