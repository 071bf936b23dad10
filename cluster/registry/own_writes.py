"""Whether a write that a lost connection cut off was done: told by what the tree shows (KAFKA-1382).

What is asked for is read after everything sent before has come through. A node made or changed since the write was
sent, with what it was to hold, is its work. A transaction is done whole, under one zxid, so that one of its nodes tells
of all, even where others have changed the rest since; and one that cannot be its work tells that nothing was done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, NamedTuple

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


class _Verdict(Enum):
    DONE = "its work is there"
    NOT_DONE = "it cannot have been done"
    UNKNOWN = "others have changed it since, or it was not done"


class _Seen(NamedTuple):
    """What the tree says of one operation: `path` is that of the node it made, `node` as it is now."""

    verdict: _Verdict
    path: str
    node: Node | None
    zxid: int = -1


def find(operations: Sequence[Operation], sent: Sent, read: ReadMany, children: ReadChildren) -> Found | None:
    """What the transaction gave; None when it was not done, or the tree does not show it (any more)."""
    last_at = {each.path: index for index, each in enumerate(operations) if not isinstance(each, Check)}
    plain = [path for path, index in last_at.items() if not _is_sequential(operations[index])]
    nodes = dict(zip(plain, read(plain), strict=True))
    seen: dict[int, _Seen] = {}
    for index, operation in enumerate(operations):
        if isinstance(operation, Create) and operation.sequential:
            seen[index] = _find_sequential(operation, sent, read, children)
        elif last_at.get(operation.path) == index:
            seen[index] = _look(operation, nodes[operation.path], sent)
    if not seen or any(each.verdict is _Verdict.NOT_DONE for each in seen.values()):
        return None
    zxids = {each.zxid for each in seen.values() if each.verdict is _Verdict.DONE and each.zxid >= 0}
    is_shown = any(each.verdict is _Verdict.DONE for each in seen.values())
    if not is_shown or len(zxids) > 1:
        return None
    zxid = zxids.pop() if zxids else -1
    return Found([_result(operation, seen.get(index), zxid) for index, operation in enumerate(operations)], zxid)


def _look(operation: Operation, node: Node | None, sent: Sent) -> _Seen:
    """What a node says of the last operation on it."""
    path = operation.path
    if node is None:
        # Of a deletion that is all there is to see; whatever else was there is gone.
        return _Seen(_Verdict.DONE if isinstance(operation, Delete) else _Verdict.UNKNOWN, path, None)
    data, stat = node
    if isinstance(operation, Delete):
        if stat.czxid <= sent.since_zxid:
            return _Seen(_Verdict.NOT_DONE, path, node)
        # A successor: its version says nothing, and it must not be deleted in its predecessor's place.
        is_done = operation.version != ANY_VERSION
        return _Seen(_Verdict.DONE if is_done else _Verdict.UNKNOWN, path, node)
    if isinstance(operation, SetData):
        return _Seen(_verdict_on_data(operation, data, stat, sent), path, node, stat.mzxid)
    assert isinstance(operation, Create)
    if stat.czxid <= sent.since_zxid:
        return _Seen(_Verdict.NOT_DONE, path, node)
    if operation.ephemeral:
        is_own = stat.ephemeral_owner == sent.session_id
    else:
        is_own = stat.ephemeral_owner == 0 and data == operation.data
    return _Seen(_Verdict.DONE if is_own else _Verdict.UNKNOWN, path, node, stat.czxid)


def _verdict_on_data(operation: SetData, data: bytes, stat: Stat, sent: Sent) -> _Verdict:
    is_own = data == operation.data and stat.mzxid > sent.since_zxid
    if operation.version == ANY_VERSION:
        return _Verdict.DONE if is_own else _Verdict.UNKNOWN
    if stat.czxid > sent.since_zxid or stat.version > operation.version + 1:
        return _Verdict.UNKNOWN
    return _Verdict.DONE if is_own and stat.version == operation.version + 1 else _Verdict.NOT_DONE


def _find_sequential(operation: Create, sent: Sent, read: ReadMany, children: ReadChildren) -> _Seen:
    parent, _, prefix = operation.path.rpartition("/")
    names = children(parent or "/") or []
    paths = [
        f"{parent}/{name}" for name in names if name.startswith(prefix) and len(name) == len(prefix) + SEQUENCE_DIGITS
    ]
    for path, node in zip(paths, read(paths), strict=True):
        seen = _look(operation._replace(path=path, sequential=False), node, sent)
        if seen.verdict is _Verdict.DONE and node is not None and node[0] == operation.data:
            return seen
    return _Seen(_Verdict.UNKNOWN, operation.path, None)


def _result(operation: Operation, seen: _Seen | None, zxid: int) -> Result:
    """What ZooKeeper answered; where others have changed a node since, as far as that can be told."""
    if isinstance(operation, Create):
        return operation.path if seen is None else seen.path
    if not isinstance(operation, SetData) or seen is None or seen.node is None:
        return None if not isinstance(operation, SetData) else _GONE._replace(mzxid=zxid, version=operation.version + 1)
    stat = seen.node[1]
    if seen.verdict is _Verdict.DONE or operation.version == ANY_VERSION:
        return stat
    return stat._replace(mzxid=zxid, version=operation.version + 1, data_size_bytes=len(operation.data))


def _is_sequential(operation: Operation) -> bool:
    return isinstance(operation, Create) and operation.sequential


SEQUENCE_DIGITS: Final = 10
_GONE: Final = Stat(-1, -1, -1, 0, 0, 0, 0, 0, 0, 0)
