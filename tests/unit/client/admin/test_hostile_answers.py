"""Answers of all shapes, made up at random: each item of each call ends with a result or an error, and in time."""

import logging
import random
from collections.abc import Callable
from typing import Any

import pytest

from kavka.client.admin.areas.topics import TopicsArea
from kavka.client.admin.driver import AdminCall
from kavka.client.admin.operation import Operation
from kavka.client.admin.operations import (
    acls,
    cluster,
    configs,
    credentials,
    group_offsets,
    groups,
    log_dirs,
    newer_groups,
    partitions,
    quotas,
    topics,
    transactions,
)
from kavka.client.admin.targets import Broker
from kavka.client.admin.types.acls import AclBinding, AclBindingFilter, AclOperation, ResourceType
from kavka.client.admin.types.cluster import FeatureUpdate
from kavka.client.admin.types.configs import AlterConfigOp, ConfigResource
from kavka.client.admin.types.credentials import KafkaPrincipal, ScramMechanism, UserScramCredentialUpsertion
from kavka.client.admin.types.groups import MemberToRemove
from kavka.client.admin.types.quotas import ClientQuotaEntity
from kavka.client.admin.types.topics import (
    ElectionType,
    IsolationLevel,
    NewPartitions,
    NewTopic,
    TopicPartitionReplica,
)
from kavka.client.admin.types.transactions import AbortTransactionSpec
from kavka.client.api_errors import KafkaError
from kavka.client.consumer.group.port import OffsetAndMetadata
from kavka.client.node import Node
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.api import VERSIONS, ApiKey, spec
from kavka.protocol.schema import Message
from tests.support.admin_stage import AdminStage, Said
from tests.support.message_values import STYLES, message_value

# Names that made-up answers have too, so that some of their rows are about what was asked for.
P0 = TopicPartition("a", 0)
P1 = TopicPartition("a", 1)
TOPIC = ConfigResource.topic("a")
ID = bytes(range(16))
SEEDS = 25
LIKELY = 0.8
NOT_MADE_UP = (ApiKey.METADATA, ApiKey.FIND_COORDINATOR)

OPERATIONS: dict[str, Callable[[], Operation[Any, Any]]] = {
    "describe_acls": lambda: acls.describe_acls(AclBindingFilter()),
    "create_acls": lambda: acls.create_acls([AclBinding(ResourceType.TOPIC, "a", "User:a", AclOperation.READ)]),
    "delete_acls": lambda: acls.delete_acls([AclBindingFilter(), AclBindingFilter(principal="User:a")]),
    "describe_cluster": lambda: cluster.describe_cluster(True, True),
    "cluster_by_metadata": lambda: cluster.cluster_by_metadata(False),
    "broker_versions": lambda: cluster.broker_versions({2: Broker(2)}),
    "update_features": lambda: cluster.update_features({"a": FeatureUpdate(1)}, False),
    "unregister_broker": lambda: cluster.unregister_broker(3),
    "describe_quorum": cluster.describe_quorum,
    "add_raft_voter": lambda: cluster.add_raft_voter(1, ID, [], None),
    "remove_raft_voter": lambda: cluster.remove_raft_voter(1, ID, None),
    "describe_configs": lambda: configs.describe_configs([TOPIC, ConfigResource.broker(1)], None, True, True),
    "incremental_alter_configs": lambda: configs.incremental_alter_configs({TOPIC: [AlterConfigOp("a", "b")]}, False),
    "alter_configs": lambda: configs.alter_configs({TOPIC: {}}, False),
    "list_config_resources": lambda: configs.list_config_resources([]),
    "describe_scram": lambda: credentials.describe_scram(None),
    "alter_scram": lambda: credentials.alter_scram(
        {"a": [UserScramCredentialUpsertion("a", ScramMechanism.SCRAM_SHA_256, "a", 1)]}, {}
    ),
    "create_token": lambda: credentials.create_token([], KafkaPrincipal("User", "a"), -1),
    "renew_token": lambda: credentials.renew_token(b"h", -1),
    "expire_token": lambda: credentials.expire_token(b"h", -1),
    "describe_tokens": lambda: credentials.describe_tokens(None),
    "delete_groups": lambda: group_offsets.delete_groups(["a", "topic-7"]),
    "remove_members": lambda: group_offsets.remove_members(
        "a", [MemberToRemove("s"), MemberToRemove(member_id="m")], ""
    ),
    "list_group_offsets": lambda: group_offsets.list_offsets({"a": None, "topic-7": [P0]}, False),
    "alter_offsets": lambda: group_offsets.alter_offsets("a", {P0: OffsetAndMetadata(1)}),
    "delete_offsets": lambda: group_offsets.delete_offsets("a", [P0]),
    "list_groups": lambda: groups.list_groups([1, 2], [], []),
    "describe_consumer_groups": lambda: groups.describe_consumer_groups(["a", "topic-7"], True, True),
    "describe_classic_groups": lambda: groups.describe_classic_groups(["a", "topic-7"], True, True),
    "describe_log_dirs": lambda: log_dirs.describe_log_dirs([1, 2]),
    "alter_replica_log_dirs": lambda: log_dirs.alter_replica_log_dirs({TopicPartitionReplica("a", 0, 1): "/d"}),
    "describe_share_groups": lambda: newer_groups.describe_share_groups(["a"], True),
    "describe_streams_groups": lambda: newer_groups.describe_streams_groups(["a"], True),
    "list_share_offsets": lambda: newer_groups.list_share_offsets({"a": None}),
    "alter_share_offsets": lambda: newer_groups.alter_share_offsets("a", {P0: 0}),
    "delete_share_offsets": lambda: newer_groups.delete_share_offsets("a", ["a"]),
    "delete_records": lambda: partitions.delete_records({P0: 1, P1: 1}),
    "list_offsets": lambda: partitions.list_offsets({P0: -1, P1: -3}, IsolationLevel.READ_COMMITTED),
    "elect_leaders": lambda: partitions.elect_leaders(ElectionType.UNCLEAN, [P0]),
    "elect_all_leaders": lambda: partitions.elect_all_leaders(ElectionType.PREFERRED),
    "alter_reassignments": lambda: partitions.alter_reassignments({P0: [1], P1: None}, True),
    "list_reassignments": lambda: partitions.list_reassignments([P0]),
    "describe_client_quotas": lambda: quotas.describe_client_quotas({"user": "a"}, False),
    "alter_client_quotas": lambda: quotas.alter_client_quotas({ClientQuotaEntity.of(user="a"): {"k": 1.0}}, False),
    "create_topics": lambda: topics.create_topics({"a": NewTopic("a")}, False, True),
    "delete_topics": lambda: topics.delete_topics(["a", ID], True),
    "create_partitions": lambda: topics.create_partitions({"a": NewPartitions(2)}, False, True),
    "list_topics": topics.list_topics,
    "describe_by_metadata": lambda: topics.describe_by_metadata(["a", ID], True),
    "describe_page": lambda: topics.describe_page(["a"], None),
    "describe_producers": lambda: transactions.describe_producers([P0], None),
    "describe_transactions": lambda: transactions.describe_transactions(["a"]),
    "list_transactions": lambda: transactions.list_transactions([1], [], [], -1, None),
    "abort_transaction": lambda: transactions.abort_transaction(AbortTransactionSpec(P0, 1, 0, 0)),
    "fence_producers": lambda: transactions.fence_producers(["a", "topic-7"]),
}


