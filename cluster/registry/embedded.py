"""The registry of a broker that stands alone: the tree in a SQLite file beside its logs, owned by one thread.

Calls from any thread queue up and wait. The owner takes all that wait, runs them in one transaction with one fsync,
lets the watches fire, and only then releases the callers, in order. If the disk fails, the whole group fails and
nothing of it remains. The session begins when the file opens and ends when it closes; it never expires in between.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from kavka.cluster.registry.base import (
    ANY_VERSION,
    BadVersionError,
    Check,
    Create,
    Created,
    Delete,
    NoNodeError,
    Operation,
    RegistryError,
    RegistryUnavailableError,
    Result,
    SessionListener,
    SetData,
    Stat,
    Watch,
    WatchEvent,
    refusal_of,
)
from kavka.cluster.registry.watch_table import WatchTable

if TYPE_CHECKING:
    from kavka.cluster.registry.sqlite_tree import SqliteTree

log = logging.getLogger(__name__)

FILE_NAME: Final = "kavka-registry.sqlite"
"""In the first log directory. No partition's folder ends like this."""

_LARGEST_GROUP: Final = 64
_T = TypeVar("_T")


class EmbeddedRegistry:
    """A Registry (see `base`) in one file.

    Threads: `_watches` and the tree belong to the owner thread. `_closed` is guarded by `_gate`. The queue holds at
    most one call for each thread that waits.
    """

    def __init__(self, path: Path, now_ms: Callable[[], int]) -> None:
        """Open or make the file, end what earlier sessions left.

        Raises RegistryInUseError, RegistryCorruptError, RegistryVersionError, RegistryUnavailableError.
        """
        self._path = path
        self._now_ms = now_ms
        self._watches = WatchTable()
        self._gate = threading.Lock()
        self._closed = False
        self._queue: SimpleQueue[_Call[Any] | None] = SimpleQueue()
        self._session_id = 0
        opening = _Call(lambda tree, _: tree.begin_session(), is_write=True)
        self._thread = threading.Thread(target=self._own, args=(opening,), name="kavka-registry", daemon=True)
        self._thread.start()
        try:
            self._session_id = opening.wait()
        except BaseException:
            self._thread.join()
            raise

    @property
    def session_id(self) -> int:
        return self._session_id

    def is_own_session(self, session_id: int) -> bool:
        """Sessions before this one have left nothing behind."""
        return session_id == self._session_id

    def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False) -> Created:
        operation = Create(path, data, ephemeral, sequential)
        refusal = refusal_of(operation)
        if refusal is not None:
            raise refusal

        def run(tree: SqliteTree, effects: list[_Effect]) -> Created:
            events: list[WatchEvent] = []
            zxid = tree.next_zxid()
            made = tree.apply(operation, zxid, self._session_id, events)
            effects.append(partial(self._watches.fire_all, events))
            return Created(str(made), zxid)

        return self._submit(run, is_write=True)

    def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        stat = self.multi([SetData(path, data, version)])[0]
        assert isinstance(stat, Stat)
        return stat

    def delete(self, path: str, version: int = ANY_VERSION) -> None:
        self.multi([Delete(path, version)])

    def multi(self, operations: Sequence[Operation]) -> list[Result]:
        for refusal in filter(None, map(refusal_of, operations)):
            raise refusal

        def run(tree: SqliteTree, effects: list[_Effect]) -> list[Result]:
            events: list[WatchEvent] = []
            zxid = tree.next_zxid()
            tree.savepoint()
            try:
                results = [tree.apply(operation, zxid, self._session_id, events) for operation in operations]
            except RegistryError:
                tree.rollback_to_savepoint()
                raise
            tree.release()
            effects.append(partial(self._watches.fire_all, events))
            return results

        return self._submit(run, is_write=True)

    def pipeline(self, operations: Sequence[Operation], guard: Check | None = None) -> list[Result | RegistryError]:
        refusals = list(map(refusal_of, operations))

        def run(tree: SqliteTree, effects: list[_Effect]) -> list[Result | RegistryError]:
            events: list[WatchEvent] = []
            results: list[Result | RegistryError] = []
            effects.append(partial(self._watches.fire_all, events))
            is_guarded = guard is None
            for operation, refusal in zip(operations, refusals, strict=True):
                if refusal is not None:
                    results.append(refusal)
                    continue
                try:
                    if guard is not None and not is_guarded:
                        tree.apply(guard, 0, self._session_id, events)
                    # Nothing but the pipeline itself can break the guard within its transaction.
                    is_guarded = guard is None or operation.path != guard.path
                except RegistryError:
                    break
                try:
                    results.append(tree.apply(operation, tree.next_zxid(), self._session_id, events))
                except RegistryError as error:
                    results.append(error)
            return results

        results = self._submit(run, is_write=True)
        if guard is not None and len(results) < len(operations):
            raise BadVersionError(guard.path)
        return results

    def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        def run(tree: SqliteTree, effects: list[_Effect]) -> tuple[bytes, Stat]:
            found = tree.get(path)
            if found is None:
                raise NoNodeError(path)
            if watch is not None:
                effects.append(partial(self._watches.watch_data, path, watch))
            return found

        return self._submit(run)

    def get_many(self, paths: Sequence[str], watch: Watch | None = None) -> list[tuple[bytes, Stat] | None]:
        def run(tree: SqliteTree, effects: list[_Effect]) -> list[tuple[bytes, Stat] | None]:
            found = [tree.get(path) for path in paths]
            if watch is not None:
                existing = [path for path, node in zip(paths, found, strict=True) if node is not None]
                effects.append(partial(self._watches.watch_data_of, existing, watch))
            return found

        return self._submit(run)

    def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        def run(tree: SqliteTree, effects: list[_Effect]) -> Stat | None:
            if watch is not None:
                effects.append(partial(self._watches.watch_data, path, watch))
            found = tree.get(path)
            return None if found is None else found[1]

        return self._submit(run)

    def children(self, path: str, watch: Watch | None = None) -> list[str]:
        def run(tree: SqliteTree, effects: list[_Effect]) -> list[str]:
            names = tree.children(path)
            if names is None:
                raise NoNodeError(path)
            if watch is not None:
                effects.append(partial(self._watches.watch_children, path, watch))
            return names

        return self._submit(run)

    def children_of_many(self, paths: Sequence[str]) -> list[list[str] | None]:
        return self._submit(lambda tree, _: [tree.children(path) for path in paths])

    def on_session_event(self, listener: SessionListener) -> None:
        """The session of an embedded registry never expires: `listener` is never called."""

    def stop_waiting(self) -> None:
        """Nothing here waits for a connection."""

    def close(self) -> None:
        with self._gate:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        if threading.current_thread() is self._thread:
            raise RuntimeError("a watch must not close its registry")
        self._thread.join()

    def _submit(self, run: Callable[[SqliteTree, list[_Effect]], _T], *, is_write: bool = False) -> _T:
        if threading.current_thread() is self._thread:
            raise RuntimeError("a watch must not call its registry: post to a queue and read from another thread")
        call = _Call(run, is_write=is_write)
        with self._gate:
            if self._closed:
                raise RegistryUnavailableError("the registry is closed", str(self._path))
            self._queue.put(call)
        return call.wait()

    # The owner thread

    def _own(self, opening: _Call[int]) -> None:
        tree = None
        try:
            # Imported here, beside the rest of the broker's start: it takes 5 ms.
            from kavka.cluster.registry.sqlite_tree import SqliteTree

            tree = SqliteTree(self._path, self._now_ms)
            self._run_group(tree, [opening])
            while opening.error is None and (group := self._next_group()):
                self._run_group(tree, group)
            self._end_session(tree)
        except RegistryError as error:
            opening.error = error
        finally:
            self._fail_the_rest(opening)
            if tree is not None:
                tree.close()

    def _next_group(self) -> list[_Call[Any]]:
        """All calls that wait, at least one; an empty list when it is time to close."""
        call = self._queue.get()
        group: list[_Call[Any]] = []
        while call is not None:
            group.append(call)
            if len(group) == _LARGEST_GROUP or self._queue.empty():
                return group
            call = self._queue.get_nowait()
        if group:
            # The mark goes back: nothing was put after it, and the calls before it come first.
            self._queue.put(None)
        return group

    def _run_group(self, tree: SqliteTree, group: list[_Call[Any]]) -> None:
        """Run the calls in one transaction, let their watches fire, release the callers."""
        is_write = any(call.is_write for call in group)
        try:
            if is_write:
                tree.begin()
            for call in group:
                call.attempt(tree)
            if is_write:
                tree.commit()
        except Exception as error:  # noqa: BLE001 - whatever it is, the callers must not wait for ever
            self._fail_group(tree, group, error)
        for call in group:
            if call.error is None:
                for effect in call.effects:
                    effect()
            call.release()

    def _fail_group(self, tree: SqliteTree, group: list[_Call[Any]], error: Exception) -> None:
        import sqlite3

        from kavka.cluster.registry.sqlite_tree import explain

        log.error("the registry %s undid %d calls: %r", self._path, len(group), error)
        reason = explain(error, self._path) if isinstance(error, sqlite3.Error) else error
        for call in group:
            call.error = call.error or reason
        try:
            tree.rollback()
        except sqlite3.Error as failure:
            log.error("the registry %s could not roll back: %r", self._path, failure)

    def _end_session(self, tree: SqliteTree) -> None:
        """Take the ephemeral nodes away. Should the disk not allow it, the next start does."""
        import sqlite3

        try:
            tree.begin()
            tree.remove_ephemerals()
            tree.commit()
        except sqlite3.Error as error:
            log.warning("the registry %s closed without ending its session: %r", self._path, error)

    def _fail_the_rest(self, opening: _Call[int]) -> None:
        """Whatever ended the thread, nobody waits for it for ever."""
        closed = RegistryUnavailableError("the registry is closed", str(self._path))
        with self._gate:
            self._closed = True
        left: list[_Call[Any] | None] = [opening]
        while not self._queue.empty():
            left.append(self._queue.get_nowait())
        for call in left:
            if call is not None and not call.is_done:
                call.error = call.error or closed
                call.release()


_Effect = Callable[[], None]


class _Call(Generic[_T]):
    """One call on its way to the owner thread and back.

    Threads: made and awaited by the caller, run by the owner; the lock hands the outcome over.
    """

    __slots__ = ("_done", "_result", "_run", "effects", "error", "is_done", "is_write")

    def __init__(self, run: Callable[[SqliteTree, list[_Effect]], _T], *, is_write: bool) -> None:
        self._run = run
        self.is_write = is_write
        self.effects: list[_Effect] = []
        self.error: Exception | None = None
        self.is_done = False
        self._done = threading.Lock()
        self._done.acquire()

    def attempt(self, tree: SqliteTree) -> None:
        """Run it; an error of the registry is this call's alone, any other concerns the whole group."""
        try:
            self._result = self._run(tree, self.effects)
        except RegistryError as error:
            self.error = error

    def release(self) -> None:
        self.is_done = True
        self._done.release()

    def wait(self) -> _T:
        self._done.acquire()
        if self.error is not None:
            raise self.error
        return self._result
