"""What a call sees of its client: no sockets, no threads, no clock but the one it is given."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from kavka.client.backoff import ExponentialBackoff
from kavka.client.cluster import Cluster
from kavka.client.coordinators import CoordinatorKind
from kavka.client.kafka_error import KafkaError
from kavka.client.network_port import NetworkPort
from kavka.client.node import Node


class ClusterPort(Protocol):
    """Who knows the brokers: `Metadata`."""

    @property
    def cluster(self) -> Cluster: ...

    def nodes(self) -> Sequence[Node]:
        """The brokers; the bootstrap addresses until they are known."""

    def request_update(self) -> int:
        """Have the metadata fetched; the version that is to be exceeded."""


class CoordinatorsPort(Protocol):
    """Who knows the coordinators: `Coordinators`."""

    def node(self, kind: CoordinatorKind, key: str) -> Node | None: ...

    def lost(self, kind: CoordinatorKind, key: str, node: Node) -> None: ...

    def failure(self, kind: CoordinatorKind, key: str) -> KafkaError | None: ...

    def forget(self, kind: CoordinatorKind, key: str) -> None: ...

    def work(self, now_ms: float) -> float: ...


class AdminPorts(NamedTuple):
    """All that calls use, shared by those of one client."""

    network: NetworkPort
    metadata: ClusterPort
    coordinators: CoordinatorsPort
    backoff: ExponentialBackoff
    """`retry.backoff.ms` to `retry.backoff.max.ms`."""
    now_ms: Callable[[], float]
    request_timeout_ms: float
    retries: int
