"""What only the controller answers: elections, reassignments, features. Asked of a real one over fake brokers."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka.broker.handlers import (
    alter_partition_reassignments,
    elect_leaders,
    list_partition_reassignments,
    update_features,
)
from kavka.broker.security.acl import Operation
from kavka.cluster.controller.controller import Controller
from kavka.cluster.controller.requests import NewTopic
from kavka.cluster.promise import Promise
from kavka.cluster.registry.embedded import FILE_NAME
from kavka.cluster.znodes.broker import FeatureRange
from kavka.cluster.znodes.feature import FEATURE_PATH, FeatureLevels
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kavka.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from kavka.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from kavka.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse
from tests.support.broker_handlers import Broker, Denying
from tests.support.controller_stage import Stage, wait

HANDLERS = (alter_partition_reassignments, elect_leaders, list_partition_reassignments, update_features)
NEITHER_ALTER_NOR_DESCRIBE = Denying((Operation.ALTER, "kafka-cluster"), (Operation.DESCRIBE, "kafka-cluster"))


class Settling:
    """A controller whose promises are settled before they are given, and that may be another broker's."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **named: Any) -> Promise[Any]:
            promise: Promise[Any] = getattr(self._controller, name)(*arguments, **named)
            settled = threading.Event()
            promise.watch(lambda *_: settled.set())
            assert settled.wait(60)
            return promise

        return call


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    opened = Stage(tmp_path / FILE_NAME)
    for broker_id in (1, 2, 3):
        opened.cluster.add(broker_id, (FeatureRange("a", 1, 3),))
    wait(opened.controller(1).create_topics([NewTopic("t", assignments={0: [1, 2], 1: [2, 1]})]))
    yield opened
    opened.close()


@pytest.fixture
def broker(stage: Stage) -> Broker:
    return asking(stage.controllers[0])


def asking(controller: Controller) -> Broker:
    broker = Broker()
    services: Any = broker.services
    services.controller = Settling(controller)
    return broker


def elections(response: ElectLeadersResponse) -> dict[tuple[str, int], int]:
    return {
        (topic.topic, each.partition_id): each.error_code
        for topic in response.replica_election_results
        for each in topic.partition_result
    }


def bounce(stage: Stage, broker_id: int) -> None:
    """The broker restarts and is in sync again, but leads no more."""
    controller = stage.controllers[0]
    stage.cluster.kill(broker_id)
    stage.settle(controller)
    stage.cluster.add(broker_id)
    stage.settle(controller)
    for partition in (0, 1):
        assert stage.alter_isr(controller, 1, 2, partition=partition) is ErrorCode.NONE


@pytest.mark.parametrize("version", range(3))
def test_preferred_leaders_are_elected_and_each_partition_has_its_outcome(
    stage: Stage, broker: Broker, version: int
) -> None:
    bounce(stage, 2)
    assert stage.state("t", 1).leader == 1
    named = [TopicPartitions(topic="t", partitions=[0, 1, 7]), TopicPartitions(topic="absent", partitions=[0])]
    response = broker.ask(ElectLeadersRequest(topic_partitions=named), version)
    assert response.error_code == ErrorCode.NONE
    assert elections(response) == {
        ("t", 0): ErrorCode.ELECTION_NOT_NEEDED,
        ("t", 1): ErrorCode.NONE,
        ("t", 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("absent", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert stage.state("t", 1).leader == 2


def test_of_all_partitions_only_those_with_an_election_are_mentioned(stage: Stage, broker: Broker) -> None:
    bounce(stage, 2)
    assert elections(broker.ask(ElectLeadersRequest(topic_partitions=None), 2)) == {("t", 1): ErrorCode.NONE}
    assert elections(broker.ask(ElectLeadersRequest(topic_partitions=None), 2)) == {}


def test_an_unclean_leader_is_elected_where_nobody_else_is_left(stage: Stage, broker: Broker) -> None:
    controller = stage.controllers[0]
    stage.alter_isr(controller, 2, partition=1)
    stage.cluster.kill(2)
    stage.settle(controller)
    request = ElectLeadersRequest(election_type=1, topic_partitions=[TopicPartitions(topic="t", partitions=[0, 1])])
    assert elections(broker.ask(request, 1)) == {
        ("t", 0): ErrorCode.ELECTION_NOT_NEEDED,
        ("t", 1): ErrorCode.NONE,
    }
    assert (stage.state("t", 1).leader, stage.state("t", 1).recovery) == (1, 1)
    unheard = ElectLeadersRequest(election_type=2, topic_partitions=[TopicPartitions(topic="t", partitions=[0])])
    assert broker.ask(unheard, 1).error_code == ErrorCode.INVALID_REQUEST


def test_elections_that_take_too_long_are_answered_in_time() -> None:
    broker = Broker()
    services: Any = broker.services
    services.controller.elect_leaders = lambda election, partitions: Promise()
    request = ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="t", partitions=[0])], timeout_ms=10)
    response = broker.ask(request, 1)
    assert (response.error_code, elections(response)) == (
        ErrorCode.REQUEST_TIMED_OUT,
        {("t", 0): ErrorCode.REQUEST_TIMED_OUT},
    )


