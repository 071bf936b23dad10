"""The registry of brokers that share a process: a tree in memory, and as many sessions on it as are opened.

For tests of programs: no disk, no thread, no ZooKeeper. Nothing outlives the tree. A call runs on its caller's thread,
under the tree's lock; a write's watches fire there too, other sessions' as well, before it is answered. A session ends
when somebody says so, never by itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from kavka.cluster.registry.base import (
    ANY_VERSION,
    BadVersionError,
    Check,
    Create,
    Created,
    Delete,
    NoNodeError,
    Operation,
    OutOfReachError,
    RegistryError,
    RegistryUnavailableError,
    Result,
    SessionEvent,
    SessionListener,
    SetData,
    Stat,
    Watch,
    WatchEvent,
    refusal_of,
)
from kavka.cluster.registry.memory_tree import MemoryTree
from kavka.cluster.registry.watch_table import WatchTable

_T = TypeVar("_T")


class MemoryEnsemble:
    """What stands in for a ZooKeeper: the tree and the sessions on it.

    Threads: any. `_lock` guards all that is reached from here, and is held while watches and listeners are called: who
    holds it may not call again, nor wait for somebody who does.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._lock = threading.Lock()
        self._holder: int | None = None
        self._last_session = 0
        self.tree = MemoryTree(now_ms)
        self.registries: list[MemoryRegistry] = []
        """Those that are open."""
        self._is_silent = False

    @contextmanager
    def held(self) -> Iterator[MemoryTree]:
        """The tree, for one call. Raises RuntimeError within a watch."""
        if self._holder == threading.get_ident():
            raise RuntimeError("a watch must not call its registry: post to a queue and read from another thread")
        with self._lock:
            self._holder = threading.get_ident()
            try:
                yield self.tree
            finally:
                self._holder = None

    def fall_silent(self) -> None:
        """No watch fires and no listener hears of anything from now on: all who share the tree are about to leave."""
        with self.held():
            self._is_silent = True

    def new_session(self) -> int:
        """Its id. Within `held`."""
        self._last_session += 1
        return self._last_session

    def tell(self, events: Sequence[WatchEvent]) -> None:
        """Fire everybody's watches. Within `held`."""
        for registry in () if self._is_silent else self.registries:
            registry.watches.fire_all(events)

    def end_session(self, session_id: int) -> None:
        """The session's nodes go, and whoever watches them hears of it. Within `held`."""
        events: list[WatchEvent] = []
        self.tree.remove_ephemerals(session_id, events)
        self.tell(events)


