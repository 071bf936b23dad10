"""The cluster as a whole: requests as brokers see them, answers as callers do."""

from typing import Any

import pytest

from kavka.client.admin import (
    AclOperation,
    FeatureUpdate,
    UpgradeType,
    VersionSpan,
)
from kavka.client.admin.areas.cluster import ClusterArea
from kavka.client.api_errors import (
    DisconnectedError,
    InvalidUpdateVersionError,
    UnknownServerError,
    UnsupportedVersionError,
)
from kavka.client.node import Node
from kavka.protocol.api import ApiKey
from kavka.protocol.messages import (
    api_versions,
    describe_cluster,
    describe_quorum,
    metadata,
    unregister_broker,
    update_features,
)
from tests.support.admin_stage import AdminStage, in_turn

ID = bytes(range(16))


def cluster_answer(**more: Any) -> describe_cluster.DescribeClusterResponse:
    brokers = [
        describe_cluster.DescribeClusterBroker(broker_id=each, host=f"h{each}", port=9, is_fenced=each == 2)
        for each in (1, 2)
    ]
    return describe_cluster.DescribeClusterResponse(
        error_code=0, cluster_id="c", controller_id=1, brokers=brokers, **more
    )


def test_the_cluster_is_described_by_brokers_of_all_ages() -> None:
    stage = AdminStage()
    area = stage.area(ClusterArea)
    answer = cluster_answer(cluster_authorized_operations=1 << AclOperation.ALTER)
    stage.network.answer(describe_cluster.DescribeClusterRequest, in_turn(answer))

    found = area.describe_cluster(include_authorized_operations=True, include_fenced_brokers=True)
    assert (found.cluster_id, found.controller, found.fenced) == ("c", Node(1, "h1", 9), frozenset({2}))
    assert found.authorized_operations == frozenset({AclOperation.ALTER})

    stage.network.versions[1] = {ApiKey.DESCRIBE_CLUSTER: None, ApiKey.METADATA: (0, 9)}
    old = area.describe_cluster()
    assert (old.cluster_id, old.controller, len(old.nodes)) == ("c", stage.nodes[1], 3)
    assert stage.network.requests(metadata.MetadataRequest)[-1].request.topics == []
    with pytest.raises(UnsupportedVersionError):
        area.describe_cluster(include_fenced_brokers=True)


def test_versions_and_features_of_brokers() -> None:
    stage = AdminStage()
    area = stage.area(ClusterArea)
    answer = api_versions.ApiVersionsResponse(
        error_code=0,
        api_keys=[api_versions.ApiVersion(api_key=3, min_version=0, max_version=9)],
        supported_features=[api_versions.SupportedFeatureKey(name="f", min_version=1, max_version=2)],
        finalized_features_epoch=5,
        finalized_features=[api_versions.FinalizedFeatureKey(name="f", max_version_level=2, min_version_level=2)],
    )
    stage.network.answer(api_versions.ApiVersionsRequest, in_turn(answer))

    assert area.describe_api_versions() == {broker: {3: VersionSpan(0, 9)} for broker in (1, 2, 3)}
    assert area.describe_features(broker_id=2) == ({"f": (2, 2)}, 5, {"f": (1, 2)})
    assert stage.network.asked[-1].node.id == 2


@pytest.mark.parametrize("newest", [0, 1, 2])
def test_features_are_updated_in_words_of_every_version(newest: int) -> None:
    stage = AdminStage()
    stage.network.versions[1] = {ApiKey.UPDATE_FEATURES: (0, newest)}
    rows = [update_features.UpdatableFeatureResult(feature="f", error_code=0, error_message=None)]
    ok = update_features.UpdateFeaturesResponse(error_code=0, error_message=None, results=rows if newest < 2 else [])
    moved = update_features.UpdateFeaturesResponse(error_code=41, error_message=None, results=[])
    refused = update_features.UpdateFeaturesResponse(error_code=95, error_message="too far", results=[])
    stage.network.answer(update_features.UpdateFeaturesRequest, in_turn(moved, ok, refused))
    area = stage.area(ClusterArea)
    update = {"f": FeatureUpdate(1, UpgradeType.SAFE_DOWNGRADE)}

    assert area.update_features(update) == {"f": None}
    row = stage.network.requests(update_features.UpdateFeaturesRequest)[0].request.feature_updates[0]
    assert (row.allow_downgrade, row.upgrade_type) == ((True, 1) if newest == 0 else (False, 2))
    with pytest.raises(InvalidUpdateVersionError, match="too far"):
        area.update_features(update)


def test_a_broker_is_unregistered_once() -> None:
    stage = AdminStage()
    gone = unregister_broker.UnregisterBrokerResponse(error_code=102)
    stage.network.answer(unregister_broker.UnregisterBrokerRequest, in_turn(DisconnectedError("gone"), gone))

    stage.area(ClusterArea).unregister_broker(7)

    assert [each.request.broker_id for each in stage.network.asked] == [7, 7]


def quorum(topic: str, index: int) -> describe_quorum.DescribeQuorumResponse:
    replica = describe_quorum.ReplicaState(replica_id=1, replica_directory_id=ID, log_end_offset=9)
    row = describe_quorum.PartitionData(
        partition_index=index,
        error_code=0,
        leader_id=1,
        leader_epoch=2,
        high_watermark=9,
        current_voters=[replica],
        observers=[],
    )
    listener = describe_quorum.Listener(name="C", host="h", port=60_000)
    return describe_quorum.DescribeQuorumResponse(
        error_code=0,
        topics=[describe_quorum.TopicData(topic_name=topic, partitions=[row])],
        nodes=[describe_quorum.Node(node_id=1, listeners=[listener])],
    )


def test_the_quorum_is_that_of_metadata_alone() -> None:
    stage = AdminStage()
    area = stage.area(ClusterArea)
    answers = [quorum("__cluster_metadata", 0), quorum("other", 0), quorum("__cluster_metadata", 1)]
    stage.network.answer(describe_quorum.DescribeQuorumRequest, in_turn(*answers))

    found = area.describe_metadata_quorum()
    assert (found.leader_id, found.voters[0].directory_id, found.endpoints) == (1, ID, {1: (("C", "h", 60_000),)})
    for _ in answers[1:]:
        with pytest.raises(UnknownServerError, match="not about the quorum"):
            area.describe_metadata_quorum()
