"""Random ACLs and questions about them, and the answers by AclAuthorizer's rules, taken word for word."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kavka.broker.security.acl import Operation, Resource, ResourceType
from kavka.broker.security.authorizer.names import OPERATION_NAMES, TYPE_NAMES
from kavka.cluster.acls import Acls
from kavka.cluster.znodes.acl import AclEntry, ResourcePattern

PRINCIPALS = ("User:alice", "User:bob", "User:*", "Group:alice", "User:CN=a, O=b:c", "User:")
HOSTS = ("*", "127.0.0.1", "10.0.0.7", "0:0:0:0:0:0:0:1")
NAMES = ("*", "a", "ab", "abc", "abd", "b", "ba", "\U0001f600", "\U0001f600x", "\uffee", "A", "a*", "")
OPERATIONS = tuple(each for each in Operation if each > Operation.ALL)
TYPES = tuple(each for each in ResourceType if each > ResourceType.ANY)
IMPLYING = {
    "Describe": ("Read", "Write", "Delete", "Alter"),
    "DescribeConfigs": ("AlterConfigs",),
}


class Question(NamedTuple):
    """May that principal, from that host, do that to that resource?"""

    principal: str
    host: str
    operation: Operation
    resource: Resource


def random_acls(chance: random.Random, types: int = 2, most: int = 12) -> dict[ResourcePattern, Acls]:
    """ACLs on a few types of resources, whose names begin each other."""
    acls: dict[ResourcePattern, set[AclEntry]] = {}
    for _ in range(chance.randrange(most)):
        name = chance.choice(NAMES[:-1])
        pattern = ResourcePattern(TYPE_NAMES[chance.choice(TYPES[:types])], name, chance.random() < 0.4)
        entry = AclEntry(
            chance.choice(PRINCIPALS),
            chance.choice(("Allow", "Allow", "Deny")),
            chance.choice(("All", *(OPERATION_NAMES[each] for each in OPERATIONS[:8]))),
            chance.choice(HOSTS),
        )
        acls.setdefault(pattern, set()).add(entry)
    return {pattern: frozenset(entries) for pattern, entries in acls.items()}


def random_question(chance: random.Random, types: int = 2) -> Question:
    resource = Resource(chance.choice(TYPES[:types]), chance.choice(NAMES))
    principal = chance.choice([each for each in PRINCIPALS if each != "User:*"])
    return Question(principal, chance.choice(HOSTS[1:]), chance.choice(OPERATIONS[:8]), resource)


def allows(acls: Mapping[ResourcePattern, Acls], asked: Question, *, allows_unmentioned: bool) -> bool:
    """`authorizeAction`, but for super users."""
    kind = TYPE_NAMES[asked.resource.type]
    entries = [
        entry
        for pattern, found in acls.items()
        if pattern.type_name == kind and _is_meant(pattern, asked.resource.name)
        for entry in found
    ]
    if not entries:
        return allows_unmentioned
    operation = OPERATION_NAMES[asked.operation]
    if any(_fits(each, asked, "Deny", (operation,)) for each in entries):
        return False
    return any(_fits(each, asked, "Allow", (operation, *IMPLYING.get(operation, ()))) for each in entries)


def allows_some(acls: Mapping[ResourcePattern, Acls], asked: Question, *, allows_unmentioned: bool) -> bool:
    """`authorizeByResourceType`, but for super users."""
    kind, operation = TYPE_NAMES[asked.resource.type], OPERATION_NAMES[asked.operation]

    def fitting(permission: str, *, is_prefixed: bool) -> list[str]:
        return [
            pattern.name
            for pattern, found in acls.items()
            if pattern.type_name == kind and pattern.is_prefixed is is_prefixed
            for each in found
            if _fits(each, asked, permission, (operation,))
        ]

    denied, denied_prefixes = fitting("Deny", is_prefixed=False), fitting("Deny", is_prefixed=True)
    if "*" in denied:
        return False
    if allows_unmentioned:
        return True
    allowed, allowed_prefixes = fitting("Allow", is_prefixed=False), fitting("Allow", is_prefixed=True)

    def is_dominated(name: str) -> bool:
        return any(name.startswith(prefix) for prefix in denied_prefixes)

    return not all(map(is_dominated, allowed_prefixes)) or any(
        name == "*" or (name not in denied and not is_dominated(name)) for name in allowed
    )


def _is_meant(pattern: ResourcePattern, name: str) -> bool:
    return name.startswith(pattern.name) if pattern.is_prefixed else pattern.name in (name, "*")


def _fits(entry: AclEntry, asked: Question, permission: str, operations: Iterable[str]) -> bool:
    return (
        entry.permission == permission
        and entry.principal in (asked.principal, "User:*")
        and entry.host in (asked.host, "*")
        and entry.operation in ("All", *operations)
    )
