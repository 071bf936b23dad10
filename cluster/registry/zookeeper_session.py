"""The connection to ZooKeeper, and the session that outlives connections.

kazoo does the protocol. What it does not promise is made up for here: every request is answered, be it by its loss;
requests keep to a limit of unanswered ones; a client that gave up is followed by a new one. All that kazoo calls back
runs on its connection's thread, in the order in which ZooKeeper sent it, so that a watch's event comes before the
answers that follow it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionLoss,
    OperationTimeoutError,
    SessionExpiredError,
    SessionMovedError,
    ZookeeperError,
)
from kazoo.protocol.states import KazooState, KeeperState

from kavka.cluster.registry.base import (
    NotPermittedError,
    OutOfReachError,
    RegistryUnavailableError,
    SessionEvent,
    SessionListener,
    SessionLostError,
)
from kavka.cluster.registry.connect_string import ConnectString
from kavka.cluster.registry.kazoo_handler import InlineHandler, end, quiet_logger

log = logging.getLogger(__name__)

Request = Callable[[KazooClient], Any]
"""Sends one request and gives kazoo's AsyncResult of it."""

MAX_CONNECT_TIMEOUT_S: Final = 4.0
RECHECK_S: Final = 1.0
REVIVAL_PAUSE_S: Final = 1.0
KEPT_SESSIONS: Final = 16
KEPT_LATENCIES: Final = 1024
_RETRY: Final = {"max_tries": -1, "delay": 0.05, "backoff": 2, "max_jitter": 0.4, "max_delay": 1.0}
_LOSSES: Final = (ConnectionLoss, SessionMovedError, SessionExpiredError, OperationTimeoutError, AuthFailedError)
_LOST: Final = object()


class SessionSettings(NamedTuple):
    """`login` is `user:password` for ZooKeeper's digest scheme."""

    connect: ConnectString
    session_timeout_ms: int
    max_in_flight: int
    login: str | None = None


class Connection(NamedTuple):
    """One stretch of being connected. What is written after it was entered has a zxid above `last_zxid`."""

    number: int
    session_id: int
    last_zxid: int


class Exchange(NamedTuple):
    """What came of some requests, in order: values and ZookeeperErrors. Fewer answers than requests: the connection was
    lost, and nobody knows of those between the last answer and `sent_count`.
    """

    answers: list[Any]
    sent_count: int


class SessionCounts:
    """What happened since the start, for metrics.

    Threads: the counts are the connection's thread's; `_lock` guards requests and latencies.
    """

    __slots__ = ("_latencies_ms", "_lock", "auth_failures", "connects", "disconnects", "expiries", "requests")

    def __init__(self) -> None:
        self.connects = self.disconnects = self.expiries = self.auth_failures = 0
        self._lock = threading.Lock()
        self.requests = 0
        self._latencies_ms: deque[float] = deque(maxlen=KEPT_LATENCIES)

    def answered(self, latency_ms: float) -> None:
        with self._lock:
            self.requests += 1
            self._latencies_ms.append(latency_ms)

    def recent_latencies_ms(self) -> list[float]:
        """Of the last requests, in order of size."""
        with self._lock:
            return sorted(self._latencies_ms)


