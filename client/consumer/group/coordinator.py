"""The broker that has a group: where its requests go, over a connection of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kavka.client.call import Sendable, VersionRange
from kavka.client.coordinators import CoordinatorKind, Coordinators
from kavka.client.errors import ClientError, DisconnectedError
from kavka.client.kafka_error import KafkaError
from kavka.client.network_port import NetworkPort
from kavka.client.node import Node, NodeKey
from kavka.protocol.errors import EncodeError, ErrorCode

LANE: Final = "group"
"""JoinGroup waits for a whole group: nothing else may wait behind it."""
LEAVE_LANE: Final = "group-leave"

_MOVED: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})


class Coordinator:
    """Sends a group's requests, and forgets a coordinator that has moved or is gone. Threads: the client's."""

    def __init__(
        self, network: NetworkPort, coordinators: Coordinators, group_id: str, keeps_failures_ms: float = 100.0
    ) -> None:
        """`keeps_failures_ms`: how long nobody looks for a coordinator that cannot be found, so all hear of it."""
        self._network: Final = network
        self._coordinators: Final = coordinators
        self._group_id: Final = group_id
        self._given_up: tuple[NodeKey, int] | None = None
        """The node, and the failure to connect to it, after which the coordinator was looked for anew."""
        self._keeps_failures_ms: Final = keeps_failures_ms
        self._forgets_at_ms: float | None = None
        """When the failure there is will have been told for long enough."""

    def work(self, now_ms: float) -> float:
        """Look for it if need be; how long until there is something to do. After the work of all who may want it."""
        return min(self._coordinators.work(now_ms), self._forget_failure(now_ms))

    @property
    def is_known(self) -> bool:
        """Whether it is known who the coordinator is."""
        return self._node() is not None

    def failure(self) -> KafkaError | None:
        """Why it cannot be found: the same to all who ask, until it may be looked for again."""
        return self._coordinators.failure(CoordinatorKind.GROUP, self._group_id)

    def ready(self, lane: str = LANE) -> Node | None:
        """The node to send to, if one more request can be sent to it now."""
        node = self._node()
        if node is None:
            return None
        node = node._replace(lane=lane)
        if self._network.ready(node):
            return node
        failures = self._network.failures(node)
        if failures and (node.key, failures) != self._given_up:
            # It may be another one by now. Once for each failure, so that the back-off between them is that of this.
            self._given_up = node.key, failures
            self.lost(node)
        return None

    def delay_ms(self) -> float:
        """How long there is nothing to be done about a node that is not ready; infinity when news will come of it."""
        node = self._node()
        return float("inf") if node is None else self._network.delay_ms(node._replace(lane=LANE))

    def send(
        self,
        node: Node,
        request: Sendable,
        callback: Callable[[Any], None],
        *,
        versions: VersionRange | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Send to a node that is `ready`; the answer comes later, or a KafkaError: that at once if nothing was sent."""

        def answered(answer: Any) -> None:
            if isinstance(answer, DisconnectedError):
                self.lost(node)
            callback(answer)

        try:
            self._network.send(node, request, answered, versions=versions, timeout_ms=timeout_ms)
        except ClientError as failure:
            callback(failure)
        except EncodeError as failure:
            callback(ClientError(f"the request cannot be made in a version that {node} has: {failure}"))

    def has_moved(self, code: int, node: Node) -> bool:
        """Whether this error means that the node is not the coordinator; it is looked for then."""
        if code in _MOVED:
            self.lost(node)
            return True
        return False

    def lost(self, node: Node | None = None) -> None:
        """Look for it anew."""
        known = self._node()
        if known is not None and (node is None or node[:3] == known[:3]):
            self._coordinators.lost(CoordinatorKind.GROUP, self._group_id, known)

    def give_up(self) -> None:
        """It has not answered for too long: look for it anew, and have all that it owes fail, to be asked again there.

        Otherwise who waits for an answer would say nothing to the new coordinator until the old one's time is over.
        """
        known = self._node()
        if known is not None:
            self._network.disconnect(known._replace(lane=LANE), "the group's coordinator says nothing any more")
            self.lost(known)

    def _forget_failure(self, now_ms: float) -> float:
        """Once all have heard of it, and it is not in vain to try again; how long until then."""
        if self.failure() is None:
            self._forgets_at_ms = None
            return float("inf")
        if self._forgets_at_ms is None:
            self._forgets_at_ms = now_ms + self._keeps_failures_ms
        if now_ms >= self._forgets_at_ms:
            self._coordinators.forget(CoordinatorKind.GROUP, self._group_id)
            self._forgets_at_ms = None
            return 0.0
        return self._forgets_at_ms - now_ms

    def _node(self) -> Node | None:
        return self._coordinators.node(CoordinatorKind.GROUP, self._group_id)
