"""Topics are created, grown, configured and deleted; the brokers and the tree agree."""

import json
from collections.abc import Sequence

import pytest

from kavka.cluster.controller.requests import ConfigEntity, ImportedTopic, NewPartitions, NewTopic, TopicResult
from kavka.cluster.entity_configs import read_config
from kavka.cluster.registry.base import (
    Check,
    Create,
    NodeExistsError,
    NotPermittedError,
    Operation,
    RegistryError,
    Result,
)
from kavka.cluster.topic_import import import_topics
from kavka.cluster.znodes.topic import PartitionState, TopicAssignment
from kavka.protocol.errors import BrokerError, ErrorCode
from tests.support.controller_stage import Stage, wait
from tests.support.fake_brokers import Known


def code(result: TopicResult) -> ErrorCode | None:
    return result.error.code if result.error else None


def test_a_created_topic_is_led_published_and_in_the_tree_when_it_is_answered(stage: Stage) -> None:
    broker = stage.brokers(1).brokers[1]
    controller = stage.controller()
    result = wait(controller.create_topics([NewTopic("t", 2, 1, configs={"retention.ms": "1000"})]))[0]
    assert (result.name, result.error, result.partitions, result.replication_factor) == ("t", None, 2, 1)
    assert broker.hosted == {("t", 0): Known(1, 0, (1,), 0), ("t", 1): Known(1, 0, (1,), 0)}
    assert broker.metadata == {("t", 0): 1, ("t", 1): 1}
    assert [type(request).__name__ for request in broker.requests[-2:]] == [
        "LeaderAndIsrRequest",
        "UpdateMetadataRequest",
    ]
    data, _ = stage.registry.get("/brokers/topics/t")
    assert TopicAssignment.decode("t", data) == TopicAssignment({0: (1,), 1: (1,)}, result.topic_id)
    assert stage.registry.get("/brokers/topics/t/partitions/1/state")[0] == (
        b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}'
    )
    assert read_config(stage.registry, "topics/t") == {"retention.ms": "1000"}


def test_counts_come_from_the_settings_when_none_are_given(stage: Stage) -> None:
    stage.brokers(1)
    result = wait(stage.controller().create_topics([NewTopic("t")]))[0]
    assert (result.partitions, result.replication_factor) == (2, 1)