class ZooKeeperSession:
    """Connected, connecting, or closed.

    Threads: `_changed` guards what is below it. Any thread may call, but only those that kazoo calls back may not wait.
    """

    def __init__(
        self, settings: SessionSettings, on_reconnect: Callable[[], None], on_loss: Callable[[], None]
    ) -> None:
        """`on_reconnect` runs when the same session has another connection, and `on_loss` before listeners hear of a
        session's end: both on the connection's thread. Nothing connects before `start`.
        """
        self._settings = settings
        self._on_reconnect = on_reconnect
        self._on_loss = on_loss
        self.counts: Final = SessionCounts()
        self._slots = threading.BoundedSemaphore(settings.max_in_flight)
        self._listeners: list[SessionListener] = []
        self._changed = threading.Condition()
        self._client: KazooClient | None = None
        self._is_connected = False
        self._connection_number = 0
        self._session_id = 0
        self._had_session = False
        self._past: deque[int] = deque(maxlen=KEPT_SESSIONS)
        self._is_dead = False
        self._refusal: Exception | None = None
        self._is_waiting_over = False
        self._is_closed = False

    # Life

    def start(self, timeout_s: float) -> None:
        """Connect. Raises RegistryUnavailableError or NotPermittedError, with nothing left running."""
        self._begin_client()
        with self._changed:
            self._changed.wait_for(lambda: self._is_connected or self._is_dead, timeout_s)
            if self._is_connected:
                return
            refused = isinstance(self._refusal, AuthFailedError)
        self.close()
        if refused:
            raise NotPermittedError(f"ZooKeeper at {self._settings.connect} refused the login")
        raise RegistryUnavailableError(f"ZooKeeper at {self._settings.connect} did not answer in {timeout_s:g} s")

    def close(self) -> None:
        """End the session, or leave it to expire where ZooKeeper is out of reach. May be called twice."""
        with self._changed:
            if self._is_closed:
                return
            self._is_closed = True
            self._is_connected = False
            self._connection_number += 1
            client, self._client = self._client, None
            self._changed.notify_all()
        if client is not None:
            end(client)

    def stop_waiting(self) -> None:
        with self._changed:
            self._is_waiting_over = True
            self._changed.notify_all()

    def revive(self) -> None:
        """Have a new client follow one that gave up. Called by a thread that may wait."""
        with self._changed:
            if not self._is_dead or self._is_closed:
                return
            client, self._client = self._client, None
            self._changed.wait_for(lambda: self._is_closed, REVIVAL_PAUSE_S)
            self._is_dead = False
        if client is not None:
            end(client)
        # Does nothing once closed.
        self._begin_client()

    def on_event(self, listener: SessionListener) -> None:
        self._listeners.append(listener)

    @property
    def session_id(self) -> int:
        return self._session_id

    @property
    def state(self) -> str:
        """As Kafka's SessionState metric names it."""
        client = self._client
        return "CLOSED" if client is None else str(client.client_state)

    def is_own(self, session_id: int) -> bool:
        with self._changed:
            return session_id != 0 and (session_id == self._session_id or session_id in self._past)

    def runs_on_this_thread(self) -> bool:
        """Whether the caller is called back by kazoo."""
        client = self._client
        return client is not None and client.handler.owns_this_thread()

    # Requests

    def enter(self) -> Connection:
        """Wait for a connection. Raises RegistryUnavailableError once that is in vain."""
        with self._changed:
            while not self._is_connected:
                if self._is_closed:
                    raise RegistryUnavailableError("the registry is closed")
                if self._is_waiting_over:
                    raise OutOfReachError(f"no connection to ZooKeeper at {self._settings.connect}")
                self._changed.wait()
        return self.current() or self.enter()

    def current(self) -> Connection | None:
        """The connection that stands, without waiting for one."""
        with self._changed:
            if not self._is_connected or self._client is None:
                return None
            return Connection(self._connection_number, self._session_id, self._client.last_zxid)

    def enter_again(self, before: Connection) -> Connection:
        """Wait for another connection of the same session. Raises SessionLostError if there is none."""
        connection = self.enter()
        if connection.session_id != before.session_id:
            raise SessionLostError("the session with ZooKeeper ended while a write was on its way")
        return connection

    def is_over(self, connection: Connection) -> bool:
        return connection.number != self._connection_number

    def exchange(self, connection: Connection, requests: Sequence[Request]) -> Exchange:
        """Send all, a few at a time unanswered, and gather the answers until the connection is lost."""
        answers: list[Any] = []
        pending: deque[tuple[Any, float]] = deque()
        slots = 0
        sent = 0
        try:
            for request in requests:
                if self._slots.acquire(blocking=not pending):
                    slots += 1
                elif not self._gather(connection, pending, answers):
                    return Exchange(answers, sent)
                client = self._client
                if client is None or self.is_over(connection):
                    break
                pending.append((request(client), time.monotonic()))
                sent += 1
            while pending and self._gather(connection, pending, answers):
                pass
        finally:
            if slots:
                self._slots.release(slots)
        return Exchange(answers, sent)

    def _gather(self, connection: Connection, pending: deque[tuple[Any, float]], answers: list[Any]) -> bool:
        result, sent_at = pending.popleft()
        answer = self._answer(connection, result)
        if answer is _LOST:
            return False
        self.counts.answered((time.monotonic() - sent_at) * 1000)
        answers.append(answer)
        return True

    def _answer(self, connection: Connection, result: Any) -> Any:
        while not result.wait(RECHECK_S):
            # A request may fall between two connections, and is then never answered.
            if self.is_over(connection) and not result.wait(RECHECK_S):
                return _LOST
        error = result.exception
        if error is None:
            return result.value
        return error if isinstance(error, ZookeeperError) and not isinstance(error, _LOSSES) else _LOST

    # kazoo's side

    def _begin_client(self) -> None:
        settings = self._settings
        timeout_s = settings.session_timeout_ms / 1000
        client = KazooClient(
            hosts=settings.connect.hosts,
            timeout=timeout_s,
            handler=InlineHandler(min(timeout_s / settings.connect.host_count, MAX_CONNECT_TIMEOUT_S)),
            auth_data=[("digest", settings.login)] if settings.login else None,
            connection_retry=_RETRY,
            logger=quiet_logger(),
        )
        client.add_listener(lambda state: self._on_state(client, state))
        with self._changed:
            if self._is_closed:
                return
            self._client = client
        client.start_async()
        if self._is_closed:
            # Meanwhile, when there was nothing to end yet.
            end(client)

    def _on_state(self, client: KazooClient, state: str) -> None:
        """On the connection's thread, with each change."""
        if state == KazooState.CONNECTED:
            self._connected(client)
        elif state == KazooState.SUSPENDED:
            self._disconnected(client)
        else:
            self._lost(client)

    def _connected(self, client: KazooClient) -> None:
        session_id = client.client_id[0]
        with self._changed:
            if self._client is not client:
                return
            is_new = session_id != self._session_id
            is_first = not self._had_session
            self._session_id = session_id
            self._had_session = self._is_connected = True
            self._connection_number += 1
            self._changed.notify_all()
        self.counts.connects += 1
        log.info("connected to ZooKeeper session=0x%x new=%s", session_id & 0xFFFF_FFFF_FFFF_FFFF, is_new)
        if not is_new:
            self._on_reconnect()
        elif not is_first:
            self._tell(SessionEvent.ESTABLISHED)

    def _disconnected(self, client: KazooClient) -> None:
        with self._changed:
            if self._client is not client:
                return
            self._is_connected = False
            self._connection_number += 1
        self.counts.disconnects += 1
        log.warning("the connection to ZooKeeper is lost; waiting for another one")

    def _lost(self, client: KazooClient) -> None:
        state = client.client_state
        with self._changed:
            if self._client is not client:
                return
            self._is_connected = False
            self._connection_number += 1
            lost, self._session_id = self._session_id, 0
            if lost:
                self._past.append(lost)
            # Of itself kazoo goes on after an expiry only.
            self._is_dead = state != KeeperState.EXPIRED_SESSION
            self._refusal = AuthFailedError() if state == KeeperState.AUTH_FAILED else None
            self._changed.notify_all()
        if state == KeeperState.EXPIRED_SESSION:
            self.counts.expiries += 1
        elif state == KeeperState.AUTH_FAILED:
            self.counts.auth_failures += 1
        level = logging.WARNING if state == KeeperState.EXPIRED_SESSION else logging.ERROR
        log.log(level, "the session with ZooKeeper is lost state=%s", state)
        self._on_loss()
        if lost:
            self._tell(SessionEvent.EXPIRED)

    def _tell(self, event: SessionEvent) -> None:
        for listener in self._listeners:
            try:
                listener(event)
            except Exception:
                # One listener's mistake must keep neither the others nor the connection from going on.
                log.exception("a listener failed event=%s", event.value)
