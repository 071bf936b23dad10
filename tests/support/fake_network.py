"""A network of a test's own: nodes are ready or not as the test says, and what is sent waits to be answered."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kavka.client.broker_versions import BrokerVersions
from kavka.client.call import Sendable, VersionRange
from kavka.client.node import Node
from kavka.protocol.api import VERSIONS
from kavka.protocol.schema import Request

ALL_VERSIONS = BrokerVersions({key: (known.oldest, known.newest) for key, known in VERSIONS.items()}, {}, -1)


class Sent(NamedTuple):
    """A request on its way: `answer(...)` calls back, as the network does."""

    node: Node
    request: Any
    answer: Callable[[Any], None]
    timeout_ms: float | None
    is_answered: bool


class FakeNetwork:
    """A NetworkPort. `sent` are the requests that nobody has answered; a test takes them from there.

    Nodes are ready unless they are in `unready`, and are said to serve `versions`.
    """

    def __init__(self, versions: BrokerVersions = ALL_VERSIONS) -> None:
        self.versions = versions
        self.sent: list[Sent] = []
        self.unready: dict[int, float] = {}
        """By id: how long until it may be tried again."""
        self.asked_for: list[Node] = []
        self.disconnected: list[Node] = []
        self.wakeups = 0

    def take(self) -> Sent:
        """The one request that is on its way."""
        (sent,) = self.sent
        self.sent.clear()
        return sent

    def ready(self, node: Node) -> bool:
        self.asked_for.append(node)
        return node.id not in self.unready

    def send(
        self,
        node: Node,
        request: Sendable,
        callback: Callable[[Any], None],
        *,
        versions: VersionRange | None = None,
        timeout_ms: float | None = None,
        is_answered: bool = True,
    ) -> None:
        built = request if isinstance(request, Request) else self._build(request, versions)
        self.sent.append(Sent(node, built, callback, timeout_ms, is_answered))

    def delay_ms(self, node: Node) -> float:
        return self.unready.get(node.id, float("inf"))

    def failures(self, node: Node) -> int:
        return int(node.id in self.unready)

    def in_flight(self, node: Node) -> int:
        return sum(sent.node.key == node.key for sent in self.sent)

    def served(self, node: Node) -> BrokerVersions | None:
        return None if node.id in self.unready else self.versions

    def least_loaded(self, nodes: Sequence[Node]) -> Node | None:
        return next((node for node in nodes if node.id not in self.unready), None)

    def disconnect(self, node: Node, _reason: str = "") -> None:
        self.disconnected.append(node)

    def wakeup(self) -> None:
        self.wakeups += 1

    def _build(self, builder: Any, versions: VersionRange | None) -> Request:
        known = VERSIONS[builder.api_key]
        newest = self.versions.newest(builder.api_key, versions or (known.oldest, known.newest))
        assert newest is not None
        built: Request = builder.build(newest)
        return built
