"""What is asked again when nobody knows whether it was done, what is not, and what the second answer means."""

import re
from pathlib import Path
from typing import Any

import pytest

from kavka.client.admin import (
    AbortTransactionSpec,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AlterConfigOp,
    AlterConfigOpType,
    ClientQuotaEntity,
    ConfigResource,
    ConfigResourceType,
    ElectionType,
    FeatureUpdate,
    ItemErrors,
    MemberToRemove,
    NewPartitions,
    NewTopic,
    OffsetAndMetadata,
    ResourceType,
    ScramMechanism,
    TopicPartition,
    TopicPartitionReplica,
    UserScramCredentialUpsertion,
)
from kavka.client.admin.areas.configs import ConfigsArea
from kavka.client.admin.areas.partitions import PartitionsArea
from kavka.client.admin.areas.security import SecurityArea
from kavka.client.admin.areas.topics import TopicsArea
from kavka.client.admin.operation import Operation
from kavka.client.admin.operations import (
    acls,
    cluster,
    configs,
    credentials,
    group_offsets,
    log_dirs,
    newer_groups,
    partitions,
    quotas,
    topics,
    transactions,
)
from kavka.client.api_errors import (
    AnswerTimeoutError,
    DisconnectedError,
    InvalidRequestError,
    KafkaError,
    KafkaTimeoutError,
    NotLeaderOrFollowerError,
    TopicExistsError,
)
from kavka.client.node import Node
from kavka.protocol.messages import (
    alter_partition_reassignments,
    delete_records,
    delete_topics,
    expire_delegation_token,
    incremental_alter_configs,
    renew_delegation_token,
)
from tests.support.admin_stage import AdminStage, Said, in_turn, nodes_of

P0 = TopicPartition("t", 0)
P1 = TopicPartition("t", 1)
TOPIC = ConfigResource.topic("t")
GONE = DisconnectedError("gone")

ASKED_AGAIN: list[Operation[Any, Any]] = [
    topics.delete_topics(["t", bytes(16)], True),
    partitions.delete_records({P0: 5}),
    partitions.elect_leaders(ElectionType.PREFERRED, [P0]),
    partitions.elect_all_leaders(ElectionType.UNCLEAN),
    partitions.alter_reassignments({P0: [1], P1: None}, True),
    log_dirs.alter_replica_log_dirs({TopicPartitionReplica("t", 0, 1): "/d"}),
    configs.incremental_alter_configs({TOPIC: [AlterConfigOp("l", "x", AlterConfigOpType.SUBTRACT)]}, False),
    configs.alter_configs({TOPIC: {"a": "1"}}, False),
    quotas.alter_client_quotas({ClientQuotaEntity.of(user="a"): {"request_percentage": 1.0}}, False),
    acls.create_acls([AclBinding(ResourceType.TOPIC, "t", "User:a", AclOperation.READ)]),
    credentials.alter_scram({"a": [UserScramCredentialUpsertion("a", ScramMechanism.SCRAM_SHA_256, "p")]}, {}),
    credentials.renew_token(b"h", -1),
    credentials.expire_token(b"h", -1),
    group_offsets.delete_groups(["g"]),
    group_offsets.remove_members("g", [MemberToRemove("static")], "enough"),
    group_offsets.alter_offsets("g", {P0: OffsetAndMetadata(1)}),
    group_offsets.delete_offsets("g", [P0]),
    newer_groups.alter_share_offsets("g", {P0: 1}),
    newer_groups.delete_share_offsets("g", ["t"]),
    transactions.fence_producers(["x"]),
    cluster.update_features({"f": FeatureUpdate(1)}, False),
    cluster.unregister_broker(1),
    cluster.add_raft_voter(1, bytes(16), [], None),
    cluster.remove_raft_voter(1, bytes(16), None),
]
"""Twice they are as once, or at worst done to what took its place meanwhile. Java's client asks again for all."""

ASKED_ONCE: list[Operation[Any, Any]] = [
    topics.create_topics({"t": NewTopic("t", 1, 1)}, False, True),
    topics.create_partitions({"t": NewPartitions(2)}, False, True),
    partitions.delete_records({P0: -1}),
    configs.incremental_alter_configs({TOPIC: [AlterConfigOp("l", "x", AlterConfigOpType.APPEND)]}, False),
    acls.delete_acls([AclBindingFilter()]),
    credentials.create_token([], None, -1),
    transactions.abort_transaction(AbortTransactionSpec(P0, 1, 0, 0)),
]
"""Twice is another thing than once, or the second answer would not say what the first request did."""
METHODS_ASKED_ONCE = {
    "abort_transaction",
    "create_delegation_token",
    "create_partitions",
    "create_topics",
    "delete_acls",
    "delete_records",
    "incremental_alter_configs",
}
"""Those of `Admin` that make them."""


