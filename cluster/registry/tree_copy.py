"""A whole tree from one registry into another: what persists of it, and what may be copied by its names.

Left out are ephemeral nodes, which belong to sessions, and the notices below `NOTICES`: their names count on.
An interrupted copy is found by its mark and begun again; `/cluster/id`, without which no broker takes a tree for its
cluster's, comes last.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from kavka.cluster.registry.base import (
    Create,
    Delete,
    NodeExistsError,
    NotEmptyError,
    Operation,
    Registry,
    RegistryError,
    SetData,
)
from kavka.cluster.znodes.broker import BROKER_SEQUENCE_PATH
from kavka.cluster.znodes.cluster_id import ClusterId

MARK_PATH: Final = "/kavka_registry_copy"
NOTICES: Final = frozenset(
    {
        "/config/changes",
        "/isr_change_notification",
        "/log_dir_event_notification",
        "/kafka-acl-changes",
        "/kafka-acl-extended-changes",
        "/delegation_token/token_changes",
    }
)
_SERVERS_OWN: Final = "/zookeeper"
MAX_BROKER_SEQUENCE: Final = 100_000


class Node(NamedTuple):
    """A persistent node. Its version counts only for `/brokers/seqid`, whose data is empty."""

    path: str
    data: bytes
    version: int


def read_tree(registry: Registry) -> list[Node]:
    """All that is copied, parents before children."""
    nodes: list[Node] = []
    level = ["/"]
    while level:
        found: list[str] = []
        for parent, names in zip(level, registry.children_of_many(level), strict=True):
            if parent not in NOTICES:
                found += (f"{parent.rstrip('/')}/{name}" for name in names or ())
        level = []
        for path, node in zip(found, registry.get_many(found), strict=True):
            if node is not None and not node[1].ephemeral_owner and path not in (_SERVERS_OWN, MARK_PATH):
                nodes.append(Node(path, node[0], node[1].version))
                level.append(path)
    return nodes


def write_tree(registry: Registry, nodes: Iterable[Node], cluster_id: str) -> None:
    """Copy `nodes` into a registry that has no cluster.

    Raises NotEmptyError where it has one, and RegistryError for a node that it does not take: then nothing there is
    anybody's cluster, and the next copy of the same cluster begins again.
    """
    _begin(registry, cluster_id)
    operations: list[Operation] = [Create(ClusterId.PATH.rpartition("/")[0])]
    for node in nodes:
        if node.path != ClusterId.PATH:
            operations.append(Create(node.path, node.data))
        if node.path == BROKER_SEQUENCE_PATH:
            # The ids that brokers were given count on from its version.
            operations += [SetData(node.path, b"")] * min(node.version, MAX_BROKER_SEQUENCE)
    existing = {
        operation.path: operation
        for operation, result in zip(operations, registry.pipeline(operations), strict=True)
        if _is_there(result) and isinstance(operation, Create)
    }
    for result in registry.pipeline([SetData(path, each.data) for path, each in existing.items()]):
        if isinstance(result, RegistryError):
            raise result
    registry.multi([Create(ClusterId.PATH, ClusterId.encode(cluster_id)), Delete(MARK_PATH)])


def _begin(registry: Registry, cluster_id: str) -> None:
    """Put the mark on an empty tree, or find one's own."""
    mark, found = registry.get_many([MARK_PATH, ClusterId.PATH])
    mine = ClusterId.encode(cluster_id)
    if found is not None or (mark is not None and mark[0] != mine):
        raise NotEmptyError("/")
    if mark is None:
        if [name for name in registry.children("/") if f"/{name}" != _SERVERS_OWN]:
            raise NotEmptyError("/")
        registry.create(MARK_PATH, mine)


def _is_there(result: object) -> bool:
    """Whether a creation came upon what an interrupted copy has left. Raises any other error."""
    if isinstance(result, RegistryError) and not isinstance(result, NodeExistsError):
        raise result
    return isinstance(result, NodeExistsError)
