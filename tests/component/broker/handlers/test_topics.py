"""CreateTopics, DeleteTopics, CreatePartitions: what reaches the controller, and what is answered."""

from typing import Any

import pytest

from kavka.broker.handlers import create_partitions, create_topics, delete_topics
from kavka.broker.metadata.metadata_cache import ZERO_TOPIC_ID
from kavka.broker.security.acl import Operation
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kavka.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kavka.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.support.broker_handlers import BROKER_ID, Broker, Denying, topic_id_of

HANDLERS = (create_partitions, create_topics, delete_topics)


def new(name: str, partitions: int = 2, replicas: int = 1, **configs: str | None) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[],
        configs=[CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()],
    )


def creating(*topics: CreatableTopic, **more: Any) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=list(topics), **{"timeout_ms": 1000, **more})


def codes(response: Any) -> dict[str, ErrorCode]:
    results = getattr(response, "topics", None) or getattr(response, "responses", None) or response.results
    return {each.name: ErrorCode(each.error_code) for each in results}


@pytest.mark.parametrize("version", range(8))
def test_a_topic_is_created_in_every_version(version: int) -> None:
    broker = Broker()

    (result,) = broker.ask(creating(new("visits", retention_ms="1000")), version).topics

    assert result.error_code == ErrorCode.NONE
    (made,) = broker.controller.created
    assert (made.partitions, made.replication_factor, made.configs) == (2, 1, {"retention.ms": "1000"})
    assert result.topic_id == (topic_id_of("visits") if version >= 7 else ZERO_TOPIC_ID)
    if version >= 5:
        shown = {config.name: (config.value, config.config_source) for config in result.configs}
        assert (result.num_partitions, result.replication_factor) == (2, 1)
        assert shown["retention.ms"] == ("1000", 1)
        assert shown["segment.bytes"] == ("1073741824", 5)
        assert list(shown) == sorted(shown)


def test_a_name_given_twice_is_refused_and_the_others_are_created() -> None:
    broker = Broker()

    response = broker.ask(creating(new("twice"), new("once"), new("twice")), 7)

    assert codes(response) == {"twice": ErrorCode.INVALID_REQUEST, "once": ErrorCode.NONE}
    assert [each.name for each in broker.controller.created] == ["once"]


def test_an_assignment_excludes_counts() -> None:
    assignment = [CreatableReplicaAssignment(partition_index=0, broker_ids=[BROKER_ID])]
    with_counts, without = new("both"), new("assigned", -1, -1)
    with_counts.assignments = without.assignments = assignment
    broker = Broker()

    assert codes(broker.ask(creating(with_counts, without), 7)) == {
        "both": ErrorCode.INVALID_REQUEST,
        "assigned": ErrorCode.NONE,
    }
    assert broker.controller.created[0].assignments == {0: [BROKER_ID]}


def test_a_partition_assigned_twice_is_refused() -> None:
    topic = new("visits", -1, -1)
    topic.assignments = [CreatableReplicaAssignment(partition_index=0, broker_ids=[BROKER_ID])] * 2

    assert codes(Broker().ask(creating(topic), 7)) == {"visits": ErrorCode.INVALID_REPLICA_ASSIGNMENT}


def test_a_null_configuration_is_refused() -> None:
    (result,) = Broker().ask(creating(new("visits", retention_ms=None)), 7).topics

    assert result.error_code == ErrorCode.INVALID_CONFIG
    assert "retention.ms" in result.error_message


