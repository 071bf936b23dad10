"""The cluster as a whole: brokers, versions, features, KRaft's quorum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kavka.client.admin.areas.area import Area, each_of
from kavka.client.admin.areas.later import Later
from kavka.client.admin.targets import Anywhere, Broker, Target
from kavka.client.api_errors import UnsupportedVersionError
from kavka.protocol.schema import Uuid

if TYPE_CHECKING:
    from kavka.client.admin.operations import cluster as operations
    from kavka.client.admin.types.cluster import (
        ClusterDescription,
        FeatureMetadata,
        FeatureUpdate,
        QuorumInfo,
        RaftVoterEndpoint,
        VersionSpan,
    )
else:
    operations = Later("kavka.client.admin.operations.cluster")

ANYBODY = -1


class ClusterArea(Area):
    """Threads: any."""

    def describe_cluster(
        self,
        *,
        include_authorized_operations: bool = False,
        include_fenced_brokers: bool = False,
        timeout_ms: float | None = None,
    ) -> ClusterDescription:
        """The brokers, the controller and the cluster's id.

        Raises UnsupportedVersionError when fenced brokers are asked for of brokers before 4.0 (KIP-1073).
        """
        deadline_ms = self._deadline(timeout_ms)
        try:
            operation = operations.describe_cluster(include_authorized_operations, include_fenced_brokers)
            return self._one(operation, deadline_ms)
        except UnsupportedVersionError:
            if include_fenced_brokers:
                raise
            # Brokers before 2.8.
            return self._one(operations.cluster_by_metadata(include_authorized_operations), deadline_ms)

    def describe_api_versions(
        self, broker_ids: Iterable[int] | None = None, *, timeout_ms: float | None = None
    ) -> dict[int, dict[int, VersionSpan]]:
        """The versions that brokers serve of each API, by broker and by the API's key; of all brokers by default."""
        deadline_ms = self._deadline(timeout_ms)
        ids = self._broker_ids(deadline_ms) if broker_ids is None else each_of(broker_ids)
        answers = self._run(operations.broker_versions({each: Broker(each) for each in ids}), deadline_ms)
        return {broker_id: operations.versions_of(answer) for broker_id, answer in answers.items()}

    def describe_features(self, *, broker_id: int | None = None, timeout_ms: float | None = None) -> FeatureMetadata:
        """What the cluster has agreed on, and what a broker supports (KIP-584): one broker's, or any's."""
        where: Target = Anywhere.ANY if broker_id is None else Broker(broker_id)
        key = ANYBODY if broker_id is None else broker_id
        answer = self._one(operations.broker_versions({key: where}), self._deadline(timeout_ms))
        return operations.features_of(answer)

    def update_features(
        self,
        updates: Mapping[str, FeatureUpdate],
        *,
        validate_only: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[str, None]:
        """Change what the cluster has agreed on. Asked of the controller.

            admin.update_features({"transaction.version": FeatureUpdate(1, UpgradeType.SAFE_DOWNGRADE)})

        Raises InvalidUpdateVersionError, FeatureUpdateFailedError, ...
        """
        return self._run(operations.update_features(updates, validate_only), self._deadline(timeout_ms))

    def unregister_broker(self, broker_id: int, *, timeout_ms: float | None = None) -> None:
        """Have KRaft's controllers forget a broker that is gone for good. Raises BrokerIdNotRegisteredError, ...

        UnsupportedVersionError with ZooKeeper, and for Kavka: there a broker that is gone is not registered.
        """
        self._one(operations.unregister_broker(broker_id), self._deadline(timeout_ms))

    def describe_metadata_quorum(self, *, timeout_ms: float | None = None) -> QuorumInfo:
        """KRaft's quorum (KIP-595). Raises UnsupportedVersionError where there is none: with ZooKeeper, and Kavka."""
        return self._one(operations.describe_quorum(), self._deadline(timeout_ms))

    def add_raft_voter(
        self,
        voter_id: int,
        directory_id: Uuid,
        endpoints: Sequence[RaftVoterEndpoint],
        *,
        cluster_id: str | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Have one more of KRaft's controllers vote (KIP-853). Raises DuplicateVoterError, ..."""
        operation = operations.add_raft_voter(voter_id, directory_id, endpoints, cluster_id)
        self._one(operation, self._deadline(timeout_ms))

    def remove_raft_voter(
        self,
        voter_id: int,
        directory_id: Uuid,
        *,
        cluster_id: str | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Have one of KRaft's controllers vote no longer (KIP-853). Raises VoterNotFoundError, ..."""
        operation = operations.remove_raft_voter(voter_id, directory_id, cluster_id)
        self._one(operation, self._deadline(timeout_ms))
