"""Requests to any broker, each sent once: whoever asks knows whether to try again."""

import threading
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kavka.broker.interbroker.errand import Errand, OnAnswer
from kavka.broker.interbroker.telling import tell
from kavka.client import AnswerTimeoutError, ClientError, DisconnectedError, NetworkClient, Node
from kavka.client.call import Sendable, VersionRange
from kavka.client.node import NodeKey
from kavka.protocol.errors import BrokerError, EncodeError, ErrorCode

if TYPE_CHECKING:
    from kavka.broker.interbroker.inter_broker import InterBroker

MAX_QUEUED: Final = 1_000
"""Requests to one broker that wait to be sent."""


class _Destination:
    """A broker and what waits for it. `failures`: those of the connection that this queue has lived through."""

    __slots__ = ("failures", "node", "waiting")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.waiting: deque[Errand] = deque()
        self.failures: int | None = None


class BrokerRequests:
    """Sends to each broker in order, on a connection of its own (`lane`).

    Threads: `send` and `close` by any. `_lock` guards `_destinations`, their queues and `_is_closed`, and nobody is
    called back with it held; answers come on the `inter-broker` thread, or in `send` when it refuses.
    """

    def __init__(self, inter_broker: "InterBroker", *, lane: str, timeout_ms: float) -> None:
        """`timeout_ms` is request.timeout.ms: from `send` to the answer, unless a request has its own."""
        self._inter_broker: Final = inter_broker
        self._lane: Final = lane
        self._timeout_ms: Final = timeout_ms
        self._lock: Final = threading.Lock()
        self._destinations: dict[NodeKey, _Destination] = {}
        self._is_closed = False
        inter_broker.add(self)

    def send(
        self,
        node: Node,
        request: Sendable,
        on_answer: OnAnswer,
        *,
        versions: VersionRange | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Ask a broker; `on_answer` is called once, with its answer or a BrokerError.

        The error is NETWORK_EXCEPTION when there is no connection, or it ends before the answer: what was asked may
        have been done. REQUEST_TIMED_OUT when there is no answer in time, or too many requests wait already;
        UNSUPPORTED_VERSION when the broker has none of `versions`; BROKER_NOT_AVAILABLE when this broker stops.
        """
        deadline_ms = self._inter_broker.now_ms() + (self._timeout_ms if timeout_ms is None else timeout_ms)
        node = node._replace(lane=self._lane)
        refusal: BrokerError | None = None
        with self._lock:
            destination = self._destinations.get(node.key)
            if self._is_closed:
                refusal = _stopping()
            elif destination is None:
                destination = self._destinations[node.key] = _Destination(node)
            elif len(destination.waiting) >= MAX_QUEUED:
                refusal = BrokerError(ErrorCode.REQUEST_TIMED_OUT, "Too many requests wait for the broker.")
            if refusal is None and destination is not None:
                destination.node = node
                destination.waiting.append(Errand(request, on_answer, versions, deadline_ms))
        if refusal is not None:
            on_answer(refusal)
        else:
            self._inter_broker.wake()

    def close(self) -> None:
        """Send nothing more, and answer all that wait to be sent; what was sent is still answered."""
        with self._lock:
            self._is_closed = True
            waiting = [each for destination in self._destinations.values() for each in destination.waiting]
            self._destinations.clear()
        self._inter_broker.remove(self)
        for each in waiting:
            tell(each.on_answer, _stopping())

    def advance(self, client: NetworkClient, now_ms: float) -> float:
        """Send what can be sent now: `inter_broker.Sender`."""
        with self._lock:
            destinations = list(self._destinations.values())
        return min((self._advance(each, client, now_ms) for each in destinations), default=float("inf"))

    def _advance(self, destination: _Destination, client: NetworkClient, now_ms: float) -> float:
        node = destination.node
        if destination.failures is None:
            destination.failures = client.failures(node)
        while client.ready(node):
            destination.failures = 0
            waiting = self._next(destination)
            if waiting is None:
                return float("inf")
            self._send(client, node, waiting, now_ms)
        if client.failures(node) > destination.failures:
            destination.failures = client.failures(node)
            self._give_up(
                destination, float("inf"), BrokerError(ErrorCode.NETWORK_EXCEPTION, f"No way to node {node}.")
            )
            return 0.0
        self._give_up(destination, now_ms, _late())
        with self._lock:
            until_late_ms = min((each.deadline_ms for each in destination.waiting), default=float("inf")) - now_ms
        return min(client.delay_ms(node), until_late_ms)

    def _next(self, destination: _Destination) -> Errand | None:
        """The first that waits; without one the destination is forgotten."""
        with self._lock:
            if destination.waiting:
                return destination.waiting.popleft()
            self._forget(destination)
        return None

    def _give_up(self, destination: _Destination, due_ms: float, error: BrokerError) -> None:
        """Answer those whose deadline is not after `due_ms`."""
        with self._lock:
            given_up = [each for each in destination.waiting if each.deadline_ms <= due_ms]
            for each in given_up:
                destination.waiting.remove(each)
            if not destination.waiting:
                self._forget(destination)
        for each in given_up:
            tell(each.on_answer, error)

    def _forget(self, destination: _Destination) -> None:
        """Under `_lock`."""
        if self._destinations.get(destination.node.key) is destination:
            del self._destinations[destination.node.key]

    def _send(self, client: NetworkClient, node: Node, waiting: Errand, now_ms: float) -> None:
        left_ms = waiting.deadline_ms - now_ms
        if left_ms <= 0:
            tell(waiting.on_answer, _late())
            return
        answered = partial(_answered, waiting.on_answer)
        try:
            client.send(node, waiting.request, answered, versions=waiting.versions, timeout_ms=left_ms)
        except (ClientError, EncodeError) as failure:
            tell(waiting.on_answer, BrokerError(ErrorCode.UNSUPPORTED_VERSION, str(failure)))


def _answered(on_answer: OnAnswer, answer: Any) -> None:
    if isinstance(answer, AnswerTimeoutError):
        on_answer(_late())
    elif isinstance(answer, DisconnectedError):
        on_answer(BrokerError(ErrorCode.NETWORK_EXCEPTION, str(answer)))
    else:
        on_answer(answer)


def _late() -> BrokerError:
    return BrokerError(ErrorCode.REQUEST_TIMED_OUT, "The broker did not answer in time.")


def _stopping() -> BrokerError:
    return BrokerError(ErrorCode.BROKER_NOT_AVAILABLE, "This broker stops.")
