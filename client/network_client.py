"""Requests to brokers and their answers, over as many connections as there are nodes, by one thread.

    while True:
        if client.ready(node):
            client.send(node, request, on_answer)
        client.poll(timeout_ms)

Nothing waits but `poll`, and `close` for lookups. `poll` does all input and output, closes what lies, and calls back.
"""

import logging
import selectors
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Final

from kavka.client.broker_versions import BrokerVersions
from kavka.client.call import Call, Callback, Sendable, VersionRange
from kavka.client.counts import ClientCounts
from kavka.client.errors import AnswerTimeoutError, BadAnswerError, ClientError, DisconnectedError
from kavka.client.kafka_error import KafkaError
from kavka.client.link import ConnectionEndedError, Link, Stage, least_loaded_of
from kavka.client.metadata_fetching import MetadataFetching
from kavka.client.metadata_port import MetadataPort
from kavka.client.node import Node, NodeKey
from kavka.client.resolver import Lookup, Resolver, numeric_addresses
from kavka.client.security_port import Securing
from kavka.client.selecting import Selecting
from kavka.client.settings import ClientSettings
from kavka.client.upkeep import INFINITY, Upkeep
from kavka.client.waker import Waker
from kavka.protocol.buffer_pool import BufferPool
from kavka.protocol.errors import DecodeError, EncodeError
from kavka.protocol.framing import BUFFERS_KEPT_BYTES, Arena

LONGEST_WAIT_MS: Final = 3_600_000.0

log = logging.getLogger(__name__)


