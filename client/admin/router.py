"""Targets to nodes, for one call."""

from typing import Final

from kavka.client.admin.leaders import LeaderLookup
from kavka.client.admin.ports import AdminPorts
from kavka.client.admin.targets import Anywhere, Broker, Coordinator, Target
from kavka.client.api_errors import BrokerNotAvailableError, KafkaError, NotControllerError
from kavka.client.node import Node
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.errors import ErrorCode

_LEADER_MOVED: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LISTENER_NOT_FOUND,
    }
)
_COORDINATOR_MOVED: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
_CONTROLLER_MOVED: Final = frozenset({ErrorCode.NOT_CONTROLLER})
_NOTHING: Final[frozenset[ErrorCode]] = frozenset()


def moved_codes(target: Target) -> frozenset[ErrorCode]:
    """The error codes which say that the target is somewhere else by now."""
    if isinstance(target, TopicPartition):
        return _LEADER_MOVED
    if isinstance(target, Coordinator):
        return _COORDINATOR_MOVED
    # Any broker may have passed a request on to a controller that is none any more.
    return _NOTHING if isinstance(target, Broker) else _CONTROLLER_MOVED


class Router:
    """Where the targets of one call are. Threads: the client's owner alone."""

    __slots__ = ("_controller_after", "_coordinated", "_leaders", "_ports", "_update_asked_at")

    def __init__(self, ports: AdminPorts) -> None:
        self._ports: Final = ports
        self._leaders: Final = LeaderLookup(ports)
        self._coordinated: Final[set[Coordinator]] = set()
        self._controller_after = -1
        """The controller is to be learnt from metadata newer than this version."""
        self._update_asked_at = -1
        """The version of the metadata at which newer ones were asked for last."""

    def node(self, target: Target) -> Node | KafkaError | None:
        """The node; why there will be none; None while it is being looked for, or when none can be asked right now."""
        if isinstance(target, TopicPartition):
            return self._leaders.node(target)
        if isinstance(target, Coordinator):
            self._coordinated.add(target)
            coordinators = self._ports.coordinators
            return coordinators.failure(target.kind, target.key) or coordinators.node(target.kind, target.key)
        if target is Anywhere.ANY:
            return self._ports.network.least_loaded(self._ports.metadata.nodes())
        cluster = self._ports.metadata.cluster
        broker_id = target.id if isinstance(target, Broker) else cluster.controller_id
        is_stale = isinstance(target, Anywhere) and cluster.version <= self._controller_after
        node = None if is_stale else cluster.nodes.get(broker_id)
        if node is None:
            self._ask_for_update(cluster.version)
        return node

    def trouble(self, target: Target) -> KafkaError | None:
        """Why the target has not been found yet, as far as that is known."""
        if isinstance(target, TopicPartition):
            return self._leaders.trouble(target) or self._unreachable()
        if target is Anywhere.ANY or self._ports.metadata.cluster.version == 0:
            return self._unreachable()
        if isinstance(target, Broker) and target.id not in self._ports.metadata.cluster.nodes:
            return BrokerNotAvailableError(f"broker {target.id} is not known to the cluster")
        if target is Anywhere.CONTROLLER and self._ports.metadata.cluster.controller_id < 0:
            return NotControllerError("the cluster has no controller now")
        return None

    def _unreachable(self) -> KafkaError | None:
        """That no broker can be reached, if it is so."""
        nodes = self._ports.metadata.nodes()
        if not nodes or not all(map(self._ports.network.failures, nodes)):
            return None
        names = ", ".join(f"{node.host}:{node.port}" for node in nodes)
        return BrokerNotAvailableError(f"no broker can be reached: {names}")

    def lost(self, target: Target, node: Node) -> None:
        """The target was not where it was looked for."""
        if isinstance(target, TopicPartition):
            self._leaders.lost(target)
        elif isinstance(target, Coordinator):
            self._ports.coordinators.lost(target.kind, target.key, node)
        elif target is Anywhere.CONTROLLER:
            self._controller_after = self._ports.metadata.request_update()
        else:
            self._ports.metadata.request_update()

    def work(self, now_ms: float) -> float:
        """Go on looking; how long until that is to be done."""
        return self._leaders.work(now_ms)

    def end(self) -> None:
        """The call is over: nothing is kept of the groups and transactional ids it was about.

        A call of another thread about the same ones looks them up again.
        """
        for target in self._coordinated:
            self._ports.coordinators.forget(target.kind, target.key)

    def _ask_for_update(self, version: int) -> None:
        if self._update_asked_at != version:
            self._update_asked_at = version
            self._ports.metadata.request_update()
