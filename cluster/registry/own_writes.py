"""Whether a write that a lost connection cut off was done: told by what the tree shows (KAFKA-1382).

What is asked for is read after everything sent before has come through. A node made or changed since the write was
sent, with what it was to hold, is its work. A transaction is done whole, under one zxid, so that one of its nodes tells
of all, even where others have changed the rest since; and one that cannot be its work tells that nothing was done.

Nothing is a write's work that was done when its guard did not hold, or under another zxid than the nodes beside it.
Nobody owns a sequential node: one that is to be told from others' says in its data whose it is. In doubt a write was
not done: sent again it is refused, and its writer reads what there is.
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
    guards = [each for each in operations if isinstance(each, Check) and each.path not in last_at]
    paths = list(dict.fromkeys([*plain, *(each.path for each in guards)]))
    nodes = dict(zip(paths, read(paths), strict=True))
    seen = {last_at[path]: _look(operations[last_at[path]], nodes[path], sent) for path in plain}
    if any(each.verdict is _Verdict.NOT_DONE for each in seen.values()):
        return None
    zxids = {each.zxid for each in seen.values() if each.verdict is _Verdict.DONE and each.zxid >= 0}
    if len(zxids) > 1:
        return None
    zxid = zxids.pop() if zxids else -1
    for index, operation in enumerate(operations):
        if isinstance(operation, Create) and operation.sequential:
            found = _find_sequential(operation, sent, read, children, zxid)
            if found is None:
                return None
            seen[index] = found
            zxid = found.zxid
    if all(each.verdict is _Verdict.UNKNOWN for each in seen.values()):
        return None
    if not all(_could_be_beside(operations[index], each, zxid) for index, each in seen.items()):
        return None
    if not all(_held(guard, nodes[guard.path], zxid) for guard in guards):
        return None
    return Found([_result(operation, seen.get(index), zxid) for index, operation in enumerate(operations)], zxid)


def _held(guard: Check, node: Node | None, zxid: int) -> bool:
    """Whether the guard held at `zxid`, as far as the tree shows it."""
    if node is None:
        return False
    stat = node[1]
    if guard.version in (ANY_VERSION, stat.version):
        return True
    return stat.version == guard.version + 1 and -1 < zxid < stat.mzxid


def _could_be_beside(operation: Operation, seen: _Seen, zxid: int) -> bool:
    """Whether what is unknown by itself may have been done under `zxid`, and been changed by others since."""
    if seen.verdict is not _Verdict.UNKNOWN or seen.node is None or zxid < 0:
        return True
    stat = seen.node[1]
    if isinstance(operation, Create):
        return stat.czxid == zxid < stat.mzxid
    return stat.mzxid > zxid


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


def _find_sequential(operation: Create, sent: Sent, read: ReadMany, children: ReadChildren, zxid: int) -> _Seen | None:
    """The node that was made under `zxid`, or where nothing tells that (-1), the first one that may be its work."""
    parent, _, prefix = operation.path.rpartition("/")
    names = children(parent or "/") or []
    paths = [
        f"{parent}/{name}" for name in names if name.startswith(prefix) and len(name) == len(prefix) + SEQUENCE_DIGITS
    ]
    for path, node in zip(paths, read(paths), strict=True):
        seen = _look(operation._replace(path=path, sequential=False), node, sent)
        is_its = seen.verdict is _Verdict.DONE and node is not None and node[0] == operation.data
        if is_its and zxid in (-1, seen.zxid):
            return seen
    return None


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
