"""The ACLs in the tree: read, and written with a notice for all brokers, on condition that nobody else did meanwhile.

`acl_changes.py` hears of the notices, on every broker.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from kavka.cluster.registry.base import (
    BadVersionError,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    NotPermittedError,
    Operation,
    Registry,
    SetData,
    Stat,
    create_path,
    create_paths,
    get_permitted,
    validate_path,
)
from kavka.cluster.znodes.acl import ACL_PATHS, RESOURCE_TYPES, AclChange, AclEntry, AclNode, ResourcePattern
from kavka.cluster.znodes.json_data import ZnodeError
from kavka.protocol.errors import BrokerError, ErrorCode

log = logging.getLogger(__name__)
_DENIED: Final = "everything is denied there but to super users: %s"

Acls = frozenset[AclEntry]
AclUpdate = Callable[[Acls], Acls]
"""From a pattern's stored entries to its new ones; runs on the writer's thread, again where another was faster."""

OnHidden = Callable[[ResourcePattern, NotPermittedError], object]
"""Told of a folder that this login may not list: what denies all of its type instead, and why."""

ALL_NAMES: Final = "*"
"""The name of the pattern that means all resources of its type."""
NOTHING: Final[Acls] = frozenset()
UNREADABLE: Final[Acls] = frozenset({AclEntry("User:*", "Deny", "All", "*")})
"""What a node that cannot be read stands for: it may have denied, so nobody but super users passes."""
_UNREADABLE_STAYS: Final = "The ACLs that are stored there cannot be read. Remove all of them first:"


def prepare_acl_tree(registry: Registry) -> None:
    """Make the nodes that ACLs and their notices hang on; nothing happens where they exist."""
    if registry.get_many(ACL_PATHS).count(None):
        create_paths(registry, ACL_PATHS)


def read_all_acls(registry: Registry, on_hidden: OnHidden | None = None) -> dict[ResourcePattern, Acls]:
    """Those of all patterns that have any; as `read_acls`. With `on_hidden` as `read_changed_acls`, and everything is
    denied of types whose folders this login may not list.
    """
    kinds = {
        f"{AclNode.parent(is_prefixed=is_prefixed)}/{type_name}": (type_name, is_prefixed)
        for is_prefixed in (False, True)
        for type_name in RESOURCE_TYPES
    }
    hidden: list[NotPermittedError] = []
    names = _names_below(registry, kinds, None if on_hidden is None else hidden.append)
    patterns = [ResourcePattern(kinds[path][0], name, kinds[path][1]) for path in names for name in names[path]]
    read = read_acls if on_hidden is None else read_changed_acls
    found = {pattern: acls for pattern, acls in read(registry, patterns).items() if acls}
    for error in hidden:
        all_of_type = ResourcePattern(kinds[error.path][0], ALL_NAMES)
        found[all_of_type] = UNREADABLE
        if on_hidden is not None:
            on_hidden(all_of_type, error)
    return found


def _names_below(
    registry: Registry, paths: Iterable[str], on_hidden: Callable[[NotPermittedError], object] | None
) -> dict[str, list[str]]:
    asked = list(paths)
    while True:
        try:
            found = registry.children_of_many(asked)
            return {path: names or [] for path, names in zip(asked, found, strict=True)}
        except NotPermittedError as error:
            if on_hidden is None or error.path not in asked:
                raise
            asked.remove(error.path)
            on_hidden(error)


def read_acls(registry: Registry, patterns: Iterable[ResourcePattern]) -> dict[ResourcePattern, Acls]:
    """Those of each of these patterns; none for one without a node. What cannot be read is UNREADABLE, and logged.

    Raises NotPermittedError for a node that this login may not read.
    """
    asked = list(patterns)
    nodes = registry.get_many([AclNode.path(pattern) for pattern in asked])
    return {pattern: _entries(pattern, node) for pattern, node in zip(asked, nodes, strict=True)}


def read_changed_acls(registry: Registry, patterns: Iterable[ResourcePattern]) -> dict[ResourcePattern, Acls]:
    """As `read_acls`, but where this login may not read, all is denied: what else has changed must not wait for it."""
    asked = {AclNode.path(pattern): pattern for pattern in patterns}
    found = get_permitted(registry, asked, partial(log.error, _DENIED))
    return {pattern: _entries(pattern, found[path]) if path in found else UNREADABLE for path, pattern in asked.items()}


def update_acls(registry: Registry, pattern: ResourcePattern, update: AclUpdate) -> tuple[Acls, Acls]:
    """Write what `update` makes of the stored entries, if that differs: gives those before, and after.

    What cannot be read may have been written by a newer broker, or deny something: it can be removed as a whole, and
    nothing can be added to it. Raises BrokerError(INVALID_REQUEST) then; InvalidNodeError for a name that no node can
    have.
    """
    path = AclNode.path(pattern)
    validate_path(path)
    while True:
        node = registry.get_many([path])[0]
        before = _entries(pattern, node)
        after = update(before)
        if after == before:
            return before, after
        if before is UNREADABLE and after:
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"{_UNREADABLE_STAYS} {path}")
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
        log.error(_DENIED, error)
        return UNREADABLE