@pytest.mark.parametrize("operation", ASKED_AGAIN, ids=lambda each: each.name)
def test_what_may_be_done_twice_says_so(operation: Operation[Any, Any]) -> None:
    assert [operation.repeatable(item) for item in operation.items] == [True] * len(operation.items)


@pytest.mark.parametrize("operation", ASKED_ONCE, ids=lambda each: each.name)
def test_what_must_not_be_done_twice_says_so(operation: Operation[Any, Any]) -> None:
    assert [operation.repeatable(item) for item in operation.items] == [False]


def test_the_page_lists_what_is_not_asked_again() -> None:
    page = (Path(__file__).resolve().parents[4] / "docs" / "client.md").read_text()
    table = page.split("| not asked again |")[1].split("\n\n")[0]
    first_column = "".join(row.split("|")[1] for row in table.splitlines() if row.startswith("| "))
    assert set(re.findall(r"`([a-z_]+)`", first_column)) == METHODS_ASKED_ONCE
    assert len(METHODS_ASKED_ONCE) == len(ASKED_ONCE)


def cut(node: Node, request: delete_records.DeleteRecordsRequest, code: int = 0) -> Said:
    rows = [
        delete_records.DeleteRecordsPartitionResult(
            partition_index=row.partition_index, low_watermark=node.id, error_code=code
        )
        for row in request.topics[0].partitions
    ]
    topic = delete_records.DeleteRecordsTopicResult(name="t", partitions=rows)
    return delete_records.DeleteRecordsResponse(topics=[topic])


@pytest.mark.parametrize("failure", [GONE, AnswerTimeoutError("late")])
def test_all_the_records_there_are_are_not_deleted_twice(failure: DisconnectedError) -> None:
    """Between the two requests more may have come, which nobody wanted to be deleted."""
    stage = AdminStage()
    stage.leaders = {"t": [1, 1]}
    request = delete_records.DeleteRecordsRequest

    def broker(node: Node, asked: delete_records.DeleteRecordsRequest) -> Said:
        return failure if len(stage.network.requests(request)) == 1 else cut(node, asked)

    stage.network.answer(request, broker)

    with pytest.raises(ItemErrors) as failed:
        stage.area(PartitionsArea).delete_records({P0: -1, P1: 7})

    assert failed.value.errors == {P0: failure}
    assert failed.value.results == {P1: 1}
    (again,) = stage.network.requests(request)[1:]
    assert [row.partition_index for row in again.request.topics[0].partitions] == [1]


def test_all_the_records_are_asked_of_the_next_leader_where_the_first_did_nothing() -> None:
    stage = AdminStage()
    stage.leaders = {"t": [1]}

    def broker(node: Node, asked: delete_records.DeleteRecordsRequest) -> Said:
        stage.leaders = {"t": [2]}
        return cut(node, asked, NotLeaderOrFollowerError.code if node.id == 1 else 0)

    stage.network.answer(delete_records.DeleteRecordsRequest, broker)
    assert stage.area(PartitionsArea).delete_records({P0: -1}) == {P0: 2}


def test_all_the_records_are_not_deleted_again_when_the_followers_were_slow() -> None:
    stage = AdminStage()
    stage.leaders = {"t": [1]}
    request = delete_records.DeleteRecordsRequest
    stage.network.answer(request, lambda node, asked: cut(node, asked, KafkaTimeoutError.code))

    with pytest.raises(KafkaTimeoutError):
        stage.area(PartitionsArea).delete_records({P0: -1})
    assert len(stage.network.requests(request)) == 1


@pytest.mark.parametrize("code", [62, 66])
def test_a_token_that_is_gone_when_it_is_expired_again_was_expired(code: int) -> None:
    stage = AdminStage()
    area = stage.area(SecurityArea)
    expired = expire_delegation_token.ExpireDelegationTokenResponse(error_code=code, expiry_timestamp_ms=0)
    stage.network.answer(expire_delegation_token.ExpireDelegationTokenRequest, in_turn(GONE, expired))
    assert area.expire_delegation_token(b"h") == -1

    stage.network.answer(expire_delegation_token.ExpireDelegationTokenRequest, in_turn(expired))
    with pytest.raises(KafkaError) as failed:
        area.expire_delegation_token(b"h")
    assert failed.value.code == code


def test_a_token_is_renewed_from_the_second_request_on() -> None:
    stage = AdminStage()
    renewed = renew_delegation_token.RenewDelegationTokenResponse(error_code=0, expiry_timestamp_ms=9)
    stage.network.answer(renew_delegation_token.RenewDelegationTokenRequest, in_turn(GONE, renewed))

    assert stage.area(SecurityArea).renew_delegation_token(b"h") == 9
    assert len(stage.network.requests(renew_delegation_token.RenewDelegationTokenRequest)) == 2


