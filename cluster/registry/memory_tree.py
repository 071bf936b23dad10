"""A tree of znodes in memory, with ZooKeeper's bookkeeping.

Threads: whoever has a tree sees to it that one at a time uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kavka.cluster.registry.base import (
    ANY_VERSION,
    BadVersionError,
    Check,
    Create,
    Delete,
    EventType,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Operation,
    RegistryError,
    Result,
    SetData,
    Stat,
    WatchEvent,
)


class _Node:
    __slots__ = (
        "children",
        "children_created",
        "ctime_ms",
        "cversion",
        "czxid",
        "data",
        "ephemeral_owner",
        "mtime_ms",
        "mzxid",
        "pzxid",
        "version",
    )

    def __init__(self, data: bytes, zxid: int, now_ms: int, ephemeral_owner: int) -> None:
        self.data = data
        self.czxid = self.mzxid = self.pzxid = zxid
        self.ctime_ms = self.mtime_ms = now_ms
        self.ephemeral_owner = ephemeral_owner
        self.version = self.cversion = self.children_created = 0
        self.children: set[str] = set()

    def stat(self) -> Stat:
        return Stat(
            self.czxid,
            self.mzxid,
            self.pzxid,
            self.ctime_ms,
            self.mtime_ms,
            self.version,
            self.cversion,
            self.ephemeral_owner,
            len(self.data),
            len(self.children),
        )

    def child_added(self, name: str, zxid: int) -> None:
        self.children.add(name)
        self.children_created += 1
        self.cversion += 1
        self.pzxid = zxid

    def child_removed(self, name: str, zxid: int) -> None:
        self.children.discard(name)
        self.cversion += 1
        self.pzxid = zxid


class MemoryTree:
    """The nodes. `zxid` is that of the last write."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self.zxid = 0
        self._nodes: dict[str, _Node] = {"/": _Node(b"", 0, 0, 0)}
        self._undo: list[Callable[[], None]] = []
        """What takes the operations of the running write back, the last one first."""

    def get(self, path: str) -> tuple[bytes, Stat] | None:
        node = self._nodes.get(path)
        return None if node is None else (node.data, node.stat())

    def children(self, path: str) -> list[str] | None:
        """Names, sorted; None without such a node."""
        node = self._nodes.get(path)
        return None if node is None else sorted(node.children)

    def holds(self, guard: Check) -> bool:
        """Whether the node is there, with that version."""
        node = self._nodes.get(guard.path)
        return node is not None and guard.version in (ANY_VERSION, node.version)

    def apply(self, operations: Sequence[Operation], session_id: int, events: list[WatchEvent]) -> list[Result]:
        """Do all or none, under one zxid, and say in `events` what watchers will hear. Raises RegistryError."""
        self.zxid += 1
        self._undo.clear()
        try:
            return [self._apply(operation, session_id, events) for operation in operations]
        except RegistryError:
            while self._undo:
                self._undo.pop()()
            raise

    def remove_ephemerals(self, session_id: int, events: list[WatchEvent]) -> None:
        """What a session that has ended leaves behind goes."""
        owned = [Delete(path) for path, node in self._nodes.items() if node.ephemeral_owner == session_id]
        if owned:
            self.apply(owned, session_id, events)

    def _apply(self, operation: Operation, session_id: int, events: list[WatchEvent]) -> Result:
        if isinstance(operation, Create):
            return self._create(operation, session_id, events)
        node = self._nodes.get(operation.path)
        if node is None:
            raise NoNodeError(operation.path)
        if operation.version not in (ANY_VERSION, node.version):
            raise BadVersionError(operation.path)
        if isinstance(operation, SetData):
            return self._set(node, operation, events)
        if isinstance(operation, Delete):
            self._delete(node, operation.path, events)
        return None

    def _create(self, operation: Create, session_id: int, events: list[WatchEvent]) -> str:
        if operation.path == "/":
            raise NodeExistsError("/")
        parent_path, name = _split(operation.path)
        parent = self._nodes.get(parent_path)
        if parent is None:
            raise NoNodeError(parent_path)
        if parent.ephemeral_owner:
            raise NoChildrenForEphemeralsError(parent_path)
        path = operation.path
        if operation.sequential:
            name = f"{name}{parent.children_created:010d}"
            path = f"{path}{parent.children_created:010d}"
        if path in self._nodes:
            raise NodeExistsError(path)
        before = parent.children_created, parent.cversion, parent.pzxid
        owner = session_id if operation.ephemeral else 0
        self._nodes[path] = _Node(bytes(operation.data), self.zxid, self._now_ms(), owner)
        parent.child_added(name, self.zxid)

        def undo() -> None:
            del self._nodes[path]
            parent.children.discard(name)
            parent.children_created, parent.cversion, parent.pzxid = before

        self._undo.append(undo)
        events.append(WatchEvent(EventType.CREATED, path))
        events.append(WatchEvent(EventType.CHILDREN_CHANGED, parent_path))
        return path

    def _set(self, node: _Node, operation: SetData, events: list[WatchEvent]) -> Stat:
        before = node.data, node.version, node.mzxid, node.mtime_ms
        node.data, node.mzxid, node.mtime_ms = bytes(operation.data), self.zxid, self._now_ms()
        node.version += 1

        def undo() -> None:
            node.data, node.version, node.mzxid, node.mtime_ms = before

        self._undo.append(undo)
        events.append(WatchEvent(EventType.DATA_CHANGED, operation.path))
        return node.stat()

    def _delete(self, node: _Node, path: str, events: list[WatchEvent]) -> None:
        if node.children or path == "/":
            raise NotEmptyError(path)
        parent_path, name = _split(path)
        parent = self._nodes[parent_path]
        before = parent.cversion, parent.pzxid
        del self._nodes[path]
        parent.child_removed(name, self.zxid)

        def undo() -> None:
            self._nodes[path] = node
            parent.children.add(name)
            parent.cversion, parent.pzxid = before

        self._undo.append(undo)
        events.append(WatchEvent(EventType.DELETED, path))
        events.append(WatchEvent(EventType.CHILDREN_CHANGED, parent_path))


def _split(path: str) -> tuple[str, str]:
    """Parent and name, of any path but the root's."""
    parent, _, name = path.rpartition("/")
    return parent or "/", name
