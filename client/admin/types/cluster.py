"""The cluster as a whole: its brokers, features and quorum."""

import enum
from collections.abc import Mapping
from typing import NamedTuple

from kavka.client.admin.types.acls import AclOperation
from kavka.client.node import Node
from kavka.protocol.schema import Uuid


class ClusterDescription(NamedTuple):
    """Who the brokers are. `controller` is None while there is none; with KRaft it is a broker that passes on.

    `fenced` are brokers that are registered, but not in service; only where they were asked for.

        cluster = admin.describe_cluster()
        print(cluster.cluster_id, [f"{node.host}:{node.port}" for node in cluster.nodes])
    """

    cluster_id: str | None
    controller: Node | None
    nodes: tuple[Node, ...]
    fenced: frozenset[int]
    authorized_operations: frozenset[AclOperation] | None


class VersionSpan(NamedTuple):
    """Oldest and newest, both inclusive: of an API's versions, or of a feature's levels.

    for broker_id, served in admin.describe_api_versions().items():
        print(broker_id, served[0].oldest, served[0].newest)    # key 0 is Produce
    """

    oldest: int
    newest: int


class FeatureMetadata(NamedTuple):
    """What brokers support of each feature, and what the cluster has agreed on (KIP-584). `epoch` -1: not told.

    for name, span in admin.describe_features().finalized.items():
        print(name, span.newest)
    """

    finalized: Mapping[str, VersionSpan]
    epoch: int
    supported: Mapping[str, VersionSpan]


class UpgradeType(enum.IntEnum):
    """Whether a feature may go down, and whether metadata may be lost by that (KIP-778).

    FeatureUpdate(1, UpgradeType.SAFE_DOWNGRADE)
    """

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """The level that a feature is to have; 0 removes it.

    FeatureUpdate(2)
    """

    max_version_level: int
    upgrade_type: UpgradeType = UpgradeType.UPGRADE


class ReplicaState(NamedTuple):
    """A controller of KRaft's, or a broker that follows. Times are -1 where they are not told.

    quorum = admin.describe_metadata_quorum()
    for voter in quorum.voters:
        print(voter.replica_id, quorum.high_watermark - voter.log_end_offset, "behind")
    """

    replica_id: int
    directory_id: Uuid
    log_end_offset: int
    last_fetch_timestamp_ms: int
    last_caught_up_timestamp_ms: int


class RaftVoterEndpoint(NamedTuple):
    """Where a controller of KRaft's is reached.

    RaftVoterEndpoint("CONTROLLER", "localhost", 9093)
    """

    name: str
    host: str
    port: int


class QuorumInfo(NamedTuple):
    """KRaft's quorum: who leads, votes and follows, and where the voters are reached (from 3.9 on).

    quorum = admin.describe_metadata_quorum()
    print(quorum.leader_id, quorum.leader_epoch, quorum.endpoints[quorum.leader_id])
    """

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[ReplicaState, ...]
    observers: tuple[ReplicaState, ...]
    endpoints: Mapping[int, tuple[RaftVoterEndpoint, ...]]