def move(target: list[int] | None, **fields: Any) -> AlterPartitionReassignmentsRequest:
    partitions = [
        ReassignablePartition(partition_index=0, replicas=target),
        ReassignablePartition(partition_index=7, replicas=None),
    ]
    return AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="t", partitions=partitions)], **fields)


@pytest.mark.parametrize("version", [0, 1])
def test_a_reassignment_begins_is_listed_and_is_cancelled(stage: Stage, broker: Broker, version: int) -> None:
    response = broker.ask(move([3, 1]), version)
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
    [topic] = response.responses
    assert [(each.partition_index, each.error_code) for each in topic.partitions] == [
        (0, ErrorCode.NONE),
        (7, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
    ]
    assert topic.partitions[0].error_message is None
    [listed] = broker.ask(ListPartitionReassignmentsRequest(), 0).topics
    [partition] = listed.partitions
    assert (listed.name, partition.partition_index, partition.replicas) == ("t", 0, [3, 1, 2])
    assert (partition.adding_replicas, partition.removing_replicas) == ([3], [2])
    other = [ListPartitionReassignmentsTopics(name="t", partition_indexes=[1, 9])]
    assert broker.ask(ListPartitionReassignmentsRequest(topics=other), 0).topics == []
    broker.ask(move(None), version)
    assert broker.ask(ListPartitionReassignmentsRequest(), 0).topics == []
    assert stage.assignment().replicas[0] == (1, 2)


def test_the_replication_factor_may_be_asked_to_stay(stage: Stage, broker: Broker) -> None:
    [topic] = broker.ask(move([3], allow_replication_factor_change=False), 1).responses
    assert topic.partitions[0].error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert stage.assignment().replicas[0] == (1, 2)


def features(level: int, **fields: Any) -> UpdateFeaturesRequest:
    return UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey(feature="a", max_version_level=level, **fields)])


def agreed(stage: Stage) -> dict[str, int]:
    return FeatureLevels.decode(stage.registry.get(FEATURE_PATH)[0]).levels


def outcome(response: UpdateFeaturesResponse) -> list[int]:
    return [response.error_code, *(each.error_code for each in response.results)]


def test_the_flag_of_the_first_version_lets_a_level_go_down(stage: Stage, broker: Broker) -> None:
    assert outcome(broker.ask(features(2), 0)) == [ErrorCode.INVALID_UPDATE_VERSION]
    assert outcome(broker.ask(features(2, allow_downgrade=True), 0)) == [ErrorCode.NONE, ErrorCode.NONE]
    assert agreed(stage) == {"a": 2}


def test_levels_change_by_kinds_and_the_last_version_has_no_results(stage: Stage, broker: Broker) -> None:
    assert outcome(broker.ask(features(1, upgrade_type=2), 1)) == [ErrorCode.NONE, ErrorCode.NONE]
    assert outcome(broker.ask(features(1, upgrade_type=9), 1)) == [ErrorCode.INVALID_UPDATE_VERSION]
    refused = broker.ask(features(4), 2)
    assert (outcome(refused), "version 4" in refused.error_message) == ([ErrorCode.INVALID_UPDATE_VERSION], True)
    assert outcome(broker.ask(features(3), 2)) == [ErrorCode.NONE]
    assert outcome(broker.ask(features(0, upgrade_type=3), 2)) == [ErrorCode.NONE]
    assert agreed(stage) == {}
    twice = UpdateFeaturesRequest(feature_updates=features(1).feature_updates * 2)
    assert broker.ask(twice, 1).error_code == ErrorCode.INVALID_REQUEST


REQUESTS = [
    (ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="t", partitions=[0])]), 1),
    (move([3]), 0),
    (ListPartitionReassignmentsRequest(), 0),
    (features(1, upgrade_type=2), 1),
]


@pytest.mark.parametrize(("request_", "version"), REQUESTS, ids=["elect", "move", "list", "features"])
def test_only_the_controller_answers_and_only_those_who_may_ask(
    stage: Stage, broker: Broker, request_: Any, version: int
) -> None:
    before = stage.registry.get("/brokers/topics/t"), stage.registry.get(FEATURE_PATH)
    refused = broker.ask(request_, version, authorizer=NEITHER_ALTER_NOR_DESCRIBE)
    assert refused.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    elsewhere = asking(stage.controller(2)).ask(request_, version)
    assert elsewhere.error_code == ErrorCode.NOT_CONTROLLER
    assert (stage.registry.get("/brokers/topics/t"), stage.registry.get(FEATURE_PATH)) == before
    if isinstance(request_, ElectLeadersRequest):
        assert elections(elsewhere) == {("t", 0): ErrorCode.NOT_CONTROLLER}
