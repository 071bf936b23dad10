"""The controller's ways to all live brokers, over the network."""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kavka.broker.interbroker.control_order import Order, in_version
from kavka.broker.interbroker.control_queue import ControlQueue
from kavka.broker.interbroker.own_orders import OwnOrders
from kavka.broker.interbroker.telling import tell
from kavka.client import ClientError, DisconnectedError, NetworkClient, Node
from kavka.cluster.ports import ControlRequest, ControlResponse, OnResponse
from kavka.cluster.promise import Promise
from kavka.protocol.errors import BrokerError, EncodeError, ErrorCode
from kavka.protocol.schema import schema_of

if TYPE_CHECKING:
    from kavka.broker.interbroker.inter_broker import InterBroker
    from kavka.cluster.znodes.broker import BrokerInfo

LANE: Final = "control"
RETRY_MS: Final = 100.0
"""Kafka's pause before an order is sent once more."""

log = logging.getLogger(__name__)


class _Way:
    """To one incarnation of a broker. Guarded by the channels' lock, but `retry_at_ms`, which is the thread's."""

    __slots__ = ("epoch", "is_closed", "node", "queue", "retry_at_ms")

    def __init__(self, node: Node, epoch: int) -> None:
        self.node = node
        self.epoch: Final = epoch
        self.queue: Final = ControlQueue()
        self.is_closed = False
        self.retry_at_ms = 0.0


