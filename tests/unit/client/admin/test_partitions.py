"""Partitions: offsets, elections, moves; requests as brokers see them, answers as callers do."""

from typing import Any

import pytest

from kavka.client.admin import (
    ElectionType,
    IsolationLevel,
    ItemErrors,
    ListOffsetsResultInfo,
    OffsetSpec,
    PartitionReassignment,
    ReplicaInfo,
    ReplicaLogDirInfo,
    TopicPartition,
    TopicPartitionReplica,
)
from kavka.client.admin.areas.group_offsets import GroupOffsetsArea
from kavka.client.admin.areas.groups import GroupsArea
from kavka.client.admin.areas.partitions import PartitionsArea
from kavka.client.admin.areas.topics import TopicsArea
from kavka.client.api_errors import (
    DisconnectedError,
    ElectionNotNeededError,
    KafkaStorageError,
    NotControllerError,
    UnsupportedVersionError,
)
from kavka.client.node import Node
from kavka.protocol.api import ApiKey
from kavka.protocol.messages import (
    alter_partition_reassignments,
    alter_replica_log_dirs,
    describe_log_dirs,
    elect_leaders,
    list_offsets,
    list_partition_reassignments,
)
from tests.support.admin_stage import AdminStage, Said, in_turn, nodes_of

P0 = TopicPartition("t", 0)
P1 = TopicPartition("t", 1)


