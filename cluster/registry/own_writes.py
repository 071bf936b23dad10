"""Whether a write that a lost connection cut off was done: told by what the tree shows (KAFKA-1382).

What is asked for is read after everything sent before has come through. A node made or changed since the write was
sent, with what it was to hold, is its result; all operations of one transaction carry one zxid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kavka.cluster.registry.base import ANY_VERSION, Check, Create, Delete, Operation, Result, SetData, Stat

Node = tuple[bytes, Stat]
ReadMany = Callable[[Sequence[str]], list[Node | None]]
ReadChildren = Callable[[str], list[str] | None]


class Sent(NamedTuple):
    """When a write was sent, and by whom."""

    since_zxid: int
    session_id: int


class Found(NamedTuple):
    """A write's own results, and its zxid (-1 where nothing tells)."""

    results: list[Result]
    zxid: int


def find(operations: Sequence[Operation], sent: Sent, read: ReadMany, children: ReadChildren) -> Found | None:
    """What the transaction gave; None when it was not done, or the tree does not show it (any more)."""
    if all(isinstance(each, Check) for each in operations):
        return None
    last_at = {each.path: index for index, each in enumerate(operations) if not isinstance(each, Check)}
    paths = [path for path, index in last_at.items() if not _is_sequential(operations[index])]
    nodes = dict(zip(paths, read(paths), strict=True))
    results: list[Result] = []
    zxids: set[int] = set()
    for index, operation in enumerate(operations):
        is_last = last_at.get(operation.path) == index
        if isinstance(operation, Create) and operation.sequential:
            made = _find_sequential(operation, sent, read, children)
            if made is None:
                return None
            results.append(made[0])
            zxids.add(made[1])
        elif isinstance(operation, Check) or not is_last:
            results.append(operation.path if isinstance(operation, Create) else None)
        else:
            node = nodes[operation.path]
            zxid = _zxid_of(operation, node, sent)
            if zxid is None:
                return None
            if zxid >= 0:
                zxids.add(zxid)
            results.append(_result(operation, node))
    if len(zxids) > 1:
        return None
    return Found(results, zxids.pop() if zxids else -1)


def _is_sequential(operation: Operation) -> bool:
    return isinstance(operation, Create) and operation.sequential


def _zxid_of(operation: Operation, node: Node | None, sent: Sent) -> int | None:
    """The transaction that left the node so, if it can have been this one: -1 where the node is gone, else None."""
    if isinstance(operation, Delete):
        is_gone = node is None or (operation.version != ANY_VERSION and node[1].czxid > sent.since_zxid)
        return -1 if is_gone else None
    if node is None or isinstance(operation, Check):
        return None
    data, stat = node
    if isinstance(operation, SetData):
        is_ours = operation.version in (ANY_VERSION, stat.version - 1) and data == operation.data
        return stat.mzxid if is_ours and stat.mzxid > sent.since_zxid else None
    if stat.czxid <= sent.since_zxid:
        return None
    if operation.ephemeral:
        return stat.czxid if stat.ephemeral_owner == sent.session_id else None
    return stat.czxid if stat.ephemeral_owner == 0 and data == operation.data else None


def _find_sequential(operation: Create, sent: Sent, read: ReadMany, children: ReadChildren) -> tuple[str, int] | None:
    parent, _, prefix = operation.path.rpartition("/")
    names = children(parent or "/") or []
    paths = [f"{parent}/{name}" for name in names if name.startswith(prefix) and len(name) == len(prefix) + 10]
    for path, node in zip(paths, read(paths), strict=True):
        plain = operation._replace(path=path, sequential=False)
        if (zxid := _zxid_of(plain, node, sent)) is not None and node is not None and node[0] == operation.data:
            return path, zxid
    return None


def _result(operation: Operation, node: Node | None) -> Result:
    if isinstance(operation, Create):
        return operation.path
    return node[1] if isinstance(operation, SetData) and node is not None else None
