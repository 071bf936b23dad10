"""The JSON documents of what operators ask about topics, settings, brokers and clusters, held to the letter."""

from pathlib import Path
from unittest.mock import MagicMock

import pytest

from kavka.cli.main import main
from kavka.client.admin import (
    ClusterDescription,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ConfigSynonym,
    FeatureMetadata,
    LogDirDescription,
    PartitionReassignment,
    QuorumInfo,
    RaftVoterEndpoint,
    ReplicaInfo,
    ReplicaState,
    TopicDescription,
    TopicListing,
    TopicMetadataAndConfig,
    TopicPartition,
    TopicPartitionInfo,
    VersionSpan,
)
from kavka.client.node import Node
from tests.support.json_documents import assert_golden

NODES = (Node(1, "one", 9092, "east"), Node(2, "two", 9092))
ORDERS_ID = bytes(range(16))
ORDERS = TopicDescription(
    "orders",
    ORDERS_ID,
    False,
    (
        TopicPartitionInfo(0, 1, 5, (1, 2), (1, 2), (), (), ()),
        TopicPartitionInfo(1, 1, 6, (2, 1), (1,), (2,), (2,), ()),
        TopicPartitionInfo(2, -1, 7, (2, 1, 3), (), (2,), None, None),
    ),
    None,
)
OWN = ConfigEntry(
    "retention.ms",
    "6000",
    ConfigSource.DYNAMIC_TOPIC_CONFIG,
    False,
    False,
    (ConfigSynonym("retention.ms", "6000", ConfigSource.DYNAMIC_TOPIC_CONFIG),),
)
INHERITED = ConfigEntry("min.insync.replicas", "2", ConfigSource.DEFAULT_CONFIG, False, False)


@pytest.fixture
def cluster(admin: MagicMock) -> MagicMock:
    """Two brokers, and a topic of three partitions: one is well, one lacks a replica, one has no leader."""
    admin.describe_cluster.return_value = ClusterDescription("a-cluster", NODES[0], NODES, frozenset(), None)
    admin.list_topics.return_value = {"orders": TopicListing("orders", ORDERS_ID, False)}
    admin.describe_topics.side_effect = lambda names: dict.fromkeys(names, ORDERS)
    admin.describe_configs.side_effect = lambda resources, **_: {
        resource: {OWN.name: OWN, INHERITED.name: INHERITED} for resource in resources
    }
    admin.list_partition_reassignments.return_value = {
        TopicPartition("orders", 2): PartitionReassignment((2, 1, 3), (3,), ())
    }
    admin.create_topics.side_effect = lambda topics, **_: {
        topic.name: TopicMetadataAndConfig(topic.name, ORDERS_ID, 3, 2, None) for topic in topics
    }
    admin.create_partitions.side_effect = lambda totals, **_: dict.fromkeys(totals)
    admin.delete_topics.side_effect = dict.fromkeys
    admin.elect_leaders.return_value = {TopicPartition("orders", 1): None}
    admin.describe_api_versions.return_value = {1: {0: VersionSpan(0, 13), 9999: VersionSpan(0, 1)}}
    admin.describe_features.return_value = FeatureMetadata(
        {"group.version": VersionSpan(1, 1)}, 7, {"group.version": VersionSpan(0, 1), "eligible": VersionSpan(0, 1)}
    )
    admin.update_features.side_effect = lambda updates, **_: dict.fromkeys(updates)
    admin.describe_log_dirs.return_value = {
        1: {"/data": LogDirDescription(None, {TopicPartition("orders", 0): ReplicaInfo(70, 3, False)}, 1000, -1)}
    }
    admin.describe_metadata_quorum.return_value = QuorumInfo(
        1,
        4,
        99,
        (ReplicaState(1, ORDERS_ID, 100, 5000, 5000), ReplicaState(3, bytes(16), 90, 4000, 3000)),
        (ReplicaState(2, bytes(16), 80, -1, -1),),
        {1: (RaftVoterEndpoint("CONTROLLER", "one", 9093),)},
    )
    return admin


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("topics-create", "topics create orders payments --partitions 3"),
        ("topics-alter", "topics alter orders --partitions 6"),
        ("topics-delete", "topics delete orders payments"),
        ("topics-describe", "topics describe orders"),
        ("configs-describe", "configs describe --topic orders --all"),
        ("configs-alter", "configs alter --topic orders --add-config a=[1,2],b= --delete-config retention.ms"),
        ("brokers-list", "brokers list"),
        ("brokers-versions", "brokers versions"),
        ("cluster-id", "cluster id"),
        ("features-describe", "features describe"),
        ("features-update", "features upgrade --feature group.version=1"),
        ("quorum-status", "quorum describe --status"),
        ("quorum-replication", "quorum describe --replication"),
        ("elect", "elect --election-type preferred --all-topic-partitions"),
        ("logdirs-describe", "logdirs describe"),
    ],
)
def test_a_document_is_as_programs_know_it(
    name: str, words: str, cluster: MagicMock, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words.split(), "--output", "json"]) == 0
    assert_golden(name, capsys.readouterr().out)


