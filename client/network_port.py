"""What a client's machine sees of its connections: the seam that lets it be tested with no socket and no clock."""

from collections.abc import Sequence
from typing import Protocol

from kavka.client.broker_versions import BrokerVersions
from kavka.client.call import Callback, Sendable, VersionRange
from kavka.client.node import Node


class NetworkPort(Protocol):
    """`NetworkClient`, as far as machines use it. Threads: the owner's alone, but `wakeup`."""

    def ready(self, node: Node) -> bool:
        """Whether a request may be sent to `node` now; begins to connect where that is needed and allowed."""

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
        """Send to a node that is `ready`: `callback(answer)` comes later, or `callback(ClientError)`; never from here.

        `is_answered` is False for what brokers do not answer (acks=0): `callback(None)` when it is written.
        Raises UnsupportedVersionError or EncodeError: nothing was sent, and nobody is called back.
        """

    def delay_ms(self, node: Node) -> float:
        """How long `ready` cannot do anything for this node: its back-off, or the broker's throttling.

        Infinity while it is connected or connects: when that changes, `work` is called.
        """

    def failures(self, node: Node) -> int:
        """How often in a row a connection to the node has ended or could not be made."""

    def in_flight(self, node: Node) -> int:
        """How many requests to the node have no answer yet."""

    def served(self, node: Node) -> BrokerVersions | None:
        """What the broker can, as it said when the connection opened; None while there is no open connection."""

    def least_loaded(self, nodes: Sequence[Node]) -> Node | None:
        """The node to ask what any can answer; None while each has failed and is not to be tried yet."""

    def disconnect(self, node: Node, reason: str = ...) -> None:
        """Close the node's connection: a later round calls back for its requests."""

    def wakeup(self) -> None:
        """Have `work` called soon. Any thread."""
