"""Who may do what to which resources (KIP-11, KIP-290)."""

import enum
from typing import Final, NamedTuple

from kavka.client.kafka_error import KafkaError

NOT_ASKED: Final = -(2**31)


class _Code(enum.IntEnum):
    """A code of the protocol; one that is not known here is UNKNOWN."""

    @classmethod
    def _missing_(cls, value: object) -> "_Code | None":
        return cls(0) if isinstance(value, int) and value != 0 else None


class ResourceType(_Code):
    """Kinds of resources that ACLs are about. ANY is for filters alone.

    AclBindingFilter(ResourceType.GROUP)
    """

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(_Code):
    """How an ACL's resource name is meant. ANY and MATCH (whatever would apply to the name) are for filters alone.

    AclBindingFilter(ResourceType.TOPIC, "orders", pattern_type=PatternType.MATCH)
    """

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(_Code):
    """What somebody does to a resource. ANY is for filters alone.

    for operation in admin.describe_cluster(include_authorized_operations=True).authorized_operations:
        print(operation.name)
    """

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
    TWO_PHASE_COMMIT = 15


class AclPermissionType(_Code):
    """Whether an ACL allows or forbids. ANY is for filters alone.

    AclBinding(ResourceType.TOPIC, "orders", "User:bob", AclOperation.WRITE, AclPermissionType.DENY)
    """

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class AclBinding(NamedTuple):
    """One access control entry: `principal` from `host` may, or may not, do `operation` to a resource.

    AclBinding(ResourceType.TOPIC, "orders", "User:alice", AclOperation.READ)
    """

    resource_type: ResourceType
    resource_name: str
    principal: str
    operation: AclOperation
    permission: AclPermissionType = AclPermissionType.ALLOW
    host: str = "*"
    pattern_type: PatternType = PatternType.LITERAL


class AclBindingFilter(NamedTuple):
    """Which entries are meant; what is left out is any.

    AclBindingFilter(ResourceType.TOPIC, principal="User:alice")
    """

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    principal: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermissionType = AclPermissionType.ANY
    host: str | None = None
    pattern_type: PatternType = PatternType.ANY


class DeletedAcl(NamedTuple):
    """An entry that a filter matched; `error` is why it is still there, if it is.

    alice = AclBindingFilter(principal="User:alice")
    for deleted in admin.delete_acls([alice])[alice]:
        print(deleted.binding, deleted.error or "gone")
    """

    binding: AclBinding
    error: KafkaError | None


def authorized_operations(bits: int) -> frozenset[AclOperation] | None:
    """What the caller may do, from the bits that answers carry (KIP-430); None when it was not asked for."""
    if bits == NOT_ASKED:
        return None
    return frozenset(operation for operation in AclOperation if operation > AclOperation.ANY and bits >> operation & 1)
