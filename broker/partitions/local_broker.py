"""This broker as its controller sees it: the controller's three requests, applied here."""

from typing import TYPE_CHECKING

from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse

if TYPE_CHECKING:
    from kavka.broker.metadata.metadata_cache import MetadataCache
    from kavka.broker.partitions.replica_manager import ReplicaManager
    from kavka.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
    from kavka.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse


class LocalBroker:
    """Implements `cluster.ports.BrokerPort`. Threads: the controller's, one call at a time."""

    __slots__ = ("_metadata", "_replicas")

    def __init__(self, replicas: "ReplicaManager", metadata: "MetadataCache") -> None:
        self._replicas = replicas
        self._metadata = metadata

    def leader_and_isr(self, request: "LeaderAndIsrRequest") -> "LeaderAndIsrResponse":
        """Lead or follow partitions."""
        return self._replicas.leader_and_isr(request)

    def stop_replica(self, request: "StopReplicaRequest") -> "StopReplicaResponse":
        """Stop hosting partitions."""
        return self._replicas.stop_replica(request)

    def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        """Learn what the cluster looks like now."""
        try:
            self._metadata.apply(request)
        except BrokerError as failure:
            return UpdateMetadataResponse(error_code=failure.code)
        return UpdateMetadataResponse(error_code=ErrorCode.NONE)