def test_what_the_controller_refuses_is_answered_with_its_reason() -> None:
    broker = Broker()
    broker.controller.refuse["visits"] = BrokerError(ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'visits' already exists.")

    (result,) = broker.ask(creating(new("visits")), 7).topics

    assert (result.error_code, result.error_message) == (
        ErrorCode.TOPIC_ALREADY_EXISTS,
        "Topic 'visits' already exists.",
    )


def test_validation_alone_creates_nothing() -> None:
    broker = Broker()

    assert codes(broker.ask(creating(new("visits"), validate_only=True, timeout_ms=0), 7)) == {"visits": ErrorCode.NONE}
    assert broker.controller.created == []


def test_a_creation_that_outlasts_the_timeout_is_timed_out() -> None:
    broker = Broker()
    broker.controller.holding = True

    assert codes(broker.ask(creating(new("visits"), new("v", 1), new("v", 1)), 7)) == {
        "visits": ErrorCode.REQUEST_TIMED_OUT,
        "v": ErrorCode.INVALID_REQUEST,
    }


def test_a_timeout_of_zero_creates_and_says_timed_out_as_kafka_does() -> None:
    broker = Broker()

    assert codes(broker.ask(creating(new("visits"), timeout_ms=0), 7)) == {"visits": ErrorCode.REQUEST_TIMED_OUT}
    assert [each.name for each in broker.controller.created] == ["visits"]


def test_who_may_not_create_or_describe_is_told_so() -> None:
    broker = Broker()
    no_creation = Denying((Operation.CREATE, "kafka-cluster"), (Operation.CREATE, "secret"))
    no_configs = Denying((Operation.DESCRIBE_CONFIGS, "*"))

    denied = broker.ask(creating(new("secret"), new("visits")), 7, authorizer=no_creation)
    (hidden,) = broker.ask(creating(new("hidden")), 7, authorizer=no_configs).topics

    assert codes(denied) == {"secret": ErrorCode.TOPIC_AUTHORIZATION_FAILED, "visits": ErrorCode.NONE}
    assert hidden.topic_config_error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert not hidden.configs
    assert (hidden.num_partitions, hidden.replication_factor) == (-1, -1)


def deleting(*names: str, timeout_ms: int = 1000) -> DeleteTopicsRequest:
    """A request that names its topics for old versions and new ones."""
    return DeleteTopicsRequest(topic_names=list(names), timeout_ms=timeout_ms)


def deleting_states(*states: tuple[str | None, bytes]) -> DeleteTopicsRequest:
    topics = [DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in states]
    return DeleteTopicsRequest(topics=topics, timeout_ms=1000)


@pytest.mark.parametrize("version", range(6))
def test_topics_are_deleted_by_name(version: int) -> None:
    broker = Broker(visits=[BROKER_ID], clicks=[BROKER_ID])

    response = broker.ask(deleting("visits", "nowhere"), version)

    assert codes(response) == {"visits": ErrorCode.NONE, "nowhere": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert set(broker.metadata.current.topics) == {"clicks"}


def test_topics_are_deleted_by_id() -> None:
    broker = Broker(visits=[BROKER_ID], clicks=[BROKER_ID])
    unknown = b"\7" * 16

    response = broker.ask(deleting_states((None, topic_id_of("visits")), ("clicks", ZERO_TOPIC_ID), (None, unknown)), 6)

    assert {(each.name, each.topic_id, each.error_code) for each in response.responses} == {
        ("visits", topic_id_of("visits"), ErrorCode.NONE),
        ("clicks", topic_id_of("clicks"), ErrorCode.NONE),
        (None, unknown, ErrorCode.UNKNOWN_TOPIC_ID),
    }
    assert broker.metadata.current.topics == {}


def test_name_and_id_together_are_an_invalid_request() -> None:
    broker = Broker(visits=[BROKER_ID])

    assert codes(broker.ask(deleting_states(("visits", topic_id_of("visits"))), 6)) == {
        "visits": ErrorCode.INVALID_REQUEST
    }
    assert "visits" in broker.metadata.current.topics


def test_the_same_topic_by_name_and_by_id_is_not_deleted() -> None:
    broker = Broker(visits=[BROKER_ID])

    response = broker.ask(deleting_states(("visits", ZERO_TOPIC_ID), (None, topic_id_of("visits"))), 6)

    assert [each.error_code for each in response.responses] == [ErrorCode.INVALID_REQUEST] * 2
    assert "visits" in broker.metadata.current.topics


@pytest.mark.parametrize(("version", "error"), [(2, ErrorCode.INVALID_REQUEST), (5, ErrorCode.TOPIC_DELETION_DISABLED)])
def test_nothing_is_deleted_where_deletion_is_disabled(version: int, error: ErrorCode) -> None:
    broker = Broker({"delete.topic.enable": "false"}, visits=[BROKER_ID])

    assert codes(broker.ask(deleting("visits"), version)) == {"visits": error}
    assert "visits" in broker.metadata.current.topics


def test_a_deletion_that_outlasts_the_timeout_is_timed_out() -> None:
    broker = Broker(visits=[BROKER_ID])
    broker.controller.holding = True

    assert codes(broker.ask(deleting("visits"), 5)) == {"visits": ErrorCode.REQUEST_TIMED_OUT}


def test_another_broker_than_the_controller_does_not_delete() -> None:
    broker = Broker(visits=[BROKER_ID])
    broker.controller.is_active = False

    assert codes(broker.ask(deleting("visits"), 5)) == {"visits": ErrorCode.NOT_CONTROLLER}


def test_who_may_not_delete_is_told_so() -> None:
    broker = Broker(visits=[BROKER_ID], secret=[BROKER_ID])
    forbids = Denying((Operation.DELETE, "visits"), (Operation.DESCRIBE, "secret"))

    response = broker.ask(
        deleting_states(("visits", ZERO_TOPIC_ID), (None, topic_id_of("secret"))), 6, authorizer=forbids
    )

    assert [(each.name, each.error_code) for each in response.responses] == [
        ("visits", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (None, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ]


def growing(name: str, count: int, *assigned: int, **more: Any) -> CreatePartitionsRequest:
    assignments = [CreatePartitionsAssignment(broker_ids=[broker]) for broker in assigned] or None
    topic = CreatePartitionsTopic(name=name, count=count, assignments=assignments)
    return CreatePartitionsRequest(topics=[topic], **{"timeout_ms": 1000, "validate_only": False, **more})


@pytest.mark.parametrize("version", range(4))
def test_topics_grow(version: int) -> None:
    broker = Broker(visits=[BROKER_ID])

    assert codes(broker.ask(growing("visits", 3, 1, 1), version)) == {"visits": ErrorCode.NONE}
    (growth,) = broker.controller.grown
    assert (growth.name, growth.total_count, growth.assignments) == ("visits", 3, [[1], [1]])


def test_a_topic_that_is_to_grow_twice_does_not() -> None:
    broker = Broker(visits=[BROKER_ID])
    twice = growing("visits", 3)
    twice.topics *= 2

    assert codes(broker.ask(twice, 3)) == {"visits": ErrorCode.INVALID_REQUEST}
    assert broker.controller.grown == []


def test_growth_refused_late_or_forbidden_is_said() -> None:
    broker = Broker(visits=[BROKER_ID])
    broker.controller.refuse["small"] = BrokerError(ErrorCode.INVALID_PARTITIONS)

    assert codes(broker.ask(growing("small", 1), 3)) == {"small": ErrorCode.INVALID_PARTITIONS}
    assert codes(broker.ask(growing("visits", 2, timeout_ms=0), 3)) == {"visits": ErrorCode.REQUEST_TIMED_OUT}
    forbidden = broker.ask(growing("visits", 2), 3, authorizer=Denying((Operation.ALTER, "visits")))
    assert codes(forbidden) == {"visits": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    broker.controller.holding = True
    assert codes(broker.ask(growing("visits", 2), 3)) == {"visits": ErrorCode.REQUEST_TIMED_OUT}
