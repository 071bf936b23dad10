"""A network whose answers come late, never, or with other bytes than the broker meant: no socket, no clock."""

import heapq
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from kavka.client.api_errors import BadAnswerError, DisconnectedError
from kavka.client.broker_versions import BrokerVersions
from kavka.client.call import Call, Callback, Sendable, VersionRange
from kavka.client.node import Node
from kavka.protocol.api import VERSIONS, ApiKey
from kavka.protocol.codec import decode, encode
from kavka.protocol.errors import DecodeError
from kavka.protocol.schema import Request
from tests.component.client.consumer.simulated_cluster import SimulatedCluster


class SimulatedNetwork:
    """A NetworkPort: answers come after a while by chance; some never, so that the connection is lost."""

    def __init__(self, cluster: SimulatedCluster, loss: float) -> None:
        self.cluster = cluster
        self.loss = loss
        self.lies = 0.0
        """How many answers have other bytes than the broker meant."""
        self.silent: set[int] = set()
        """Nodes that take requests and answer none."""
        self.unreachable: set[int] = set()
        self.now_ms = 1000.0
        self.requests: list[tuple[int, Request, int]] = []
        """(node, request, version) of all that was sent."""
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._in_flight: dict[int, int] = {}
        self._failures: dict[int, int] = {}
        self._not_before: dict[int, float] = {}

    def run(self, until_ms: float) -> None:
        """Let time go on to the next answer, or to then."""
        if self._events and self._events[0][0] <= until_ms:
            self.now_ms, _, event = heapq.heappop(self._events)
            event()
        else:
            self.now_ms = until_ms

    @property
    def next_ms(self) -> float:
        return self._events[0][0] if self._events else float("inf")

    def ready(self, node: Node) -> bool:
        if node.id in self.unreachable:
            self._failures[node.id] = self._failures.get(node.id, 0) + 1
            self._not_before[node.id] = self.now_ms + 100
            return False
        return self.now_ms >= self._not_before.get(node.id, 0.0) and self._in_flight.get(node.id, 0) < 5

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
        assert self.ready(node)
        call = Call(request, callback, versions)
        newest = VERSIONS[call.api_key].newest
        served = (0, min(newest, self.cluster.fetch_version) if call.api_key == ApiKey.FETCH else newest)
        version = call.choose_version(served)
        built = call.build(version)
        arrived: Any = decode(type(built), version, encode(built, version))
        self.requests.append((node.id, arrived, version))
        self._in_flight[node.id] = self._in_flight.get(node.id, 0) + 1
        if node.id in self.silent:
            return
        dice = self.cluster.dice
        is_lost, took_ms = dice.random() < self.loss, dice.choice([1.0, 5.0, 40.0, 700.0])
        # A request that is lost may have arrived, or not.
        answer = self.cluster.answer(node.id, arrived, version) if not is_lost or dice.random() < 0.5 else None

        def done() -> None:
            self._in_flight[node.id] -= 1
            if is_lost or answer is None:
                self._failures[node.id] = self._failures.get(node.id, 0) + 1
                self._not_before[node.id] = self.now_ms + 100
                callback(DisconnectedError("lost"))
            else:
                self._failures[node.id] = 0
                data = bytearray(encode(answer, version))
                if dice.random() < self.lies:
                    for _ in range(dice.randrange(1, 4)):
                        data[dice.randrange(len(data))] = dice.randrange(256)
                try:
                    decoded: Any = decode(type(answer), version, memoryview(data))
                except DecodeError as error:
                    # The connection is closed.
                    decoded = BadAnswerError(str(error))
                callback(decoded)

        heapq.heappush(self._events, (self.now_ms + took_ms, next(self._numbers), done))

    def delay_ms(self, node: Node) -> float:
        return max(self._not_before.get(node.id, 0.0) - self.now_ms, 0.0) or float("inf")

    def failures(self, node: Node) -> int:
        return self._failures.get(node.id, 0)

    def in_flight(self, node: Node) -> int:
        return self._in_flight.get(node.id, 0)

    def served(self, node: Node) -> BrokerVersions | None:
        return BrokerVersions({int(key): (0, VERSIONS[key].newest) for key in VERSIONS}, {}, -1)

    def least_loaded(self, nodes: Sequence[Node]) -> Node | None:
        return nodes[0] if nodes else None

    def disconnect(self, node: Node, reason: str = "") -> None:
        raise AssertionError("nobody disconnects")

    def wakeup(self) -> None:
        """Nobody sleeps."""