class LyingBrokers:
    """Answer every request with a message of the right kind and any content."""

    def __init__(self, stage: AdminStage, seed: int, apis: set[ApiKey]) -> None:
        self._stage = stage
        self._chance = random.Random(seed)
        for key in apis:
            stage.network.brokers[key] = self.answerer(key)

    def answerer(self, key: ApiKey) -> Callable[[Node, Any], Said]:
        def answer(_node: Node, _request: Any) -> Said:
            version = self._stage.network.asked[-1].version
            style, seed = self._chance.choice(STYLES), self._chance.randrange(2**30)
            message = message_value(spec(key).response_class, version, style, seed)
            self._half_true(message)
            said: Said = message
            return said

        return answer

    def _half_true(self, message: Any) -> None:
        """Have most of it be without errors, and about what is asked for."""
        for name, value in vars(message).items():
            if isinstance(value, list):
                for each in value:
                    if isinstance(each, Message):
                        self._half_true(each)
            elif self._chance.random() < LIKELY:
                if name.endswith("error_code"):
                    setattr(message, name, 0)
                elif name in ("partition_index", "partition_id"):
                    setattr(message, name, self._chance.randrange(2))
                elif name == "resource_type":
                    setattr(message, name, int(TOPIC.type))
                elif isinstance(value, str):
                    setattr(message, name, self._chance.choice(("a", "a", "user")))


def run(name: str, seed: int, apis: set[ApiKey]) -> AdminCall[Any, Any]:
    stage = AdminStage()
    stage.leaders = {"a": [1, 2]}
    LyingBrokers(stage, seed, apis)
    return stage.run(OPERATIONS[name](), timeout_ms=3_000)


def settled_well(name: str, call: AdminCall[Any, Any]) -> bool:
    items = set(OPERATIONS[name]().items)
    ended = call.results.keys() | call.errors.keys()
    return ended == items and all(isinstance(error, KafkaError) for error in call.errors.values())


@pytest.mark.parametrize("name", OPERATIONS)
def test_lies_of_any_shape_become_results_or_errors(name: str, caplog: pytest.LogCaptureFixture) -> None:
    apis = {ApiKey(key) for key in VERSIONS} - set(NOT_MADE_UP)
    with caplog.at_level(logging.ERROR):
        for seed in range(SEEDS):
            assert settled_well(name, run(name, seed, apis)), seed
    assert [record.getMessage() for record in caplog.records] == []


@pytest.mark.parametrize("name", ["list_offsets", "delete_groups", "create_topics", "list_topics", "fence_producers"])
def test_lies_of_where_things_are_lead_nowhere_else(name: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        for seed in range(SEEDS):
            assert settled_well(name, run(name, seed, {ApiKey(key) for key in VERSIONS})), seed
    assert [record.getMessage() for record in caplog.records] == []


def test_lies_page_by_page_have_an_end() -> None:
    for seed in range(SEEDS):
        stage = AdminStage()
        LyingBrokers(stage, seed, {ApiKey.DESCRIBE_TOPIC_PARTITIONS})
        try:
            described = stage.area(TopicsArea).describe_topics(["a", "b", "foo"], timeout_ms=3_000)
        except KafkaError:
            continue
        assert described.keys() == {"a", "b", "foo"}
