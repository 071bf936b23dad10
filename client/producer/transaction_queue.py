"""Requests for transactions that wait for their turn: one at a time, to the coordinator that each belongs to."""

import heapq
from collections.abc import Callable
from itertools import count
from typing import Any, Final

from kavka.client.api_errors import ClientError, KafkaError
from kavka.client.coordinators import CoordinatorKind, Coordinators
from kavka.client.network_port import NetworkPort
from kavka.client.node import Node, NodeKey
from kavka.client.producer.accumulator import FOREVER_MS
from kavka.client.producer.sequences import Identity
from kavka.client.producer.transaction_requests import TransactionRequest
from kavka.protocol.api import ApiKey
from kavka.protocol.errors import EncodeError

BUMPING_VERSIONS: Final = (3, 5)
"""Of InitProducerId: those that give a known producer its next epoch."""
FEATURE: Final = "transaction.version"
_Heard = Callable[[TransactionRequest, Node | None, Any], None]


class RequestQueue:
    """By priority, and in order within one. Threads: its owner's, under its lock."""

    def __init__(self, transactional_id: str, network: NetworkPort, coordinators: Coordinators, heard: _Heard) -> None:
        """`heard(request, node, answer)` is called with each answer or KafkaError, without node when none was found."""
        self._id: Final = transactional_id
        self._network: Final = network
        self._coordinators: Final = coordinators
        self._heard: Final = heard
        self._requests: list[tuple[int, int, TransactionRequest]] = []
        self._numbers: Final = count()
        self.in_flight: TransactionRequest | None = None
        self._given_up: tuple[NodeKey, int] | None = None
        """The node, and the failure to connect to it, after which its coordinators were looked for anew."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits, for its turn or an answer."""
        return not self._requests and self.in_flight is None

    @property
    def first(self) -> TransactionRequest | None:
        """The next one."""
        return self._requests[0][2] if self._requests else None

    def put(self, request: TransactionRequest) -> None:
        """Have a request sent when its turn comes; once more, and it is before those that came after it."""
        if request.number < 0:
            request.number = next(self._numbers)
        heapq.heappush(self._requests, (request.priority, request.number, request))

    def pop(self) -> TransactionRequest:
        """Take out the next one."""
        return heapq.heappop(self._requests)[2]

    def fail(self, error: KafkaError) -> None:
        """Fail all that wait for their turn."""
        for _, _, request in self._requests:
            request.result.done(error)
        self._requests.clear()

    def send_first(self, identity: Identity) -> float:
        """Send the first request once its coordinator is known and can be reached; how long to wait for that."""
        request = self._requests[0][2]
        node = self._coordinators.node(request.kind, request.key)
        if node is None:
            failure = self._coordinators.failure(request.kind, request.key)
            if failure is None:
                return FOREVER_MS
            self._coordinators.forget(request.kind, request.key)
            self.pop()
            self._heard(request, None, failure)
            return 0.0
        if not self._network.ready(node):
            wait_ms = self._network.delay_ms(node)
            failures = self._network.failures(node)
            if failures and (node.key, failures) != self._given_up:
                # It may be elsewhere by now. Once for each failure: until the cluster knows that this broker is gone,
                # it is found again and again.
                self._given_up = node.key, failures
                self._coordinators.lost(request.kind, request.key, node)
            return wait_ms
        self.pop()
        self.in_flight = request
        try:
            self._network.send(
                node,
                request.message(identity),
                lambda answer: self._answered(request, node, answer),
                versions=request.versions,
            )
        except (ClientError, EncodeError) as failure:
            self._answered(request, node, failure if isinstance(failure, KafkaError) else KafkaError(str(failure)))
        return FOREVER_MS

    def can_bump(self) -> bool:
        """Whether the coordinator gives a known producer its next epoch (KIP-360: since 2.5)."""
        node = self._coordinators.node(CoordinatorKind.TRANSACTION, self._id)
        served = self._network.served(node) if node is not None else None
        # Not connected now: brokers that are so old are rare, and one of them says so when it is asked.
        return served is None or served.newest(ApiKey.INIT_PRODUCER_ID, BUMPING_VERSIONS) is not None

    def is_v2_served(self, otherwise: bool) -> bool:
        """Whether the cluster has the second version of transactions; `otherwise` while nobody says."""
        node = self._coordinators.node(CoordinatorKind.TRANSACTION, self._id)
        served = self._network.served(node) if node is not None else None
        return otherwise if served is None else served.features.get(FEATURE, 0) >= 2

    def _answered(self, request: TransactionRequest, node: Node, answer: Any) -> None:
        self.in_flight = None
        self._heard(request, node, answer)