@pytest.mark.parametrize(
    ("topic", "error", "text"),
    [
        (NewTopic("a b"), ErrorCode.INVALID_TOPIC_EXCEPTION, "only ASCII"),
        (NewTopic("there"), ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'there' already exists."),
        (NewTopic("is.there"), ErrorCode.INVALID_TOPIC_EXCEPTION, "collides with existing topics: is_there"),
        (NewTopic("t", 0, 1), ErrorCode.INVALID_PARTITIONS, "larger than 0"),
        (NewTopic("t", 10**9, 1), ErrorCode.INVALID_PARTITIONS, "more than"),
        (NewTopic("t", 1, 3), ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor: 3 larger than available"),
        (NewTopic("t", -1, -1, {0: [7]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "not alive: [7]"),
        (NewTopic("t", 1, 1, {0: [1]}), ErrorCode.INVALID_REQUEST, "not both"),
        (NewTopic("t", configs={"no.such": "1"}), ErrorCode.INVALID_CONFIG, "no.such"),
        (NewTopic("t", configs={"retention.ms": "soon"}), ErrorCode.INVALID_CONFIG, "retention.ms"),
        (NewTopic("t", configs={"retention.ms": None}), ErrorCode.INVALID_CONFIG, "Null value"),
    ],
)
def test_what_cannot_be_created_is_refused_without_a_trace(
    stage: Stage, topic: NewTopic, error: ErrorCode, text: str
) -> None:
    broker = stage.brokers(1).brokers[1]
    controller = stage.controller()
    wait(controller.create_topics([NewTopic("there"), NewTopic("is_there")]))
    before = len(broker.requests)
    results = wait(controller.create_topics([topic, NewTopic("good")]))
    assert code(results[0]) is error
    assert text in str(results[0].error)
    assert results[1].error is None
    assert stage.registry.children("/brokers/topics") == ["good", "is_there", "there"]
    assert len(broker.requests) == before + 2


def test_two_of_a_name_in_one_request_are_one_topic(stage: Stage) -> None:
    stage.brokers(1)
    results = wait(stage.controller().create_topics([NewTopic("t"), NewTopic("t")]))
    assert [code(each) for each in results] == [None, ErrorCode.TOPIC_ALREADY_EXISTS]


def test_two_names_of_one_metric_in_one_request_are_one_topic(stage: Stage) -> None:
    stage.brokers(1)
    results = wait(stage.controller().create_topics([NewTopic("a.b"), NewTopic("a_b"), NewTopic("c")]))
    assert [code(each) for each in results] == [None, ErrorCode.INVALID_TOPIC_EXCEPTION, None]
    assert "collides with existing topics: a.b" in str(results[1].error)
    assert stage.registry.children("/brokers/topics") == ["a.b", "c"]


def test_growths_that_cannot_be_are_refused_in_kafkas_words(stage: Stage) -> None:
    stage.brokers(1)
    controller = stage.controller()
    wait(controller.create_topics([NewTopic("t", 3)]))
    for growth, words in (
        (NewPartitions("t", 1), "Topic currently has 3 partitions, which is higher than the requested 1."),
        (NewPartitions("t", 3), "Topic already has 3 partitions."),
        (NewPartitions("t", 5, [[1]]), "Increasing the number of partitions by 2 but 1 assignments provided."),
    ):
        (error,) = wait(controller.create_partitions([growth])).values()
        assert error is not None
        assert error.message == words


def test_validation_alone_changes_nothing(stage: Stage) -> None:
    stage.brokers(1)
    controller = stage.controller()
    result = wait(controller.create_topics([NewTopic("t", 3)], validate_only=True))[0]
    assert (result.error, result.partitions) == (None, 3)
    assert stage.registry.children("/brokers/topics") == []


def test_a_partition_on_a_failed_disk_is_an_error_of_its_topic(stage: Stage) -> None:
    broker = stage.brokers(1).brokers[1]
    controller = stage.controller()
    broker.failing.add(("t", 1))
    results = wait(controller.create_topics([NewTopic("t", 2), NewTopic("fine", 1)]))
    assert [code(each) for each in results] == [ErrorCode.KAFKA_STORAGE_ERROR, None]
    assert "t-1" in str(results[0].error)
    assert broker.metadata == {("t", 0): 1, ("t", 1): -1, ("fine", 0): 1}
    assert controller.stats().offline_partitions == 1
    state = PartitionState.decode("t", 1, stage.registry.get(PartitionState.path("t", 1))[0], 0)
    assert (state.leader, state.isr) == (-1, (1,))


@pytest.mark.parametrize("refused", ["/config/topics/t", "/brokers/topics/t"])
def test_a_topic_is_made_with_its_configuration_or_not_at_all(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    stage.brokers(1)
    controller = stage.controller()
    pipeline = stage.registry.pipeline

    def refuse(operations: Sequence[Operation], guard: Check | None = None) -> list[Result | RegistryError]:
        is_refused = [isinstance(each, Create) and each.path == refused for each in operations]
        results = iter(pipeline([each for each, no in zip(operations, is_refused, strict=True) if not no], guard))
        return [NotPermittedError("no", refused) if no else next(results) for no in is_refused]

    monkeypatch.setattr(stage.registry, "pipeline", refuse)
    wanted = [NewTopic(name, 1, configs={"min.insync.replicas": "2"}) for name in ("t", "u")]
    first, second = wait(controller.create_topics(wanted))
    assert first.error is not None
    assert first.error.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert second.error is None
    assert stage.registry.children("/brokers/topics") == stage.registry.children("/config/topics") == ["u"]


def test_a_topic_grows_by_new_partitions_alone(stage: Stage) -> None:
    broker = stage.brokers(1).brokers[1]
    controller = stage.controller()
    topic_id = wait(controller.create_topics([NewTopic("t", 1)]))[0].topic_id
    assert wait(controller.create_partitions([NewPartitions("t", 3)])) == {"t": None}
    assert sorted(broker.hosted) == [("t", 0), ("t", 1), ("t", 2)]
    assignment = TopicAssignment.decode("t", stage.registry.get("/brokers/topics/t")[0])
    assert assignment == TopicAssignment({0: (1,), 1: (1,), 2: (1,)}, topic_id)


def test_growth_goes_on_with_the_round_that_partition_0_began(stage: Stage) -> None:
    """What Kafka's AdminUtils gives for these brokers, from the second on with its shift."""
    stage.brokers(1, 2, 3)
    controller = stage.controller()
    wait(controller.create_topics([NewTopic("t", assignments={0: [2, 3]})]))
    assert wait(controller.create_partitions([NewPartitions("t", 4)])) == {"t": None}
    assert stage.assignment().replicas == {0: (2, 3), 1: (3, 2), 2: (1, 3), 3: (2, 3)}


@pytest.mark.parametrize(
    ("growth", "error"),
    [
        (NewPartitions("t", 2), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions("t", 1), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions("t", -1), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions("absent", 5), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (NewPartitions("t", 4, [[1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("t", 3, [[9]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("t", 3, [[]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_impossible_growth_is_refused(stage: Stage, growth: NewPartitions, error: ErrorCode) -> None:
    broker = stage.brokers(1).brokers[1]
    controller = stage.controller()
    wait(controller.create_topics([NewTopic("t", 2)]))
    result = wait(controller.create_partitions([growth]))[growth.name]
    assert result is not None
    assert result.code is error
    assert len(broker.hosted) == 2


def test_a_deleted_topic_leaves_nothing_and_its_name_is_free(stage: Stage) -> None:
    broker = stage.brokers(1).brokers[1]
    controller = stage.controller()
    first = wait(controller.create_topics([NewTopic("t", 3, configs={"retention.ms": "5"})]))[0]
    results = wait(controller.delete_topics(["t", "absent"]))
    assert results["t"] is None
    assert results["absent"] is not None
    assert results["absent"].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (broker.hosted, broker.metadata) == ({}, {})
    assert sorted(broker.deleted) == [("t", 0), ("t", 1), ("t", 2)]
    for folder in ("/brokers/topics", "/config/topics", "/admin/delete_topics"):
        assert stage.registry.children(folder) == []
    again = wait(controller.create_topics([NewTopic("t", 1)]))[0]
    assert again.error is None
    assert again.topic_id != first.topic_id
    assert read_config(stage.registry, "topics/t") == {}


def test_deletion_can_be_forbidden(stage: Stage) -> None:
    stage.brokers(1)
    stage.settings.delete_topic_enable = False
    controller = stage.controller()
    wait(controller.create_topics([NewTopic("t")]))
    error = wait(controller.delete_topics(["t"]))["t"]
    assert error is not None
    assert error.code is ErrorCode.TOPIC_DELETION_DISABLED
    stage.registry.create("/admin/delete_topics/t")
    stage.settle(controller)
    assert stage.registry.children("/admin/delete_topics") == []
    assert stage.registry.children("/brokers/topics") == ["t"]


def test_a_replica_that_cannot_be_deleted_holds_the_name_until_its_broker_returns(stage: Stage) -> None:
    cluster = stage.brokers(1, 2)
    controller = stage.controller()
    wait(controller.create_topics([NewTopic("t", 1, 2)]))
    cluster.kill(2)
    stage.settle(controller)
    assert wait(controller.delete_topics(["t"]))["t"] is None
    assert cluster.brokers[1].metadata == {}
    assert code(wait(controller.create_topics([NewTopic("t")]))[0]) is ErrorCode.TOPIC_ALREADY_EXISTS
    assert stage.registry.children("/admin/delete_topics") == ["t"]
    cluster.add(2)
    stage.settle(controller)
    assert cluster.brokers[2].deleted == [("t", 0)]
    assert wait(controller.create_topics([NewTopic("t")]))[0].error is None


def test_a_deletion_begun_before_a_restart_is_finished_after_it(stage: Stage) -> None:
    stage.brokers(1).brokers[1].refusing_deletion = True
    controller = stage.controller()
    wait(controller.create_topics([NewTopic("t"), NewTopic("kept")]))
    wait(controller.delete_topics(["t"]))
    assert stage.registry.children("/admin/delete_topics") == ["t"]
    stage.restart()
    broker = stage.brokers(1).brokers[1]
    stage.controller()
    assert sorted(broker.deleted) == [("t", 0), ("t", 1)]
    assert stage.registry.children("/brokers/topics") == ["kept"]
    assert sorted(broker.hosted) == sorted(broker.metadata) == [("kept", 0), ("kept", 1)]


def test_topics_that_tools_write_into_the_tree_are_led(stage: Stage) -> None:
    broker = stage.brokers(1).brokers[1]
    controller = stage.controller()
    stage.registry.create("/brokers/topics/old", b'{"version":1,"partitions":{"0":[1]}}')
    stage.settle(controller)
    assert broker.metadata == {("old", 0): 1}
    assert "topic_id" in json.loads(stage.registry.get("/brokers/topics/old")[0])
    stage.registry.create("/admin/delete_topics/old")
    stage.settle(controller)
    assert (broker.metadata, stage.registry.children("/brokers/topics")) == ({}, [])


def test_a_topic_that_cannot_be_read_is_left_alone_and_harms_no_other(stage: Stage) -> None:
    broker = stage.brokers(1).brokers[1]
    stage.registry.create("/brokers/topics/bad", b"{broken")
    controller = stage.controller()
    assert code(wait(controller.create_topics([NewTopic("bad")]))[0]) is ErrorCode.TOPIC_ALREADY_EXISTS
    assert wait(controller.create_topics([NewTopic("good", 1)]))[0].error is None
    assert broker.metadata == {("good", 0): 1}
    assert stage.registry.get("/brokers/topics/bad")[0] == b"{broken"


def test_everything_is_led_again_after_a_restart_with_a_later_controller_epoch(stage: Stage) -> None:
    stage.brokers(1)
    controller = stage.controller()
    created = wait(controller.create_topics([NewTopic("t", 2)]))[0]
    stage.restart()
    broker = stage.brokers(1).brokers[1]
    stage.controller()
    assert broker.hosted == {("t", 0): Known(1, 0, (1,), 0), ("t", 1): Known(1, 0, (1,), 0)}
    assert stage.registry.get("/controller_epoch")[0] == b"2"
    assert TopicAssignment.decode("t", stage.registry.get("/brokers/topics/t")[0]).topic_id == created.topic_id


def test_imported_topics_keep_ids_epochs_and_configurations(stage: Stage) -> None:
    imported = ImportedTopic("adopted", 2, b"\x42" * 16, 7, {"retention.ms": "-1"})
    import_topics(stage.registry, 1, [imported])
    broker = stage.brokers(1).brokers[1]
    controller = stage.controller()
    assert broker.hosted == {("adopted", 0): Known(1, 7, (1,), 0), ("adopted", 1): Known(1, 7, (1,), 0)}
    assert read_config(stage.registry, "topics/adopted") == {"retention.ms": "-1"}
    assert TopicAssignment.decode("adopted", stage.registry.get("/brokers/topics/adopted")[0]).topic_id == b"\x42" * 16
    with pytest.raises(NodeExistsError):
        import_topics(stage.registry, 1, [imported._replace(name="other"), imported])
    assert stage.registry.children("/brokers/topics") == ["adopted"]
    assert controller.stats().partitions == 2


def test_configurations_are_replaced_validated_and_announced(stage: Stage) -> None:
    stage.brokers(1)
    controller = stage.controller()
    wait(controller.create_topics([NewTopic("t", configs={"retention.ms": "1"})]))
    topic = ConfigEntity.topic("t")
    wait(controller.alter_configs(topic, lambda stored: {**stored, "segment.bytes": "1048576"}))
    assert read_config(stage.registry, "topics/t") == {"retention.ms": "1", "segment.bytes": "1048576"}
    wait(controller.alter_configs(topic, {"retention.ms": "2"}, validate_only=True))
    wait(controller.alter_configs(ConfigEntity.broker(None), {"log.retention.ms": "5"}))
    assert stage.registry.get("/config/brokers/<default>")[0] == b'{"version":1,"config":{"log.retention.ms":"5"}}'
    names = stage.registry.children("/config/changes")
    notices = [json.loads(stage.registry.get(f"/config/changes/{name}")[0]) for name in names]
    assert len({each.pop("write") for each in notices}) == 2
    assert notices == [
        {"version": 2, "entity_path": "topics/t"},
        {"version": 2, "entity_path": "brokers/<default>"},
    ]
    for entity, config, error in (
        (topic, {"retention.ms": "soon"}, ErrorCode.INVALID_CONFIG),
        (ConfigEntity.topic("absent"), {}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ):
        with pytest.raises(BrokerError) as raised:
            wait(controller.alter_configs(entity, config))
        assert raised.value.code is error
