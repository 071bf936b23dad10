"""A ZooKeeper in memory: one tree, many sessions that end when the simulation says so, watches that arrive late.

A session that has ended is not known to its owner before the next call, which then finds itself in another session:
until there is a connection again, a real client's call waits just so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from kavka.cluster.registry.base import (
    ANY_VERSION,
    BadVersionError,
    Check,
    Create,
    Created,
    Delete,
    EventType,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Operation,
    RegistryError,
    Result,
    SessionEvent,
    SessionListener,
    SetData,
    Stat,
    Watch,
    WatchEvent,
)


class _Node:
    __slots__ = ("children", "children_created", "czxid", "data", "mzxid", "owner", "pzxid", "version")

    def __init__(self, data: bytes, zxid: int, owner: int) -> None:
        self.data = data
        self.czxid = self.mzxid = self.pzxid = zxid
        self.owner = owner
        self.version = 0
        self.children: set[str] = set()
        self.children_created = 0

    def copy(self) -> _Node:
        other = _Node(self.data, self.czxid, self.owner)
        other.mzxid, other.pzxid, other.version = self.mzxid, self.pzxid, self.version
        other.children_created = self.children_created
        other.children = set(self.children)
        return other

    def stat(self) -> Stat:
        count = len(self.children)
        cversion = 2 * self.children_created - count
        return Stat(self.czxid, self.mzxid, self.pzxid, 0, 0, self.version, cversion, self.owner, len(self.data), count)


class Tree:
    """The nodes, and who is connected. `on_write(path, data, version)` sees every node that gets data."""

    def __init__(self) -> None:
        self.nodes: dict[str, _Node] = {"/": _Node(b"", 0, 0)}
        self.zxid = 0
        self.sessions: set[int] = set()
        self.clients: list[Client] = []
        self._last_session = 0
        self.on_write: Callable[[str, bytes, int], None] = lambda path, data, version: None

    def copy(self) -> Tree:
        """Without sessions."""
        other = Tree()
        other.nodes = {path: node.copy() for path, node in self.nodes.items()}
        other.zxid = self.zxid
        return other

    def begin_session(self) -> int:
        self._last_session += 1
        self.sessions.add(self._last_session)
        return self._last_session

    def end_session(self, session_id: int) -> None:
        """Ephemeral nodes go at once, those who watch them hear of it later."""
        self.sessions.discard(session_id)
        events: list[WatchEvent] = []
        for path in [path for path, node in self.nodes.items() if node.owner == session_id]:
            self._remove(path, events)
        self.tell(events)

    def tell(self, events: Sequence[WatchEvent]) -> None:
        for client in self.clients:
            for event in events:
                client.watches.fire(event)

    def apply(self, operation: Operation, session_id: int, events: list[WatchEvent]) -> Result:
        path = operation.path
        if isinstance(operation, Create):
            parent_path = path.rpartition("/")[0] or "/"
            parent = self.nodes.get(parent_path)
            if parent is None:
                raise NoNodeError(path)
            if operation.sequential:
                path += f"{parent.children_created:010d}"
            if path in self.nodes:
                raise NodeExistsError(path)
            parent.children_created += 1
            parent.pzxid = self.zxid
            parent.children.add(path.rpartition("/")[2])
            self.nodes[path] = _Node(operation.data, self.zxid, session_id if operation.ephemeral else 0)
            events.append(WatchEvent(EventType.CREATED, path))
            events.append(WatchEvent(EventType.CHILDREN_CHANGED, parent_path))
            self.on_write(path, operation.data, 0)
            return path
        node = self.nodes.get(path)
        if node is None:
            raise NoNodeError(path)
        if operation.version not in (ANY_VERSION, node.version):
            raise BadVersionError(path)
        if isinstance(operation, SetData):
            node.data = operation.data
            node.version += 1
            node.mzxid = self.zxid
            events.append(WatchEvent(EventType.DATA_CHANGED, path))
            self.on_write(path, operation.data, node.version)
            return node.stat()
        if isinstance(operation, Check):
            return None
        if node.children:
            raise NotEmptyError(path)
        self._remove(path, events)
        return None

    def _remove(self, path: str, events: list[WatchEvent]) -> None:
        del self.nodes[path]
        parent_path, _, name = path.rpartition("/")
        parent = self.nodes[parent_path or "/"]
        parent.children.discard(name)
        parent.pzxid = self.zxid
        events.append(WatchEvent(EventType.DELETED, path))
        events.append(WatchEvent(EventType.CHILDREN_CHANGED, parent_path or "/"))


class Client:
    """A `Registry`. `before_call` runs before each call reaches the tree: others may be faster."""

    def __init__(self, tree: Tree, before_call: Callable[[], None] = lambda: None) -> None:
        self._tree = tree
        self._before_call = before_call
        self.session_id = tree.begin_session()
        self._own_sessions = {self.session_id}
        self._listeners: list[SessionListener] = []
        self.watches = _LateWatches()
        tree.clients.append(self)

    @property
    def is_expired(self) -> bool:
        """Whether the session has ended, and nobody here knows."""
        return self.session_id not in self._tree.sessions

    def reconnect(self) -> None:
        """Learn that the session has ended, and begin another one."""
        if not self.is_expired:
            return
        self.session_id = 0
        self.watches.clear()
        self._tell(SessionEvent.EXPIRED)
        self.session_id = self._tree.begin_session()
        self._own_sessions.add(self.session_id)
        self._tell(SessionEvent.ESTABLISHED)

    def is_own_session(self, session_id: int) -> bool:
        return session_id in self._own_sessions

    def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False) -> Created:
        made = self._write(Create(path, data, ephemeral, sequential))
        return Created(str(made), self._tree.zxid)

    def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        stat = self._write(SetData(path, data, version))
        assert isinstance(stat, Stat)
        return stat

    def delete(self, path: str, version: int = ANY_VERSION) -> None:
        self._write(Delete(path, version))

    def multi(self, operations: Sequence[Operation]) -> list[Result]:
        self._enter()
        tree = self._tree
        tree.zxid += 1
        # Tried on a copy: what is written must be seen by nobody when one of them fails.
        trial = tree.copy()
        for operation in operations:
            trial.apply(operation, self.session_id, [])
        events: list[WatchEvent] = []
        results = [tree.apply(operation, self.session_id, events) for operation in operations]
        tree.tell(events)
        return results

    def pipeline(self, operations: Sequence[Operation], guard: Check | None = None) -> list[Result | RegistryError]:
        self._enter()
        events: list[WatchEvent] = []
        results: list[Result | RegistryError] = []
        for operation in operations:
            self._tree.zxid += 1
            if guard is not None:
                try:
                    self._tree.apply(guard, self.session_id, events)
                except RegistryError:
                    self._tree.tell(events)
                    raise BadVersionError(guard.path) from None
            try:
                results.append(self._tree.apply(operation, self.session_id, events))
            except RegistryError as error:
                results.append(error)
        self._tree.tell(events)
        return results

    def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        found = self.get_many([path], watch)[0]
        if found is None:
            raise NoNodeError(path)
        return found

    def get_many(self, paths: Sequence[str], watch: Watch | None = None) -> list[tuple[bytes, Stat] | None]:
        self._enter()
        nodes = [self._tree.nodes.get(path) for path in paths]
        if watch is not None:
            for path, node in zip(paths, nodes, strict=True):
                if node is not None:
                    self.watches.on_data(path, watch)
        return [None if node is None else (node.data, node.stat()) for node in nodes]

    def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        self._enter()
        if watch is not None:
            self.watches.on_data(path, watch)
        node = self._tree.nodes.get(path)
        return None if node is None else node.stat()

    def children(self, path: str, watch: Watch | None = None) -> list[str]:
        self._enter()
        node = self._tree.nodes.get(path)
        if node is None:
            raise NoNodeError(path)
        if watch is not None:
            self.watches.on_children(path, watch)
        return sorted(node.children)

    def children_of_many(self, paths: Sequence[str]) -> list[list[str] | None]:
        self._enter()
        nodes = [self._tree.nodes.get(path) for path in paths]
        return [None if node is None else sorted(node.children) for node in nodes]

    def on_session_event(self, listener: SessionListener) -> None:
        self._listeners.append(listener)

    def stop_waiting(self) -> None: ...

    def close(self) -> None:
        """The process ends; the session goes on until it expires."""
        self._tree.clients.remove(self)

    def _write(self, operation: Operation) -> Result:
        [result] = self.pipeline([operation])
        if isinstance(result, RegistryError):
            raise result
        return result

    def _enter(self) -> None:
        self._before_call()
        self.reconnect()

    def _tell(self, event: SessionEvent) -> None:
        for listener in self._listeners:
            listener(event)


class _LateWatches:
    """Watches of one client; what has fired waits in `arriving`, in order, until it is delivered."""

    def __init__(self) -> None:
        self._data: dict[str, dict[Watch, None]] = {}
        self._children: dict[str, dict[Watch, None]] = {}
        self.arriving: deque[tuple[Watch, WatchEvent]] = deque()

    def on_data(self, path: str, watch: Watch) -> None:
        self._data.setdefault(path, {})[watch] = None

    def on_children(self, path: str, watch: Watch) -> None:
        self._children.setdefault(path, {})[watch] = None

    def fire(self, event: WatchEvent) -> None:
        """Spend the watches on it; they are called by `deliver`."""
        spent: dict[Watch, None] = {}
        if event.type is not EventType.CHILDREN_CHANGED:
            spent |= self._data.pop(event.path, {})
        if event.type in (EventType.CHILDREN_CHANGED, EventType.DELETED):
            spent |= self._children.pop(event.path, {})
        self.arriving.extend((watch, event) for watch in spent)

    def deliver(self) -> None:
        """The first that waits arrives."""
        watch, event = self.arriving.popleft()
        watch(event)

    def clear(self) -> None:
        self._data.clear()
        self._children.clear()
        self.arriving.clear()
