"""The links of a network client: set up, secured, written and read, and ended, as their sockets allow it."""

import logging
import selectors
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from kavka.client.call import Call, Callback
from kavka.client.counts import ClientCounts
from kavka.client.errors import AnswerTimeoutError, BadAnswerError, ClientError, DisconnectedError
from kavka.client.kafka_error import AuthenticationError, KafkaError
from kavka.client.link import ConnectionEndedError, Link, Stage
from kavka.client.metadata_fetching import MetadataFetching
from kavka.client.node import Node, NodeKey
from kavka.client.resolver import Lookup, Resolver, numeric_addresses
from kavka.client.security_port import Securing
from kavka.client.selecting import Selecting
from kavka.client.settings import ClientSettings
from kavka.client.upkeep import Upkeep
from kavka.client.waker import Waker
from kavka.protocol.buffer_pool import BufferPool
from kavka.protocol.errors import DecodeError, EncodeError
from kavka.protocol.framing import BUFFERS_KEPT_BYTES, Arena

LONGEST_WAIT_MS: Final = 3_600_000.0

log = logging.getLogger(__name__)


class NetworkLinks:
    """What `NetworkClient` stands on. Threads: the client's owner alone."""

    def __init__(
        self,
        settings: ClientSettings,
        *,
        counts: ClientCounts | None = None,
        on_answer: Callable[[Node, Call, float], None] | None = None,
        security: Securing | None = None,
        selector: Selecting | None = None,
        now_ms: Callable[[], float] = lambda: time.monotonic() * 1000,
    ) -> None:
        """Raises OSError: no descriptors are left."""
        self._settings: Final = settings
        self._honours_throttling: Final = settings.honours_throttling
        self._on_answer: Final = on_answer
        self._security: Final = security
        self._now_ms: Final = now_ms
        self._fetching: MetadataFetching | None = None
        self._links: dict[NodeKey, Link] = {}
        self._results: deque[tuple[Callback, Any]] = deque()
        self._held: list[Link] = []
        """To be read on, whatever their sockets say."""
        self._upkeep: Final = Upkeep(settings.max_idle_ms)
        self._waker: Final = Waker()
        self._resolver: Final = Resolver(self._waker.wake)
        self._selector: Final[Selecting] = selector or selectors.DefaultSelector()
        self._selector.register(self._waker.receiver, selectors.EVENT_READ)
        self._arena: Final = Arena()
        self._pool: Final = BufferPool(BUFFERS_KEPT_BYTES)
        self.counts: Final = ClientCounts() if counts is None else counts

    def _wait(self, timeout_ms: float) -> None:
        for key, events in self._selector.select(max(min(timeout_ms, LONGEST_WAIT_MS), 0.0) / 1000):
            link: Link | None = key.data
            if link is None:
                self._waker.rest()
            else:
                self._serve(link, events)
        held, self._held = self._held, []
        for link in held:
            if link.is_held:
                self._serve(link, selectors.EVENT_READ)

    def _begin(self, link: Link, now_ms: float) -> None:
        """A new attempt: the next address of the last lookup, or a new lookup."""
        link.setup_deadline_ms = now_ms + link.reconnecting.setup_timeout_ms()
        node = link.node
        link.addresses = link.addresses or numeric_addresses(node.host, node.port)
        if link.addresses:
            self._connect(link)
            return
        link.stage = Stage.RESOLVING
        self._resolver.look_up(node.host, node.port)

    def _resolved(self, lookup: Lookup) -> None:
        for link in self._links.values():
            node = link.node
            if link.stage is not Stage.RESOLVING or (node.host, node.port) != (lookup.host, lookup.port):
                continue
            link.addresses = lookup.addresses.copy()
            if link.addresses:
                self._connect(link)
            else:
                self._end(link, DisconnectedError(f"node {node} cannot be found: {lookup.failure}"))

    def _connect(self, link: Link) -> None:
        try:
            link.connect(link.addresses.pop(0), self._settings, self._pool)
            try:
                self._selector.register(link.socket, selectors.EVENT_WRITE, link)
            except OSError:
                link.close()
                raise
        except OSError as failure:
            self._end(link, DisconnectedError(f"node {link.node} cannot be reached: {failure}"))

    def _serve(self, link: Link, events: int) -> None:
        try:
            if link.stage is Stage.CONNECTING:
                self._connected(link)
            elif link.stage is Stage.SECURING:
                self._secure(link)
            elif events & selectors.EVENT_WRITE:
                self._write(link)
            if events & selectors.EVENT_READ and link.stage is not Stage.SECURING:
                self._read(link)
        except ConnectionEndedError:
            self._end(link, DisconnectedError(f"node {link.node} closed the connection{_hint(link)}"))
        except AuthenticationError as failure:
            self._refused(link, failure)
        except OSError as failure:
            self._end(link, DisconnectedError(f"the connection to node {link.node}: {failure}"))
        except DecodeError as failure:
            self.counts.bad_answers += 1
            log.warning("bad answer node='%s' error=%r", link.node, str(failure))
            self._end(link, BadAnswerError(f"a bad answer of node {link.node}: {failure}"))

    def _connected(self, link: Link) -> None:
        link.connected(self._security)
        self._secure(link)

    def _secure(self, link: Link) -> None:
        """Go on with the handshake, where there is one; when it is over, the client asks for the versions."""
        awaited = link.handshake()
        self._selector.modify(link.socket, awaited or selectors.EVENT_READ, link)
        if awaited:
            return
        if link.connection.is_open:
            self._authenticate(link, None)
            return
        link.stage = Stage.NEGOTIATING
        link.connection.negotiate(link.setup_deadline_ms)
        self._write(link)

    def _authenticate(self, link: Link, answer: Any) -> bool:
        """The connection is open as soon as the broker knows who this is, which without security it need not.

        One that is open stays open meanwhile (KIP-368). False when it has ended.
        """
        now_ms = self._now_ms()
        was_open = link.stage is Stage.OPEN
        try:
            deadline_ms = now_ms + self._settings.request_timeout_ms if was_open else link.setup_deadline_ms
            if not link.authenticated(self._security, answer, now_ms, deadline_ms):
                return self._write(link)
        except (KafkaError, EncodeError) as failure:
            self._refused(link, failure)
            return False
        self._upkeep.authenticated(link)
        if was_open:
            self.counts.reauthentications += 1
            self.counts.on_reauthenticated(now_ms - link.exchange_began_ms, now_ms)
            return True
        link.stage = Stage.OPEN
        link.addresses.clear()
        link.reconnecting.opened()
        self._upkeep.opened(link, now_ms)
        self.counts.connections += 1
        self.counts.authentications += self._security is not None
        log.debug("connected node='%s'", link.node)
        return True

    def _refused(self, link: Link, failure: KafkaError | EncodeError) -> None:
        """A broker does not let the client in, or is not the one it should be."""
        if link.stage is Stage.OPEN:
            self.counts.failed_reauthentications += 1
            log.warning("not let in again node='%s' reason=%r", link.node, str(failure))
        else:
            self.counts.failed_authentications += 1
        self._end(link, DisconnectedError(f"node {link.node} does not let this client in: {failure}"))
        if self._fetching is not None:
            self._fetching.refused(failure)

    def _write(self, link: Link) -> bool:
        """Write what the socket takes, and have the selector tell when it takes more. False when it failed."""
        was_written = link.written
        try:
            link.write(self.counts)
        except OSError as failure:
            self._end(link, DisconnectedError(f"the connection to node {link.node}: {failure}"))
            return False
        if link.written != was_written:
            writes = 0 if link.written else selectors.EVENT_WRITE
            self._selector.modify(link.socket, selectors.EVENT_READ | writes, link)
        if link.unanswered is not None and link.written:
            self._results.append((link.unanswered.callback, None))
            link.unanswered = None
        return True

    def _read(self, link: Link) -> None:
        if link.stage is Stage.IDLE:
            return
        connection = link.connection
        for frame in link.frames(self._arena, self.counts):
            answered = connection.answered(frame)
            if answered is not None:
                call, answer = answered
                if call is link.step:
                    if not self._authenticate(link, answer):
                        return
                    continue
                self.counts.answers += 1
                self._results.append((call.callback, answer))
                now_ms = self._now_ms()
                if self._honours_throttling:
                    self._upkeep.heed(link, call, answer, now_ms)
                if self._on_answer is not None:
                    self._on_answer(link.node, call, now_ms)
            elif not (self._authenticate(link, None) if connection.is_open else self._write(link)):
                # Not to be let in, or not to be asked once more, in an older version.
                return
        if link.is_held:
            self._held.append(link)

    def _close_late(self, now_ms: float) -> None:
        for link in list(self._links.values()):
            if link.deadline_ms > now_ms:
                continue
            if link.stage is Stage.OPEN:
                self.counts.timeouts += 1
                log.warning("no answer in time node='%s' in_flight=%d", link.node, link.connection.in_flight)
                self._end(link, AnswerTimeoutError(f"node {link.node} did not answer in time"))
            else:
                error = DisconnectedError(f"node {link.node} could not be connected to in time")
                self._end(link, error, setup_timed_out=True)

    def _close_idle(self, now_ms: float) -> None:
        for link in self._upkeep.idle(self._links.values(), now_ms):
            log.debug("closed as idle node='%s'", link.node)
            self.counts.disconnects += 1
            self._selector.unregister(link.socket)
            link.close()

    def _drop(self, link: Link, reason: str) -> None:
        if link.stage is not Stage.IDLE:
            self._end(link, DisconnectedError(f"the connection to node {link.node}: {reason}"))

    def _end(self, link: Link, error: ClientError, *, setup_timed_out: bool = False) -> None:
        """A connection, or an attempt to make one, is over: close it, and fail what was in flight."""
        if link.stage is Stage.OPEN:
            self.counts.disconnects += 1
        else:
            self.counts.failed_connects += 1
            if link.reconnecting.failures == 0:
                log.log(logging.INFO if link.node.id >= 0 else logging.WARNING, "not connected reason=%r", str(error))
        if link.has_socket:
            self._selector.unregister(link.socket)
        unanswered, connection = link.unanswered, link.close()
        link.reconnecting.failed(self._now_ms(), setup_timed_out=setup_timed_out)
        for call in connection.abandon() if connection is not None else ():
            self._results.append((call.callback, error))
        if unanswered is not None:
            self._results.append((unanswered.callback, error))
        if self._fetching is not None:
            self._fetching.disconnected()

    def _call_back(self) -> None:
        """What callbacks bring about themselves waits for the next time, so that none keeps the others waiting."""
        for _ in range(len(self._results)):
            callback, result = self._results.popleft()
            try:
                callback(result)
            except Exception:
                log.exception("an answer came, and who waited for it failed")


def _hint(link: Link) -> str:
    """What a broker may mean by closing a connection that it could not make sense of."""
    if link.stage is Stage.SECURING:
        return " during the TLS handshake: does its listener speak TLS?"
    return " before it was authenticated" if link.stage is Stage.AUTHENTICATING else ""