def test_an_unwell_cluster_is_told_by_document_and_exit_code(
    cluster: MagicMock, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cluster", "health", "--output", "json"]) == 1
    assert_golden("cluster-health", capsys.readouterr().out)
    assert main(["cluster", "health"]) == 1
    assert "under-replicated  2: orders-1, orders-2" in capsys.readouterr().out


def test_a_difference_is_told_by_document_and_exit_code(cluster: MagicMock, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.describe_configs.side_effect = lambda resources, **_: {
        resource: {} if resource == ConfigResource.topic("payments") else {OWN.name: OWN} for resource in resources
    }
    cluster.describe_topics.side_effect = lambda names: {name: ORDERS._replace(name=name) for name in names}
    assert main(["diff", "topics", "orders", "payments", "--output", "json"]) == 1
    assert_golden("diff", capsys.readouterr().out)
    assert main(["diff", "topics", "orders", "orders"]) == 0


def test_a_plan_is_shown_before_it_is_carried_out(
    cluster: MagicMock, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "topics.toml"
    file.write_text('[topics.orders]\npartitions = 6\nconfigs = {"cleanup.policy" = "compact", retention.ms = 6000}\n')
    command = ["topics", "apply", str(file), "--output", "json"]
    assert main(command) == 0
    assert_golden("topics-apply", capsys.readouterr().out)
    assert all(call.kwargs["validate_only"] for call in cluster.create_partitions.mock_calls)
    assert all(call.kwargs["validate_only"] for call in cluster.incremental_alter_configs.mock_calls)
    assert main([*command, "--execute"]) == 0
    assert '"state": "done"' in capsys.readouterr().out
    assert not cluster.create_partitions.mock_calls[-1].kwargs["validate_only"]


@pytest.mark.parametrize("flags", [[], ["--execute"]])
def test_a_plan_with_nothing_to_do_says_so(
    cluster: MagicMock, tmp_path: Path, flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "topics.toml"
    file.write_text("[topics.orders]\npartitions = 3\n")
    assert main(["topics", "apply", str(file), *flags]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "nothing is to be done"


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ("partitions = 2", "orders: it has 3 partitions, and 2 are declared; partitions can be added, but never taken"),
        ("replication-factor = 3", "orders: its replication factor is 2, and 3 is declared; kavka reassign changes it"),
        ("partition = 2", "topic orders: partition is none of partitions, replication-factor, configs"),
        ("partitions = 0", "topic orders: partitions = 0 is no number from 1 to"),
        ('configs = "x"', "topic orders: configs is a table of settings, not 'x'"),
        ("partitions = ", "Invalid value"),
    ],
)
def test_what_cannot_be_declared_is_refused_before_anything_is_done(
    cluster: MagicMock, tmp_path: Path, capsys: pytest.CaptureFixture[str], declared: str, why: str
) -> None:
    file = tmp_path / "topics.toml"
    file.write_text(f"[topics.orders]\n{declared}\n[topics.new]\npartitions = 3\n")
    cluster.describe_topics.side_effect = lambda names: {"orders": ORDERS}
    assert main(["topics", "apply", str(file), "--execute"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert why in line
    assert all(call.kwargs["validate_only"] for call in cluster.create_topics.mock_calls)


@pytest.mark.parametrize(
    ("flag", "partitions"),
    [
        ("--under-replicated-partitions", [1, 2]),
        ("--unavailable-partitions", [2]),
        ("--under-min-isr-partitions", [1, 2]),
        ("--at-min-isr-partitions", [0]),
    ],
)
def test_partitions_are_chosen_as_by_kafkas_tool(
    cluster: MagicMock, capsys: pytest.CaptureFixture[str], flag: str, partitions: list[int]
) -> None:
    assert main(["topics", "describe", flag]) == 0
    rows = [line.split()[0] for line in capsys.readouterr().out.splitlines()[2:]]
    assert rows == [str(each) for each in partitions]
