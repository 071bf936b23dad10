"""Requests to brokers and their answers, over as many connections as there are nodes, by one thread.

    while True:
        if client.ready(node):
            client.send(node, request, on_answer)
        client.poll(timeout_ms)

Nothing waits but `poll`, and `close` for lookups. `poll` does all input and output, closes what lies, and calls back.
"""

import time
from collections.abc import Callable, Sequence
from itertools import count

from kavka.client.broker_versions import BrokerVersions
from kavka.client.call import Call, Callback, Sendable, VersionRange
from kavka.client.counts import ClientCounts
from kavka.client.link import Link, Stage, least_loaded_of
from kavka.client.metadata_fetching import MetadataFetching
from kavka.client.metadata_port import MetadataPort
from kavka.client.network_links import NetworkLinks
from kavka.client.node import Node
from kavka.client.security_port import Securing
from kavka.client.selecting import Selecting
from kavka.client.settings import ClientSettings
from kavka.client.upkeep import INFINITY


class NetworkClient(NetworkLinks):
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
        super().__init__(
            settings, counts=counts, on_answer=on_answer, security=security, selector=selector, now_ms=now_ms
        )
        if metadata is not None:
            self._fetching = MetadataFetching(metadata, self, now_ms)
        self._first_id = 0
        """The first request's number to a node that is met: above those to any that was forgotten."""

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
        elif link.is_stale and link.exchange is None:
            self._authenticate(link, None)
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
        self._wait(0 if self._results or self._held else min(timeout_ms, until_metadata_ms, until_ms - now_ms))
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
        if self._security is not None:
            self._security.close()
        self._call_back()

    def let_go(self) -> None:
        """In a forked child: close this process's copies of the parent's sockets, which stay open there."""
        for link in self._links.values():
            link.let_go()
        self._links.clear()
        self._results.clear()
        self._selector.close()
        self._waker.let_go()
