"""ACLs one by one, and filters for them, as the APIs 29 to 31 name them (KIP-140, KIP-290)."""

from collections.abc import Iterator
from typing import NamedTuple

from kavka.broker.security.acl import Operation, ResourceType
from kavka.broker.security.authorizer.names import (
    ANY_NAME,
    OPERATION_CODES,
    OPERATION_NAMES,
    PERMISSION_CODES,
    PERMISSION_NAMES,
    TYPE_NAMES,
    PatternType,
    Permission,
)
from kavka.cluster.znodes.acl import AclEntry, ResourcePattern


class AclBinding(NamedTuple):
    """One entry and where it stands."""

    pattern: ResourcePattern
    entry: AclEntry

    def __str__(self) -> str:
        """As Kafka prints patterns and entries."""
        pattern, entry = self
        kind = "PREFIXED" if pattern.is_prefixed else "LITERAL"
        return (
            f"(pattern={pattern.type_name}:{kind}:{pattern.name}, principal={entry.principal}, host={entry.host}, "
            f"operation={entry.operation}, permissionType={entry.permission})"
        )


class AclFilter(NamedTuple):
    """Which ACLs are meant: None is any. Of an operation, type or permission that is not known, none."""

    resource_type: ResourceType
    name: str | None
    pattern_type: PatternType
    principal: str | None
    host: str | None
    operation: Operation
    permission: Permission

    def fits_pattern(self, pattern: ResourcePattern) -> bool:
        """Whether ACLs of this pattern may be meant. MATCH means all that would count for the name."""
        if self.resource_type is not ResourceType.ANY and TYPE_NAMES[self.resource_type] != pattern.type_name:
            return False
        own = PatternType.PREFIXED if pattern.is_prefixed else PatternType.LITERAL
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, own):
            return False
        name = self.name
        if name is None:
            return True
        if self.pattern_type is not PatternType.MATCH:
            return name == pattern.name
        if pattern.is_prefixed:
            return name.startswith(pattern.name)
        return pattern.name in (name, ANY_NAME)

    def fits_entry(self, entry: AclEntry) -> bool:
        """Whether that entry is meant, at a pattern that fits."""
        return (
            self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and (self.operation is Operation.ANY or OPERATION_NAMES[self.operation] == entry.operation)
            and (self.permission is Permission.ANY or PERMISSION_NAMES[self.permission] == entry.permission)
        )

    def definite_patterns(self) -> Iterator[ResourcePattern]:
        """The patterns that it can only mean, whether they are known or not."""
        kind, name, pattern_type = self.resource_type, self.name, self.pattern_type
        if kind in (ResourceType.UNKNOWN, ResourceType.ANY) or not name:
            return
        if pattern_type in (PatternType.ANY, PatternType.LITERAL):
            yield ResourcePattern(TYPE_NAMES[kind], name)
        if pattern_type in (PatternType.ANY, PatternType.PREFIXED):
            yield ResourcePattern(TYPE_NAMES[kind], name, is_prefixed=True)


def is_known(entry: AclEntry) -> bool:
    """Whether the wire has numbers for what the entry says: somebody else may have written it."""
    return entry.operation in OPERATION_CODES and entry.permission in PERMISSION_CODES