class NetworkClient:
    """Connections to nodes, made when they are asked for.

    Bounds: a connection for each node asked for, until `forget`; `max_in_flight` requests on each; one request at a
    time that the socket did not take whole.

    Threads: owned by one thread, which alone may call; `wakeup` is for any. Callbacks run on the owner, in `poll` or
    `close`, never in `send`; each is called once.
    """

    def __init__(
        self,
        settings: ClientSettings,
        *,
        metadata: MetadataPort | None = None,
        counts: ClientCounts | None = None,
        on_answer: Callable[[Node, Call, float], None] | None = None,
        security: Securing | None = None,
        selector: Selecting | None = None,
        now_ms: Callable[[], float] = lambda: time.monotonic() * 1000,
    ) -> None:
        """With `metadata` the client keeps them fresh itself; it counts in `counts`, or in its own. `on_answer` hears
        of each answer before who waits for it: by whom, to what, and when. Raises OSError: no descriptors are left.
        """
        self._settings: Final = settings
        self._honours_throttling: Final = settings.honours_throttling
        self._on_answer: Final = on_answer
        self._security: Final = security
        self._now_ms: Final = now_ms
        self._fetching: Final = None if metadata is None else MetadataFetching(metadata, self, now_ms)
        self._links: dict[NodeKey, Link] = {}
        self._first_id = 0
        """The first request's number to a node that is met: above those to any that was forgotten."""
        self._results: deque[tuple[Callback, Any]] = deque()
        self._upkeep: Final = Upkeep(settings.max_idle_ms)
        self._waker: Final = Waker()
        self._resolver: Final = Resolver(self._waker.wake)
        self._selector: Final[Selecting] = selector or selectors.DefaultSelector()
        self._selector.register(self._waker.receiver, selectors.EVENT_READ)
        self._arena: Final = Arena()
        self._pool: Final = BufferPool(BUFFERS_KEPT_BYTES)
        self.counts: Final = ClientCounts() if counts is None else counts

    def ready(self, node: Node) -> bool:
        """Whether a request may be sent to `node` now; if it is not connected, begin to connect when that is allowed.

        A node that has moved, to another host or port, is connected to anew.
        """
        link = self._links.get(node.key)
        if link is None:
            link = self._links[node.key] = Link(node, self._settings, count(self._first_id))
        elif link.node is not node and (link.node.host, link.node.port) != (node.host, node.port):
            self._drop(link, f"it is now at {node.host}:{node.port}")
            link = self._links[node.key] = Link(node, self._settings, link.ids)
        if link.stage is Stage.IDLE:
            now_ms = self._now_ms()
            if now_ms >= link.reconnecting.not_before_ms:
                self._begin(link, now_ms)
        return link.takes_another and (self._fetching is None or not self._fetching.goes_before(node))

    def send(
        self,
        node: Node,
        request: Sendable,
        callback: Callback,
        *,
        versions: VersionRange | None = None,
        timeout_ms: float | None = None,
        is_answered: bool = True,
    ) -> None:
        """Send a request to a node that is `ready`; a later `poll` calls `callback(answer)`, or with a ClientError.

        It goes out in the newest version that the broker, `versions` and this library have. The answer's records are
        views of a buffer that is kept for as long as they are. With `is_answered` False (acks=0) no answer is owed,
        and `callback(None)` comes when the socket has taken all of the request.
        Raises UnsupportedVersionError, EncodeError, or RuntimeError for a node that is not ready; nothing was sent.
        """
        link = self._links.get(node.key)
        if link is None or not link.takes_another:
            raise RuntimeError(f"node {node} is not ready")
        allowed_ms = self._settings.request_timeout_ms if timeout_ms is None else timeout_ms
        now_ms = self._now_ms()
        call = Call(request, callback, versions, now_ms + allowed_ms)
        link.connection.request(call, is_answered)
        if not is_answered:
            link.unanswered = call
        link.used_ms = call.sent_ms = now_ms
        self.counts.requests += 1
        self._write(link)

    def poll(self, timeout_ms: float) -> None:
        """Wait for something to happen, up to `timeout_ms`, do what there is to do, and call back.

        A callback's exception is logged, and the others are called.
        """
        now_ms = self._now_ms()
        until_metadata_ms = INFINITY if self._fetching is None else self._fetching.work(now_ms)
        deadline_ms = min([link.deadline_ms for link in self._links.values()], default=INFINITY)
        until_ms = min(deadline_ms, self._upkeep.next_ms)
        self._wait(0 if self._results else min(timeout_ms, until_metadata_ms, until_ms - now_ms))
        for lookup in self._resolver.finished():
            self._resolved(lookup)
        now_ms = self._now_ms()
        if now_ms >= deadline_ms:
            self._close_late(now_ms)
        if now_ms >= self._upkeep.next_ms:
            self._close_idle(now_ms)
        self._call_back()

    def wakeup(self) -> None:
        """Have the `poll` that goes on, or else the next one, return soon. Any thread."""
        self._waker.wake()

    def delay_ms(self, node: Node) -> float:
        """How long `ready` cannot do anything for this node: what is left of its back-off, or of its throttling.

        Infinity while it is connected or connects, as `poll` returns when that changes.
        """
        link = self._links.get(node.key)
        if link is None:
            return 0.0
        if link.stage is Stage.IDLE:
            return max(link.reconnecting.not_before_ms - self._now_ms(), 0.0)
        return max(link.throttled_until_ms - self._now_ms(), 0.0) if link.is_throttled else INFINITY

    def failures(self, node: Node) -> int:
        """How often in a row a connection to the node has ended or could not be made."""
        link = self._links.get(node.key)
        return link.reconnecting.failures if link is not None else 0

    def in_flight(self, node: Node) -> int:
        """How many requests to the node have no answer yet."""
        link = self._links.get(node.key)
        return link.connection.in_flight if link is not None and link.stage is Stage.OPEN else 0

    def served(self, node: Node) -> BrokerVersions | None:
        """What the broker can, as it said when the connection opened; None while there is no open connection."""
        link = self._links.get(node.key)
        return link.connection.served if link is not None and link.stage is Stage.OPEN else None

    def least_loaded(self, nodes: Sequence[Node]) -> Node | None:
        """The node to ask what any can answer; None while each has failed and is not to be tried yet.

        A connected one with the fewest requests in flight; else one that is being connected to; else the one that has
        failed longest ago. Which of several that are equal is a matter of chance, so that load spreads.
        """
        return least_loaded_of(self._links, nodes, self._now_ms())

    def disconnect(self, node: Node, reason: str = "this side closed it") -> None:
        """Close the node's connection; a later `poll` calls back for its requests. The back-off counts a failure."""
        link = self._links.get(node.key)
        if link is not None:
            self._drop(link, reason)

    def forget(self, node: Node) -> None:
        """Disconnect, and keep nothing of the node, its back-off neither."""
        self.disconnect(node, "the node is not needed any more")
        link = self._links.pop(node.key, None)
        if link is not None:
            self._first_id = max(self._first_id, next(link.ids))

    def close(self) -> None:
        """Close all connections and call back for what was in flight. Nothing may be called after, but `wakeup`."""
        for link in self._links.values():
            self._drop(link, "the client was closed")
        self._links.clear()
        self._resolver.close()
        self._selector.close()
        self._waker.close()
        self._call_back()

    def let_go(self) -> None:
        """In a forked child: close this process's copies of the parent's sockets, which stay open there."""
        for link in self._links.values():
            link.close()
        self._links.clear()
        self._results.clear()
        self._selector.close()
        self._waker.let_go()

    def _wait(self, timeout_ms: float) -> None:
        for key, events in self._selector.select(max(min(timeout_ms, LONGEST_WAIT_MS), 0.0) / 1000):
            link: Link | None = key.data
            if link is None:
                self._waker.rest()
            else:
                self._serve(link, events)

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
            elif events & selectors.EVENT_WRITE:
                self._write(link)
            if events & selectors.EVENT_READ:
                self._read(link)
        except ConnectionEndedError:
            self._end(link, DisconnectedError(f"node {link.node} closed the connection"))
        except OSError as failure:
            self._end(link, DisconnectedError(f"the connection to node {link.node}: {failure}"))
        except DecodeError as failure:
            self.counts.bad_answers += 1
            log.warning("bad answer node='%s' error=%r", link.node, str(failure))
            self._end(link, BadAnswerError(f"a bad answer of node {link.node}: {failure}"))

    def _connected(self, link: Link) -> None:
        link.connected(self._security)
        self._selector.modify(link.socket, selectors.EVENT_READ, link)
        if link.connection.is_open:
            self._authenticate(link, None)
            return
        link.stage = Stage.NEGOTIATING
        link.connection.negotiate(link.setup_deadline_ms)
        self._write(link)

    def _authenticate(self, link: Link, answer: Any) -> bool:
        """The connection is open as soon as the broker knows who this is, which without security it need not.

        False when it has ended.
        """
        try:
            if not link.authenticated(self._security, answer):
                return self._write(link)
        except (KafkaError, EncodeError) as failure:
            self._end(link, DisconnectedError(f"node {link.node} does not let this client in: {failure}"))
            if self._fetching is not None:
                self._fetching.refused(failure)
            return False
        link.stage = Stage.OPEN
        link.addresses.clear()
        link.reconnecting.opened()
        self._upkeep.opened(link, self._now_ms())
        self.counts.connections += 1
        log.debug("connected node='%s'", link.node)
        return True

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
                if link.exchange is not None:
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
