"""The registry of a cluster: the tree in ZooKeeper.

A call waits while the connection is lost, and goes on when there is another one. Reads go on in another session, too;
a write whose session has ended meanwhile raises SessionLostError.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from kazoo.exceptions import NoNodeError as KazooNoNodeError
from kazoo.protocol.states import EventType as KazooEventType
from kazoo.protocol.states import WatchedEvent

from kavka.cluster.registry.base import (
    ANY_VERSION,
    Check,
    Create,
    Created,
    Delete,
    EventType,
    NodeExistsError,
    NoNodeError,
    Operation,
    RegistryError,
    Result,
    SessionListener,
    SetData,
    Stat,
    Watch,
    WatchEvent,
    validate_path,
)
from kavka.cluster.registry.own_writes import Found, Sent, find
from kavka.cluster.registry.zookeeper_requests import Requests, error_of, stat_of
from kavka.cluster.registry.zookeeper_session import (
    Connection,
    Request,
    SessionCounts,
    SessionSettings,
    ZooKeeperSession,
)
from kavka.cluster.registry.zookeeper_watches import Kind, Watched, ZooKeeperWatches, children_seen, data_seen
from kavka.cluster.registry.zookeeper_writes import Writer

log = logging.getLogger(__name__)

_EVENTS: Final = {
    KazooEventType.CREATED: EventType.CREATED,
    KazooEventType.DELETED: EventType.DELETED,
    KazooEventType.CHANGED: EventType.DATA_CHANGED,
    KazooEventType.CHILD: EventType.CHILDREN_CHANGED,
}


class ZooKeeperRegistry:
    """A Registry (see `base`) in ZooKeeper.

    Threads: kazoo's calls watches and session listeners; `_keeper` sets watches again after a disconnect, which may
    call them too, and replaces a client that gave up.
    """

    def __init__(
        self, settings: SessionSettings, *, connection_timeout_ms: int, set_acl: bool = False, make_root: bool = True
    ) -> None:
        """Connect, and make the root path where it is missing, or else raise NoNodeError.

        Raises RegistryUnavailableError, NotPermittedError.
        """
        self._watches = ZooKeeperWatches()
        self._wake = threading.Event()
        self._is_closed = False
        self._session = ZooKeeperSession(settings, self._wake.set, self._session_lost)
        self._set_root("", set_acl)
        self._session.start(connection_timeout_ms / 1000)
        self._keeper = threading.Thread(target=self._keep, name="kavka-registry", daemon=True)
        self._keeper.start()
        try:
            self._find_root(settings.connect.chroot, make_root)
            self._set_root(settings.connect.chroot, set_acl)
        except BaseException:
            self.close()
            raise

    @property
    def session_id(self) -> int:
        return self._session.session_id

    @property
    def session_state(self) -> str:
        """CONNECTED, CONNECTING, EXPIRED_SESSION, AUTH_FAILED, CLOSED."""
        return self._session.state

    @property
    def session_counts(self) -> SessionCounts:
        return self._session.counts

    def is_own_session(self, session_id: int) -> bool:
        return self._session.is_own(session_id)

    # Writing

    def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False) -> Created:
        self._check_caller()
        return self._writer.create(Create(path, data, ephemeral, sequential))

    def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        stat = self.multi([SetData(path, data, version)])[0]
        assert isinstance(stat, Stat)
        return stat

    def delete(self, path: str, version: int = ANY_VERSION) -> None:
        self.multi([Delete(path, version)])

    def multi(self, operations: Sequence[Operation]) -> list[Result]:
        self._check_caller()
        return self._writer.multi(operations)

    def pipeline(self, operations: Sequence[Operation], guard: Check | None = None) -> list[Result | RegistryError]:
        self._check_caller()
        return self._writer.pipeline(operations, guard)

    def _find(self, operations: Sequence[Operation], before: Connection) -> Found | None:
        """Look for a write of `before`. Whatever was sent then comes through before the answer to a sync."""
        path = self._requests.path("/")
        self._read([lambda client: client.sync_async(path)])
        sent = Sent(before.last_zxid, before.session_id)
        return find(operations, sent, self._get_many, lambda parent: self._children_of_many([parent])[0])

    # Reading

    def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        self._check_caller()
        if watch is None:
            return self._node(self._read([self._get(path)])[0], path)
        return self._node(self._watched(Kind.DATA, [path], watch, self._get)[0], path)

    def get_many(self, paths: Sequence[str], watch: Watch | None = None) -> list[tuple[bytes, Stat] | None]:
        self._check_caller()
        return self._get_many(paths, watch)

    def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        self._check_caller()
        if watch is None:
            answer = self._read([self._exists(path)])[0]
        else:
            answer = self._watched(Kind.DATA, [path], watch, self._exists)[0]
        if isinstance(answer, Exception):
            raise error_of(answer, path)
        return None if answer is None else stat_of(answer)

    def children(self, path: str, watch: Watch | None = None) -> list[str]:
        self._check_caller()
        if watch is None:
            answer = self._read([self._list(path)])[0]
        else:
            answer = self._watched(Kind.CHILDREN, [path], watch, self._list)[0]
        if isinstance(answer, Exception):
            raise error_of(answer, path)
        return sorted(answer[0])

    def children_of_many(self, paths: Sequence[str]) -> list[list[str] | None]:
        self._check_caller()
        return self._children_of_many(paths)

    def _get_many(self, paths: Sequence[str], watch: Watch | None = None) -> list[tuple[bytes, Stat] | None]:
        if watch is None:
            answers = self._read([self._get(path) for path in paths])
        else:
            answers = self._watched(Kind.DATA, paths, watch, self._get)
        return [
            None if isinstance(answer, KazooNoNodeError) else self._node(answer, path)
            for path, answer in zip(paths, answers, strict=True)
        ]

    def _children_of_many(self, paths: Sequence[str]) -> list[list[str] | None]:
        found: list[list[str] | None] = []
        for path, answer in zip(paths, self._read([self._list(path) for path in paths]), strict=True):
            if isinstance(answer, Exception) and not isinstance(answer, KazooNoNodeError):
                raise error_of(answer, path)
            found.append(None if isinstance(answer, Exception) else sorted(answer[0]))
        return found

    def _read(self, requests: Sequence[Request]) -> list[Any]:
        """The answers to all; what a lost connection cut off is sent again."""
        answers: list[Any] = []
        while len(answers) < len(requests):
            answers += self._session.exchange(self._session.enter(), requests[len(answers) :]).answers
        return answers

    def _watched(
        self, kind: Kind, paths: Sequence[str], watch: Watch, request_of: Callable[[str, Any], Request]
    ) -> list[Any]:
        """Read with kazoo's watch, and note ours: first, so that no event falls between an answer and its note."""
        answers: list[Any] = []
        while len(answers) < len(paths):
            nodes = [Watched(kind, path) for path in paths[len(answers) :]]
            armed = [self._watches.arm(node, watch) for node in nodes]
            requests = [request_of(node.path, self._fire) for node in nodes]
            connection = self._session.enter()
            found = self._session.exchange(connection, requests).answers
            for node, each, answer in zip(nodes, armed, found, strict=False):
                if isinstance(answer, Exception):
                    self._watches.withdraw(node, each)
                elif not self._watches.set_(node, each, _seen(node, answer)):
                    # The session has ended since: what is left is read in the next one.
                    break
                answers.append(answer)
            if self._session.is_over(connection):
                # The connection was lost, and kazoo's watches with it, maybe before ours were noted.
                self._wake.set()
        return answers

    def _get(self, path: str, watch: Any = None) -> Request:
        validate_path(path)
        full = self._requests.path(path)
        return lambda client: client.get_async(full, watch)

    def _exists(self, path: str, watch: Any = None) -> Request:
        validate_path(path)
        full = self._requests.path(path)
        return lambda client: client.exists_async(full, watch)

    def _list(self, path: str, watch: Any = None) -> Request:
        validate_path(path)
        full = self._requests.path(path)
        return lambda client: client.get_children_async(full, watch, include_data=True)

    @staticmethod
    def _node(answer: Any, path: str) -> tuple[bytes, Stat]:
        if isinstance(answer, Exception):
            raise error_of(answer, path)
        return answer[0] or b"", stat_of(answer[1])

    # The session

    def on_session_event(self, listener: SessionListener) -> None:
        self._session.on_event(listener)

    def stop_waiting(self) -> None:
        self._session.stop_waiting()

    def close(self) -> None:
        if self._runs_on_own_thread():
            raise RuntimeError("a watch must not close its registry")
        self._is_closed = True
        self._session.close()
        self._wake.set()
        self._keeper.join()

    def _set_root(self, root: str, set_acl: bool) -> None:
        self._requests = Requests(root, set_acl=set_acl)
        self._writer = Writer(self._session, self._requests, self._find)

    def _find_root(self, chroot: str, make_root: bool) -> None:
        """Only what is missing is made: what is there may lie below nodes in which nothing may be made."""
        if not make_root and chroot and self.exists(chroot) is None:
            raise NoNodeError(chroot)
        path = ""
        for part in chroot.split("/")[1:]:
            path += f"/{part}"
            if self.exists(path) is None:
                with suppress(NodeExistsError):
                    self.create(path)

    def _session_lost(self) -> None:
        self._watches.clear()
        self._wake.set()

    def _fire(self, event: WatchedEvent) -> None:
        """kazoo's watch, the same for all nodes. Of a disconnect it tells too, which the keeper sees to."""
        type_ = _EVENTS.get(event.type)
        if type_ is not None:
            self._watches.fire(WatchEvent(type_, self._requests.below_root(event.path)))

    def _keep(self) -> None:
        """The keeper: after a disconnect, read again what is watched."""
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._is_closed:
                return
            try:
                self._session.revive()
                self._set_watches_again()
            except Exception:
                # The next reconnection is to find a keeper.
                log.exception("watches could not be set again")

    def _set_watches_again(self) -> None:
        nodes = self._watches.nodes()
        requests = [
            (self._list if node.kind is Kind.CHILDREN else self._exists)(node.path, self._fire) for node in nodes
        ]
        connection = self._session.current()
        answers = self._session.exchange(connection, requests).answers if connection is not None else []
        for node, answer in zip(nodes, answers, strict=False):
            if not isinstance(answer, Exception) or isinstance(answer, KazooNoNodeError):
                self._watches.compare(node, None if isinstance(answer, Exception) else _seen(node, answer))
            else:
                # It may not be read any more, say: who watches it is to hear that, and not nothing for ever.
                log.warning("a watch is lost path=%s error=%r", node.path, answer)
                self._watches.give_up(node)

    def _check_caller(self) -> None:
        if self._runs_on_own_thread():
            raise RuntimeError("a watch must not call its registry: post to a queue and read from another thread")

    def _runs_on_own_thread(self) -> bool:
        return threading.current_thread() is self._keeper or self._session.runs_on_this_thread()


def _seen(node: Watched, answer: Any) -> tuple[int, int] | None:
    """What was read, in the terms in which it is compared: `answer` is of get, exists or children."""
    if answer is None:
        return None
    stat = stat_of(answer[1] if isinstance(answer, tuple) and len(answer) == 2 else answer)
    return children_seen(stat) if node.kind is Kind.CHILDREN else data_seen(stat)
