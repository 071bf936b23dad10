"""Operations, types and permissions by the names that Kafka stores and prints, and by the wire's numbers."""

from enum import IntEnum
from typing import Final

from kavka.broker.security.acl import Operation, ResourceType

ALL: Final = "All"
ANYBODY: Final = "User:*"
ANY_HOST: Final = "*"
ANY_NAME: Final = "*"
DENY: Final = "Deny"
ALLOW: Final = "Allow"


class PatternType(IntEnum):
    """How a resource's name is meant; the numbers are the wire's. ANY and MATCH are for filters alone."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    """The numbers are the wire's (AclPermissionType)."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


def _pascal(name: str) -> str:
    return "".join([word.capitalize() for word in name.split("_")])


OPERATION_NAMES: Final = {each: _pascal(each.name) for each in Operation}
TYPE_NAMES: Final = {each: _pascal(each.name) for each in ResourceType}
PERMISSION_NAMES: Final = {each: _pascal(each.name) for each in Permission}

OPERATION_CODES: Final = {name: each for each, name in OPERATION_NAMES.items() if each > Operation.ANY}
TYPE_CODES: Final = {name: each for each, name in TYPE_NAMES.items() if each > ResourceType.ANY}
PERMISSION_CODES: Final = {name: each for each, name in PERMISSION_NAMES.items() if each > Permission.ANY}