def test_a_move_that_was_called_off_the_first_time_is_called_off() -> None:
    stage = AdminStage()
    row = alter_partition_reassignments.ReassignablePartitionResponse(
        partition_index=0, error_code=85, error_message=None
    )
    topic = alter_partition_reassignments.ReassignableTopicResponse(name="t", partitions=[row])
    answer = alter_partition_reassignments.AlterPartitionReassignmentsResponse(
        error_code=0, error_message=None, responses=[topic]
    )
    stage.network.answer(alter_partition_reassignments.AlterPartitionReassignmentsRequest, in_turn(GONE, answer))

    assert stage.area(PartitionsArea).alter_partition_reassignments({P0: None}) == {P0: None}


def test_an_error_of_the_second_time_tells_of_the_first() -> None:
    """It may have been done then, and this be said for that reason."""
    stage = AdminStage()
    row = delete_topics.DeletableTopicResult(name="t", error_code=TopicExistsError.code)
    stage.network.answer(
        delete_topics.DeleteTopicsRequest, in_turn(GONE, delete_topics.DeleteTopicsResponse(responses=[row]))
    )

    with pytest.raises(TopicExistsError) as failed:
        stage.area(TopicsArea).delete_topics(["t"])
    assert failed.value.__cause__ is GONE


def test_what_is_appended_is_asked_once_and_what_is_set_again_in_one_call() -> None:
    stage = AdminStage()
    other = ConfigResource.topic("u")

    def broker(_node: Node, asked: incremental_alter_configs.IncrementalAlterConfigsRequest) -> Said:
        if len(stage.network.asked) == 1:
            return GONE
        rows = [
            incremental_alter_configs.AlterConfigsResourceResponse(
                error_code=0, error_message=None, resource_type=row.resource_type, resource_name=row.resource_name
            )
            for row in asked.resources
        ]
        return incremental_alter_configs.IncrementalAlterConfigsResponse(responses=rows)

    stage.network.answer(incremental_alter_configs.IncrementalAlterConfigsRequest, broker)
    changes = {TOPIC: [AlterConfigOp("l", "x", AlterConfigOpType.APPEND)], other: [AlterConfigOp("a", "1")]}

    with pytest.raises(ItemErrors) as failed:
        stage.area(ConfigsArea).incremental_alter_configs(changes)

    assert failed.value.errors == {TOPIC: GONE}
    assert failed.value.results == {other: None}


@pytest.mark.parametrize("kind", [ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER])
@pytest.mark.parametrize("name", ["abc", "1_0", "-1", "٣", " 1"])
def test_a_broker_whose_id_is_no_number_is_refused_before_anything_is_sent(kind: ConfigResourceType, name: str) -> None:
    stage = AdminStage()
    area = stage.area(ConfigsArea)
    resource = ConfigResource(kind, name)
    for ask in (
        lambda: area.describe_configs([ConfigResource.broker(1), resource]),
        lambda: area.incremental_alter_configs({resource: [AlterConfigOp("a", "1")]}),
        lambda: area.alter_configs({resource: {"a": "1"}}),
    ):
        with pytest.raises(ValueError, match="asked for by its id"):
            ask()
    assert stage.network.asked == []


def test_what_is_no_resource_or_topic_is_refused_before_anything_is_sent() -> None:
    stage = AdminStage()
    wrong: Any = "visits"
    with pytest.raises(TypeError, match="ConfigResource is expected, not 'visits'"):
        stage.area(ConfigsArea).describe_configs([wrong])
    with pytest.raises(TypeError, match="NewTopic is expected, not 'visits'"):
        stage.area(TopicsArea).create_topics([wrong])
    with pytest.raises(TypeError, match="several"):
        stage.area(TopicsArea).create_topics(NewTopic("visits"))  # type: ignore[arg-type]  # that is the mistake
    with pytest.raises(ValueError, match="asked for twice"):
        stage.area(TopicsArea).create_topics([NewTopic("visits", 1, 1), NewTopic("visits", 2, 1)])
    assert stage.network.asked == []


@pytest.mark.parametrize("offset", [2**63, -(2**63) - 1])
def test_what_no_request_can_say_is_the_callers_mistake_and_not_the_servers(offset: int) -> None:
    stage = AdminStage()
    stage.leaders = {"t": [1]}
    with pytest.raises(InvalidRequestError, match="deleting records: this cannot be asked for"):
        stage.area(PartitionsArea).delete_records({P0: offset})
    assert nodes_of(stage.network.requests(delete_records.DeleteRecordsRequest)) == []
