"""Operations, resources, and the port that decides whether a principal may perform one on the other (KIP-11)."""

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
    ResourceType.GROUP: frozenset(
        {
            Operation.READ,
            Operation.DELETE,
            Operation.DESCRIBE,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
        }
    ),
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


class Authorizer(Protocol):
    """Decides; called from I/O threads, so it never blocks."""

    def allows(self, principal: str, client_host: str, operation: Operation, resource: Resource) -> bool:
        """Whether `principal`, connected from `client_host`, may perform `operation` on `resource`."""
        ...