def offsets(node: Node, request: list_offsets.ListOffsetsRequest) -> Said:
    topics = [
        list_offsets.ListOffsetsTopicResponse(
            name=topic.name,
            partitions=[
                list_offsets.ListOffsetsPartitionResponse(
                    partition_index=row.partition_index,
                    error_code=0,
                    old_style_offsets=[],
                    timestamp=row.timestamp,
                    offset=node.id,
                )
                for row in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return list_offsets.ListOffsetsResponse(topics=topics)


def test_what_a_leader_does_not_know_of_offsets_fails_alone() -> None:
    stage = AdminStage()
    stage.leaders = {"t": [1, 2, 2]}
    stage.network.versions[2] = {ApiKey.LIST_OFFSETS: (0, 5)}
    stage.network.answer(list_offsets.ListOffsetsRequest, offsets)
    wanted = {P0: OffsetSpec.MAX_TIMESTAMP, P1: OffsetSpec.MAX_TIMESTAMP, TopicPartition("t", 2): 1234}

    with pytest.raises(ItemErrors) as failed:
        stage.area(PartitionsArea).list_offsets(wanted, isolation_level=IsolationLevel.READ_COMMITTED)

    assert isinstance(failed.value.errors[P1], UnsupportedVersionError)
    assert failed.value.results == {
        P0: ListOffsetsResultInfo(1, -3, -1),
        TopicPartition("t", 2): ListOffsetsResultInfo(2, 1234, -1),
    }
    assert {asked.request.isolation_level for asked in stage.network.requests(list_offsets.ListOffsetsRequest)} == {1}


def elected(*codes: int, code: int = 0) -> elect_leaders.ElectLeadersResponse:
    rows = [
        elect_leaders.PartitionResult(partition_id=index, error_code=each, error_message=None)
        for index, each in enumerate(codes)
    ]
    results = [elect_leaders.ReplicaElectionResult(topic="t", partition_result=rows)]
    return elect_leaders.ElectLeadersResponse(error_code=code, replica_election_results=results)


def test_elections_of_given_and_of_all_partitions() -> None:
    stage = AdminStage()
    area = stage.area(PartitionsArea)
    stage.network.answer(elect_leaders.ElectLeadersRequest, in_turn(elected(code=41), elected(0, 84)))

    with pytest.raises(ItemErrors) as failed:
        area.elect_leaders(ElectionType.UNCLEAN, [P0, P1])
    assert failed.value.results == {P0: None}
    assert isinstance(failed.value.errors[P1], ElectionNotNeededError)

    assert area.elect_leaders(ElectionType.PREFERRED) == {P0: None}
    last = stage.network.requests(elect_leaders.ElectLeadersRequest)[-1].request
    assert (last.election_type, last.topic_partitions) == (0, None)

    stage.network.answer(elect_leaders.ElectLeadersRequest, in_turn(DisconnectedError("gone"), elected(84)))
    assert area.elect_leaders(ElectionType.PREFERRED, [P0]) == {P0: None}, "it was done the first time"


def test_reassignments_begin_end_and_are_shown() -> None:
    stage = AdminStage()
    area = stage.area(PartitionsArea)
    rows = [
        alter_partition_reassignments.ReassignablePartitionResponse(
            partition_index=index, error_code=0, error_message=None
        )
        for index in (0, 1)
    ]
    response = alter_partition_reassignments.AlterPartitionReassignmentsResponse(
        error_code=0,
        error_message=None,
        responses=[alter_partition_reassignments.ReassignableTopicResponse(name="t", partitions=rows)],
    )
    stage.network.answer(alter_partition_reassignments.AlterPartitionReassignmentsRequest, in_turn(response))
    moving = list_partition_reassignments.OngoingPartitionReassignment(
        partition_index=0, replicas=[1, 2, 3], adding_replicas=[3], removing_replicas=[1]
    )
    listed = list_partition_reassignments.ListPartitionReassignmentsResponse(
        error_code=0,
        error_message=None,
        topics=[list_partition_reassignments.OngoingTopicReassignment(name="t", partitions=[moving])],
    )
    stage.network.answer(list_partition_reassignments.ListPartitionReassignmentsRequest, in_turn(listed))

    assert area.alter_partition_reassignments({P0: [2, 3], P1: None}) == {P0: None, P1: None}
    (asked,) = stage.network.requests(alter_partition_reassignments.AlterPartitionReassignmentsRequest)
    assert [row.replicas for row in asked.request.topics[0].partitions] == [[2, 3], None]
    assert area.list_partition_reassignments() == {P0: PartitionReassignment((1, 2, 3), (3,), (1,))}

    stage.network.versions[1] = {ApiKey.ALTER_PARTITION_REASSIGNMENTS: (0, 0)}
    with pytest.raises(ItemErrors):
        area.alter_partition_reassignments({P0: [1], P1: [1]}, allow_replication_factor_change=False)


def log_dirs(node: Node, request: describe_log_dirs.DescribeLogDirsRequest) -> Said:
    rows = [
        describe_log_dirs.DescribeLogDirsPartition(
            partition_index=0, partition_size=100, offset_lag=lag, is_future_key=bool(lag)
        )
        for lag in (0, 7)
    ]
    results = [
        describe_log_dirs.DescribeLogDirsResult(
            error_code=0,
            log_dir=path,
            topics=[describe_log_dirs.DescribeLogDirsTopic(name="t", partitions=[row])],
            total_bytes=9,
        )
        for path, row in zip(("/a", "/b"), rows, strict=True)
    ]
    broken = describe_log_dirs.DescribeLogDirsResult(error_code=56, log_dir="/broken", topics=[])
    return describe_log_dirs.DescribeLogDirsResponse(error_code=31 if node.id == 3 else 0, results=[*results, broken])


def test_log_directories_of_brokers_and_of_replicas() -> None:
    stage = AdminStage()
    stage.network.answer(describe_log_dirs.DescribeLogDirsRequest, log_dirs)
    area = stage.area(PartitionsArea)

    with pytest.raises(ItemErrors) as failed:
        area.describe_log_dirs()
    assert failed.value.errors.keys() == {3}
    dirs = failed.value.results[2]
    assert dirs["/a"].replicas == {P0: ReplicaInfo(100, 0, False)}
    assert (dirs["/a"].total_bytes, dirs["/a"].error) == (9, None)
    assert isinstance(dirs["/broken"].error, KafkaStorageError)

    here, nowhere = TopicPartitionReplica("t", 0, 1), TopicPartitionReplica("t", 5, 2)
    assert area.describe_replica_log_dirs([here, nowhere]) == {
        here: ReplicaLogDirInfo("/a", 0, "/b", 7),
        nowhere: ReplicaLogDirInfo(None, -1, None, -1),
    }
    asked = stage.network.requests(describe_log_dirs.DescribeLogDirsRequest)[-1].request
    assert [(topic.topic, topic.partitions) for topic in asked.topics] == [("t", [5])]


def test_replicas_are_moved_by_their_own_brokers() -> None:
    stage = AdminStage()

    def broker(_node: Node, request: alter_replica_log_dirs.AlterReplicaLogDirsRequest) -> Said:
        results = [
            alter_replica_log_dirs.AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=[
                    alter_replica_log_dirs.AlterReplicaLogDirPartitionResult(partition_index=index, error_code=0)
                    for index in topic.partitions
                ],
            )
            for each in request.dirs
            for topic in each.topics
        ]
        return alter_replica_log_dirs.AlterReplicaLogDirsResponse(results=results)

    stage.network.answer(alter_replica_log_dirs.AlterReplicaLogDirsRequest, broker)
    moves = {TopicPartitionReplica("t", index, 1 + index % 2): f"/d{index}" for index in range(3)}

    assert stage.area(PartitionsArea).alter_replica_log_dirs(moves) == dict.fromkeys(moves)
    asked = stage.network.requests(alter_replica_log_dirs.AlterReplicaLogDirsRequest)
    assert sorted(nodes_of(asked)) == [1, 2]


def test_a_negative_time_limit_is_refused_and_none_left_is_no_time() -> None:
    stage = AdminStage()
    stage.controller_id = -1
    with pytest.raises(ValueError, match="negative"):
        stage.area(PartitionsArea).list_partition_reassignments(timeout_ms=-1)
    with pytest.raises(TimeoutError):
        stage.area(PartitionsArea).list_partition_reassignments(timeout_ms=0)
    assert issubclass(NotControllerError, Exception)


def test_partitions_may_be_given_as_pairs() -> None:
    stage = AdminStage()
    stage.leaders = {"t": [1, 2]}
    stage.network.answer(list_offsets.ListOffsetsRequest, offsets)
    pair: Any = ("t", 1)

    assert stage.area(PartitionsArea).list_offsets({pair: OffsetSpec.LATEST})[P1].offset == 2


def test_one_item_in_place_of_several_is_refused() -> None:
    stage = AdminStage()
    with pytest.raises(TypeError, match=r"as in \['visits'\]"):
        stage.area(TopicsArea).delete_topics("visits")
    with pytest.raises(TypeError):
        stage.area(TopicsArea).delete_topics(bytes(16))  # type: ignore[arg-type]  # that is the mistake
    with pytest.raises(TypeError):
        stage.area(GroupsArea).delete_groups("group")
    with pytest.raises(TypeError):
        stage.area(GroupOffsetsArea).delete_group_offsets("g", P0)  # type: ignore[arg-type]  # that is the mistake
    assert stage.network.asked == []