class MemoryRegistry:
    """A Registry (see `base`): one broker's, with a session on an ensemble that others may share.

    Threads: everything under the ensemble's lock.
    """

    def __init__(self, ensemble: MemoryEnsemble) -> None:
        self._ensemble = ensemble
        self.watches = WatchTable()
        self._listeners: list[SessionListener] = []
        self._own_sessions: set[int] = set()
        self._session_id = 0
        self._is_closed = False
        self._is_out_of_reach = False
        with ensemble.held():
            ensemble.registries.append(self)
            self._begin_session()

    # The session

    @property
    def session_id(self) -> int:
        return self._session_id

    def is_own_session(self, session_id: int) -> bool:
        return session_id in self._own_sessions

    def on_session_event(self, listener: SessionListener) -> None:
        with self._ensemble.held():
            self._listeners.append(listener)

    def expire(self) -> None:
        """End the session, as ZooKeeper does of whom it has heard nothing for too long; the next one begins at once."""
        with self._ensemble.held():
            if not self._is_closed and not self._is_out_of_reach:
                self._lose_session()
                self._begin_session()
                self._tell(SessionEvent.ESTABLISHED)

    def lose(self) -> None:
        """End the session for good: every later call raises OutOfReachError, as for one whose process was killed."""
        with self._ensemble.held():
            if not self._is_closed and not self._is_out_of_reach:
                self._is_out_of_reach = True
                self._lose_session()

    def stop_waiting(self) -> None:
        """Nothing here waits for a connection."""

    def close(self) -> None:
        with self._ensemble.held():
            if self._is_closed:
                return
            self._is_closed = True
            self.watches.clear()
            self._ensemble.registries.remove(self)
            if self._session_id:
                self._ensemble.end_session(self._session_id)

    def _begin_session(self) -> None:
        self._session_id = self._ensemble.new_session()
        self._own_sessions.add(self._session_id)

    def _lose_session(self) -> None:
        ended, self._session_id = self._session_id, 0
        self.watches.clear()
        self._tell(SessionEvent.EXPIRED)
        self._ensemble.end_session(ended)

    def _tell(self, event: SessionEvent) -> None:
        for listener in self._listeners:
            listener(event)

    # Writing

    def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False) -> Created:
        def run(tree: MemoryTree) -> Created:
            (made,) = self._apply_all(tree, [Create(path, data, ephemeral, sequential)])
            return Created(str(made), tree.zxid)

        return self._run(run)

    def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        stat = self.multi([SetData(path, data, version)])[0]
        assert isinstance(stat, Stat)
        return stat

    def delete(self, path: str, version: int = ANY_VERSION) -> None:
        self.multi([Delete(path, version)])

    def multi(self, operations: Sequence[Operation]) -> list[Result]:
        return self._run(lambda tree: self._apply_all(tree, operations))

    def pipeline(self, operations: Sequence[Operation], guard: Check | None = None) -> list[Result | RegistryError]:
        def run(tree: MemoryTree) -> list[Result | RegistryError]:
            results: list[Result | RegistryError] = []
            for operation in operations:
                refusal = refusal_of(operation)
                if refusal is not None:
                    results.append(refusal)
                    continue
                if guard is not None and not tree.holds(guard):
                    raise BadVersionError(guard.path)
                try:
                    results += self._apply_all(tree, [operation])
                except RegistryError as error:
                    results.append(error)
            return results

        return self._run(run)

    def _apply_all(self, tree: MemoryTree, operations: Sequence[Operation]) -> list[Result]:
        """All or none, under one zxid, and tell who watches."""
        for refusal in filter(None, map(refusal_of, operations)):
            raise refusal
        events: list[WatchEvent] = []
        results = tree.apply(operations, self._session_id, events)
        self._ensemble.tell(events)
        return results

    # Reading

    def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        def run(tree: MemoryTree) -> tuple[bytes, Stat]:
            found = tree.get(path)
            if found is None:
                raise NoNodeError(path)
            if watch is not None:
                self.watches.watch_data(path, watch)
            return found

        return self._run(run)

    def get_many(self, paths: Sequence[str], watch: Watch | None = None) -> list[tuple[bytes, Stat] | None]:
        def run(tree: MemoryTree) -> list[tuple[bytes, Stat] | None]:
            found = [tree.get(path) for path in paths]
            if watch is not None:
                existing = [path for path, node in zip(paths, found, strict=True) if node is not None]
                self.watches.watch_data_of(existing, watch)
            return found

        return self._run(run)

    def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        def run(tree: MemoryTree) -> Stat | None:
            if watch is not None:
                self.watches.watch_data(path, watch)
            found = tree.get(path)
            return None if found is None else found[1]

        return self._run(run)

    def children(self, path: str, watch: Watch | None = None) -> list[str]:
        def run(tree: MemoryTree) -> list[str]:
            names = tree.children(path)
            if names is None:
                raise NoNodeError(path)
            if watch is not None:
                self.watches.watch_children(path, watch)
            return names

        return self._run(run)

    def children_of_many(self, paths: Sequence[str]) -> list[list[str] | None]:
        return self._run(lambda tree: [tree.children(path) for path in paths])

    def _run(self, call: Callable[[MemoryTree], _T]) -> _T:
        with self._ensemble.held() as tree:
            if self._is_closed:
                raise RegistryUnavailableError("the registry is closed")
            if self._is_out_of_reach:
                raise OutOfReachError("the registry is out of reach")
            return call(tree)
