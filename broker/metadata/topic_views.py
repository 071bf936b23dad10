"""Topics and partitions as the clients of one listener see them: Metadata and DescribeTopicPartitions show the same."""

from typing import TYPE_CHECKING, Final, NamedTuple

from kavka.broker.metadata.metadata_cache import NO_LEADER, Endpoint, MetadataSnapshot, PartitionMetadata
from kavka.cluster.topic_names import validate_topic_name
from kavka.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from kavka.broker.requests.handling import Context

NO_OPERATIONS: Final = -(2**31)
"""The authorized operations of who did not ask for them."""


class PartitionView(NamedTuple):
    """A partition for one listener. Without a reachable leader `leader_id` is -1 and the error says why."""

    error: ErrorCode
    leader_id: int
    replicas: list[int]
    isr: list[int]


class ClusterView:
    """The cluster as the clients of one listener see it; `reached` is where the asking one reached this broker."""

    __slots__ = ("_hides_dead_replicas", "_listener_error", "alive", "brokers", "snapshot")

    def __init__(
        self,
        snapshot: MetadataSnapshot,
        listener: str,
        reached: Endpoint,
        *,
        knows_listener_error: bool = True,
        hides_dead_replicas: bool = False,
    ) -> None:
        """`knows_listener_error`: LISTENER_NOT_FOUND may be said (Metadata v6, KIP-226).

        `hides_dead_replicas`: dead replicas are left out and reported as REPLICA_NOT_AVAILABLE (Metadata v0).
        """
        self.snapshot: Final = snapshot
        self.brokers: Final = snapshot.alive_brokers(listener, reached)
        self.alive: Final = frozenset(broker.broker_id for broker in self.brokers)
        self._listener_error = ErrorCode.LISTENER_NOT_FOUND if knows_listener_error else ErrorCode.LEADER_NOT_AVAILABLE
        self._hides_dead_replicas = hides_dead_replicas

    @property
    def controller_id(self) -> int:
        """The controller, if these clients can reach it; else -1."""
        controller_id = self.snapshot.controller_id
        return controller_id if controller_id in self.alive else -1

    def partition(self, partition: PartitionMetadata) -> PartitionView:
        """That partition as these clients see it."""
        replicas, isr = list(partition.replicas), list(partition.isr)
        if self._hides_dead_replicas:
            replicas = [replica for replica in replicas if replica in self.alive]
            isr = [replica for replica in isr if replica in self.alive]
        leader = partition.leader
        if leader not in self.alive:
            known = leader in self.snapshot.brokers
            error = self._listener_error if known else ErrorCode.LEADER_NOT_AVAILABLE
            return PartitionView(error, NO_LEADER, replicas, isr)
        if len(replicas) < len(partition.replicas) or len(isr) < len(partition.isr):
            return PartitionView(ErrorCode.REPLICA_NOT_AVAILABLE, leader, replicas, isr)
        return PartitionView(ErrorCode.NONE, leader, replicas, isr)


_MAPPED_IPV4: Final = "::ffff:"


def reached_endpoint(context: "Context") -> Endpoint:
    """The address at which the client reached this broker."""
    host = context.local_host
    if host.startswith(_MAPPED_IPV4) and "." in host:
        host = host[len(_MAPPED_IPV4) :]
    return Endpoint(host, context.local_port)


def name_error(name: str) -> ErrorCode:
    """INVALID_TOPIC_EXCEPTION for a name that no topic can have, else NONE."""
    try:
        validate_topic_name(name)
    except BrokerError as error:
        return error.code
    return ErrorCode.NONE