class NetworkChannels:
    """Implements `cluster.ports.BrokerChannels`: each broker is told in order, one request at a time.

    A request is sent again, over a new connection, until it is answered, or the broker is gone or registered again:
    then those that are left are answered with BROKER_NOT_AVAILABLE. When too many wait, those whose place newer ones
    have taken are answered with REQUEST_TIMED_OUT, and only what holds is sent. What the broker cannot be told, because
    its release lacks the version, is answered with UNSUPPORTED_VERSION, and the next one is sent.

    Threads: `update_brokers` and `send` by the controller's thread, `close` by any. `_lock` guards `_ways`, `_left` and
    `_is_closed`; nobody is called back with it held. Answers come on the `inter-broker` thread.
    """

    def __init__(
        self,
        inter_broker: "InterBroker",
        *,
        listener_name: str | None,
        versions: Callable[[], Mapping[int, int]],
        timeout_ms: float,
        own: tuple[int, OwnOrders] | None = None,
    ) -> None:
        """`listener_name` is the listener at which brokers are told. `versions()` gives, for the API keys of the three
        requests, the version they are sent in, as inter.broker.protocol.version has it. `timeout_ms` is
        controller.socket.timeout.ms. `own`: this broker's id, and the way to it that needs no network; whoever made
        that starts and joins it.
        """
        self._inter_broker: Final = inter_broker
        self._listener_name: Final = listener_name
        self._versions: Final = versions
        self._timeout_ms: Final = timeout_ms
        self._own: Final = own
        self._lock: Final = threading.Lock()
        self._ways: dict[int, _Way] = {}
        self._left: list[Node] = []
        """Nodes whose connections are to be closed by the thread."""
        self._is_closed = False
        inter_broker.add(self)

    def update_brokers(self, brokers: Iterable["BrokerInfo"]) -> None:
        """These are the live brokers now; none at all when this broker is not the controller any more."""
        live = {info.broker_id: info for info in brokers}
        if self._own is not None:
            self._own[1].update_brokers(live.values())
            live.pop(self._own[0], None)
        given_up: list[Order] = []
        with self._lock:
            for broker_id, way in list(self._ways.items()):
                info = live.get(broker_id)
                if info is None or info.epoch != way.epoch:
                    del self._ways[broker_id]
                    given_up += self._leave(way)
            for broker_id, info in live.items():
                endpoint = info.endpoint(self._listener_name)
                node = Node(broker_id, endpoint.host, endpoint.port, info.rack, LANE)
                if broker_id in self._ways:
                    # The client moves with it.
                    self._ways[broker_id].node = node
                elif not self._is_closed:
                    self._ways[broker_id] = _Way(node, info.epoch)
        for order in given_up:
            tell(order.answer, _gone())
        self._inter_broker.wake()

    def send(self, broker_id: int, request: ControlRequest, on_response: OnResponse) -> None:
        """Queue a request; `on_response` is called once."""
        if self._own is not None and broker_id == self._own[0]:
            self._own[1].send(broker_id, request, on_response)
            return
        superseded: list[Order] = []
        with self._lock:
            way = self._ways.get(broker_id)
            if way is not None:
                superseded = way.queue.put(request, on_response)
        if way is None:
            on_response(_gone())
            return
        self._inter_broker.wake()
        if superseded:
            log.warning("orders made fewer: a broker takes none broker=%d superseded=%d", broker_id, len(superseded))
        for order in superseded:
            tell(order.answer, _superseded())

    def close(self) -> None:
        """Drop what was not sent; nobody is called back any more."""
        with self._lock:
            self._is_closed = True
            for way in self._ways.values():
                self._leave(way)
            self._ways.clear()
        if self._own is not None:
            self._own[1].close()
        self._inter_broker.wake()

    def queue_sizes(self) -> dict[int, int]:
        """How many requests each broker is still to be told, the one in flight included. Any thread."""
        with self._lock:
            sizes = {broker_id: len(way.queue) for broker_id, way in self._ways.items()}
        return sizes if self._own is None else sizes | self._own[1].queue_sizes()

    def done_so_far(self) -> Promise[None] | None:
        """See `BrokerChannels`."""
        return None if self._own is None else self._own[1].done_so_far()

    def advance(self, client: NetworkClient, now_ms: float) -> float:
        """Send what can be sent now: `inter_broker.Sender`."""
        with self._lock:
            left, self._left = self._left, []
            ways = [way for way in self._ways.values() if len(way.queue)]
            is_closed = self._is_closed
        for node in left:
            client.forget(node)
        if is_closed:
            self._inter_broker.remove(self)
        return min((self._advance(way, client, now_ms) for way in ways), default=float("inf"))

    def _advance(self, way: _Way, client: NetworkClient, now_ms: float) -> float:
        if now_ms < way.retry_at_ms:
            return way.retry_at_ms - now_ms
        node = way.node
        if not client.ready(node):
            return client.delay_ms(node)
        with self._lock:
            order = way.queue.take()
        if order is None:
            return float("inf")
        try:
            version = self._versions()[_api_key(order.request)]
            client.send(
                node,
                in_version(order.request, version),
                partial(self._answered, way, order),
                versions=(version, version),
                timeout_ms=self._timeout_ms,
            )
        except (ClientError, EncodeError) as failure:
            log.error("a broker cannot be told broker=%d error=%r", node.id, str(failure))
            self._finish(way, order, BrokerError(ErrorCode.UNSUPPORTED_VERSION, str(failure)))
            return 0.0
        return float("inf")

    def _answered(self, way: _Way, order: Order, answer: Any) -> None:
        if isinstance(answer, DisconnectedError):
            with self._lock:
                if not way.is_closed:
                    way.queue.give_back()
                    way.retry_at_ms = self._inter_broker.now_ms() + RETRY_MS
                    log.info("told again broker=%d reason=%r", way.node.id, str(answer))
                    return
            answer = _gone()
        self._finish(way, order, answer)

    def _finish(self, way: _Way, order: Order, answer: ControlResponse | BrokerError) -> None:
        with self._lock:
            way.queue.done()
            if self._is_closed:
                return
        tell(order.answer, answer)

    def _leave(self, way: _Way) -> list[Order]:
        """Under `_lock`: no more is sent on this way; what was not."""
        way.is_closed = True
        self._left.append(way.node)
        return way.queue.clear()


def _gone() -> BrokerError:
    return BrokerError(ErrorCode.BROKER_NOT_AVAILABLE, "The broker is not alive, or was registered again.")


def _superseded() -> BrokerError:
    return BrokerError(ErrorCode.REQUEST_TIMED_OUT, "The broker did not take it for long, and now newer orders hold.")


def _api_key(request: ControlRequest) -> int:
    key = schema_of(type(request)).key
    assert key is not None
    return key
