"""The ACLs in the tree: read, and written with a notice for all brokers, on condition that nobody else did meanwhile.

`acl_changes.py` hears of the notices, on every broker.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final

from kavka.cluster.registry.base import (
    BadVersionError,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    Operation,
    Registry,
    SetData,
    Stat,
    create_path,
    create_paths,
    validate_path,
)
from kavka.cluster.znodes.acl import ACL_PATHS, RESOURCE_TYPES, AclChange, AclEntry, AclNode, ResourcePattern
from kavka.cluster.znodes.json_data import ZnodeError

log = logging.getLogger(__name__)

Acls = frozenset[AclEntry]
AclUpdate = Callable[[Acls], Acls]
"""From a pattern's stored entries to its new ones; runs on the writer's thread, again where another was faster."""

NOTHING: Final[Acls] = frozenset()
UNREADABLE: Final[Acls] = frozenset({AclEntry("User:*", "Deny", "All", "*")})
"""What a node that cannot be read stands for: it may have denied, so nobody but super users passes."""


def prepare_acl_tree(registry: Registry) -> None:
    """Make the nodes that ACLs and their notices hang on; nothing happens where they exist."""
    if registry.get_many(ACL_PATHS).count(None):
        create_paths(registry, ACL_PATHS)


def read_all_acls(registry: Registry) -> dict[ResourcePattern, Acls]:
    """Those of all patterns that have any."""
    kinds = [(type_name, is_prefixed) for is_prefixed in (False, True) for type_name in RESOURCE_TYPES]
    parents = [f"{AclNode.parent(is_prefixed=is_prefixed)}/{type_name}" for type_name, is_prefixed in kinds]
    patterns = [
        ResourcePattern(type_name, name, is_prefixed)
        for (type_name, is_prefixed), names in zip(kinds, registry.children_of_many(parents), strict=True)
        for name in names or ()
    ]
    return {pattern: acls for pattern, acls in read_acls(registry, patterns).items() if acls}


def read_acls(registry: Registry, patterns: Iterable[ResourcePattern]) -> dict[ResourcePattern, Acls]:
    """Those of each of these patterns; none for one without a node. What cannot be read is UNREADABLE, and logged."""
    asked = list(patterns)
    nodes = registry.get_many([AclNode.path(pattern) for pattern in asked])
    return {pattern: _entries(pattern, node) for pattern, node in zip(asked, nodes, strict=True)}


def update_acls(registry: Registry, pattern: ResourcePattern, update: AclUpdate) -> tuple[Acls, Acls]:
    """Write what `update` makes of the stored entries, if that differs: gives those before, and after.

    Raises InvalidNodeError for a name that no node can have.
    """
    path = AclNode.path(pattern)
    validate_path(path)
    while True:
        node = registry.get_many([path])[0]
        before = _entries(pattern, node)
        after = update(before)
        if after == before:
            return before, after
        operations: list[Operation] = []
        if node is None:
            operations.append(Create(path, AclNode.encode(sorted(after))))
        elif after:
            operations.append(SetData(path, AclNode.encode(sorted(after)), node[1].version))
        else:
            operations.append(Delete(path, node[1].version))
        operations.append(Create(AclChange.prefix(pattern), AclChange.encode(pattern), sequential=True))
        try:
            registry.multi(operations)
        except (BadVersionError, NodeExistsError):
            continue
        except NoNodeError:
            # The node was deleted meanwhile, or the tree was made by brokers that knew no such type.
            for made in (path, AclChange.prefix(pattern)):
                create_path(registry, made.rpartition("/")[0])
            continue
        return before, after


def _entries(pattern: ResourcePattern, node: tuple[bytes, Stat] | None) -> Acls:
    if node is None:
        return NOTHING
    try:
        return AclNode.decode(AclNode.path(pattern), node[0])
    except ZnodeError as error:
        log.error("everything is denied there but to super users: %s", error)
        return UNREADABLE
