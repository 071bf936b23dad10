"""DescribeCluster and Metadata of brokers, features, versions, and KRaft's quorum and brokers."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kavka import __version__
from kavka.client.admin.operation import (
    Answered,
    Operation,
    Outcome,
    check,
    error_or,
)
from kavka.client.admin.targets import Anywhere, Target
from kavka.client.admin.types.acls import authorized_operations
from kavka.client.admin.types.cluster import (
    ClusterDescription,
    FeatureMetadata,
    FeatureUpdate,
    QuorumInfo,
    RaftVoterEndpoint,
    ReplicaState,
    UpgradeType,
    VersionSpan,
)
from kavka.client.api_errors import UnknownServerError
from kavka.client.call import RequestBuilder
from kavka.client.connection import SOFTWARE_NAME
from kavka.client.node import Node
from kavka.protocol.api import ApiKey
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from kavka.protocol.messages.api_versions import ApiVersionsRequest
from kavka.protocol.messages.describe_cluster import DescribeClusterRequest
from kavka.protocol.messages.describe_quorum import DescribeQuorumRequest, PartitionRequest, TopicRequest
from kavka.protocol.messages.metadata import MetadataRequest
from kavka.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from kavka.protocol.messages.unregister_broker import UnregisterBrokerRequest
from kavka.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from kavka.protocol.schema import Request, Uuid

METADATA_TOPIC: Final = "__cluster_metadata"
FENCED_SINCE: Final = 2


def describe_cluster(with_operations: bool, with_fenced: bool) -> Operation[None, ClusterDescription]:
    def build(version: int) -> Request:
        return DescribeClusterRequest(
            include_cluster_authorized_operations=with_operations,
            include_fenced_brokers=with_fenced and version >= FENCED_SINCE,
        )

    def read(answered: Answered[None]) -> Iterator[tuple[None, ClusterDescription]]:
        body = answered.body
        check(body.error_code, body.error_message)
        nodes = {row.broker_id: Node(row.broker_id, row.host, row.port, row.rack) for row in body.brokers}
        yield (
            None,
            ClusterDescription(
                body.cluster_id,
                nodes.get(body.controller_id),
                tuple(nodes.values()),
                frozenset(row.broker_id for row in body.brokers if row.is_fenced),
                authorized_operations(body.cluster_authorized_operations),
            ),
        )

    return Operation(
        "describing the cluster",
        [None],
        request=lambda *_: RequestBuilder(ApiKey.DESCRIBE_CLUSTER, build),
        read=read,
        versions=(FENCED_SINCE if with_fenced else 0, 2),
    )


def cluster_by_metadata(with_operations: bool) -> Operation[None, ClusterDescription]:
    """What all brokers can answer, those before 2.8 too."""

    def read(answered: Answered[None]) -> Iterator[tuple[None, ClusterDescription]]:
        body = answered.body
        check(body.error_code)
        nodes = {row.node_id: Node(row.node_id, row.host, row.port, row.rack) for row in body.brokers}
        bits = body.cluster_authorized_operations
        yield (
            None,
            ClusterDescription(
                body.cluster_id,
                nodes.get(body.controller_id),
                tuple(nodes.values()),
                frozenset(),
                authorized_operations(bits),
            ),
        )

    return Operation(
        "describing the cluster",
        [None],
        request=lambda *_: MetadataRequest(
            topics=[],
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=with_operations,
        ),
        read=read,
        # From 11 on there are no operations of the cluster.
        versions=(8, 10) if with_operations else (4, 13),
    )


def broker_versions(targets: Mapping[int, Target]) -> Operation[int, Any]:
    """The answers to ApiVersions, whole."""

    def read(answered: Answered[int]) -> Iterator[tuple[int, Any]]:
        check(answered.body.error_code)
        yield answered.items[0], answered.body

    return Operation(
        "asking for versions",
        targets,
        request=lambda *_: ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=__version__),
        read=read,
        target=targets.__getitem__,
        at_once=1,
    )


def features_of(answer: Any) -> FeatureMetadata:
    """The features in an answer to ApiVersions."""
    return FeatureMetadata(
        {row.name: VersionSpan(row.min_version_level, row.max_version_level) for row in answer.finalized_features},
        answer.finalized_features_epoch,
        {row.name: VersionSpan(row.min_version, row.max_version) for row in answer.supported_features},
    )


def versions_of(answer: Any) -> dict[int, VersionSpan]:
    """The APIs in an answer to ApiVersions, by their keys."""
    return {row.api_key: VersionSpan(row.min_version, row.max_version) for row in answer.api_keys}


def update_features(updates: Mapping[str, FeatureUpdate], validate_only: bool) -> Operation[str, None]:
    def request(asked: Sequence[str], timeout_ms: int) -> RequestBuilder:
        def build(version: int) -> Request:
            rows = [_feature_update(name, updates[name], version) for name in asked]
            return UpdateFeaturesRequest(timeout_ms=timeout_ms, feature_updates=rows, validate_only=validate_only)

        return RequestBuilder(ApiKey.UPDATE_FEATURES, build)

    def read(answered: Answered[str]) -> Iterator[tuple[str, Outcome[None]]]:
        check(answered.body.error_code, answered.body.error_message)
        if answered.version >= 2:
            # One error for all, or none.
            yield from ((name, None) for name in answered.items)
        for row in answered.body.results:
            yield row.feature, error_or(row, None)

    return Operation(
        "updating features",
        updates,
        request=request,
        read=read,
        target=Anywhere.CONTROLLER,
        versions=(1 if validate_only else 0, 2),
    )


def _feature_update(name: str, update: FeatureUpdate, version: int) -> FeatureUpdateKey:
    key = FeatureUpdateKey(feature=name, max_version_level=update.max_version_level)
    if version == 0:
        key.allow_downgrade = update.upgrade_type is not UpgradeType.UPGRADE
    else:
        key.upgrade_type = int(update.upgrade_type)
    return key


def unregister_broker(broker_id: int) -> Operation[None, None]:
    return Operation(
        "unregistering a broker",
        [None],
        request=lambda *_: UnregisterBrokerRequest(broker_id=broker_id),
        read=_checked,
        settled=frozenset({ErrorCode.BROKER_ID_NOT_REGISTERED}),
    )


def _checked(answered: Answered[None]) -> Iterator[tuple[None, Outcome[None]]]:
    yield None, error_or(answered.body, None)


def describe_quorum() -> Operation[None, QuorumInfo]:
    asked = TopicRequest(topic_name=METADATA_TOPIC, partitions=[PartitionRequest(partition_index=0)])

    def read(answered: Answered[None]) -> Iterator[tuple[None, Outcome[QuorumInfo]]]:
        body = answered.body
        check(body.error_code, body.error_message)
        rows = [row for topic in body.topics if topic.topic_name == METADATA_TOPIC for row in topic.partitions]
        if len(rows) != 1 or rows[0].partition_index != 0:
            yield None, UnknownServerError("the broker's answer is not about the quorum that was asked for")
            return
        endpoints = {
            node.node_id: tuple(RaftVoterEndpoint(each.name, each.host, each.port) for each in node.listeners)
            for node in body.nodes
        }
        yield None, error_or(rows[0], _quorum(rows[0], endpoints))

    return Operation(
        "describing the quorum", [None], request=lambda *_: DescribeQuorumRequest(topics=[asked]), read=read
    )


def _quorum(row: Any, endpoints: Mapping[int, tuple[RaftVoterEndpoint, ...]]) -> QuorumInfo:
    return QuorumInfo(
        row.leader_id,
        row.leader_epoch,
        row.high_watermark,
        tuple(map(_replica, row.current_voters)),
        tuple(map(_replica, row.observers)),
        endpoints,
    )


def _replica(row: Any) -> ReplicaState:
    return ReplicaState(
        row.replica_id,
        row.replica_directory_id,
        row.log_end_offset,
        row.last_fetch_timestamp,
        row.last_caught_up_timestamp,
    )


def add_raft_voter(
    voter_id: int, directory_id: Uuid, endpoints: Sequence[RaftVoterEndpoint], cluster_id: str | None
) -> Operation[None, None]:
    return Operation(
        "adding a voter",
        [None],
        request=lambda _, timeout_ms: AddRaftVoterRequest(
            cluster_id=cluster_id,
            timeout_ms=timeout_ms,
            voter_id=voter_id,
            voter_directory_id=directory_id,
            listeners=[Listener(name=each.name, host=each.host, port=each.port) for each in endpoints],
        ),
        read=_checked,
        settled=frozenset({ErrorCode.DUPLICATE_VOTER}),
    )


def remove_raft_voter(voter_id: int, directory_id: Uuid, cluster_id: str | None) -> Operation[None, None]:
    return Operation(
        "removing a voter",
        [None],
        request=lambda *_: RemoveRaftVoterRequest(
            cluster_id=cluster_id, voter_id=voter_id, voter_directory_id=directory_id
        ),
        read=_checked,
        settled=frozenset({ErrorCode.VOTER_NOT_FOUND}),
    )
