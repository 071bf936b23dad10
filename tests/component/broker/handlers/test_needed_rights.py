"""Which rights a request needs, where one of several is enough, and what is only probed."""

from typing import Any

import pytest

from kavka.broker.requests.handling import load_handlers
from kavka.broker.security.acl import CLUSTER, Operation, Resource, topic
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages import alter_configs, incremental_alter_configs
from kavka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kavka.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kavka.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kavka.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from kavka.protocol.messages.init_producer_id import InitProducerIdRequest
from kavka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kavka.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kavka.protocol.schema import ZERO_UUID
from tests.support.broker_handlers import BROKER_ID, Broker, Denying, topic_id_of

load_handlers()
TOPIC, BROKER = 2, 4
INTERNAL = "__consumer_offsets"


def creating(*names: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[
            CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[])
            for name in names
        ]
    )


def naming(*names: str, **more: Any) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names], **more)


def epoch_end(name: str) -> OffsetForLeaderEpochRequest:
    partitions = [OffsetForLeaderPartition(partition=0, leader_epoch=0)]
    return OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=name, partitions=partitions)])


@pytest.mark.parametrize(
    ("request_", "version", "denied", "refused"),
    [
        (creating("new"), 7, [(Operation.CREATE, CLUSTER.name)], []),
        (creating("new"), 7, [(Operation.CREATE, "*")], [(Operation.CREATE, topic("new"))]),
        (creating("new"), 7, [(Operation.DESCRIBE_CONFIGS, "*")], []),
        (naming("new"), 12, [(Operation.CREATE, CLUSTER.name)], []),
        (naming("new"), 12, [(Operation.CREATE, "*")], [(Operation.CREATE, topic("new"))]),
        (naming("visits"), 12, [(Operation.DESCRIBE, "*")], [(Operation.DESCRIBE, topic("visits"))]),
        (MetadataRequest(topics=None), 12, [(Operation.DESCRIBE, "*")], []),
        (DescribeTopicPartitionsRequest(topics=[]), 0, [(Operation.DESCRIBE, "*")], []),
        (epoch_end("visits"), 4, [(Operation.CLUSTER_ACTION, "*")], []),
        (
            epoch_end("visits"),
            4,
            [(Operation.CLUSTER_ACTION, "*"), (Operation.DESCRIBE, "*")],
            [(Operation.DESCRIBE, topic("visits"))],
        ),
        (
            InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1),
            5,
            [(Operation.IDEMPOTENT_WRITE, "*")],
            [],
        ),
        (naming("visits", include_topic_authorized_operations=True), 12, [(Operation.ALTER, "*")], []),
    ],
)
def test_only_what_was_asked_for_is_audited_when_it_is_refused(
    request_: Any, version: int, denied: list[tuple[Operation, str]], refused: list[tuple[Operation, Resource]]
) -> None:
    broker = Broker(visits=[BROKER_ID])
    broker.host("visits")
    authorizer = Denying(*denied)

    broker.ask(request_, version, authorizer=authorizer)

    assert authorizer.refused == refused


def test_a_denied_topic_does_not_show_as_internal() -> None:
    denying = Denying((Operation.DESCRIBE, INTERNAL), (Operation.CREATE, "*"))
    (hidden,) = Broker().ask(naming(INTERNAL), 12, authorizer=denying).topics
    (not_created,) = Broker().ask(naming(INTERNAL), 12, authorizer=Denying((Operation.CREATE, "*"))).topics
    codes = (hidden.error_code, not_created.error_code)
    assert codes == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert (hidden.is_internal, not_created.is_internal) == (False, True)


def test_who_may_not_create_is_not_told_whether_a_name_is_a_good_one() -> None:
    answer = Broker().ask(naming("no such name"), 12, authorizer=Denying((Operation.CREATE, "*")))
    assert answer.topics[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_nobody_creates_the_topic_of_another_kind_of_cluster() -> None:
    (result,) = Broker().ask(creating("__cluster_metadata"), 7).topics
    message = "Creation of internal topic __cluster_metadata is prohibited."
    assert (result.error_code, result.error_message) == (ErrorCode.INVALID_REQUEST, message)


def deleting(*topics: tuple[str | None, bytes]) -> DeleteTopicsRequest:
    states = [DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in topics]
    return DeleteTopicsRequest(topics=states, timeout_ms=1000)


def test_by_name_the_right_to_delete_is_enough() -> None:
    broker = Broker(visits=[BROKER_ID])
    (result,) = broker.ask(deleting(("visits", ZERO_UUID)), 6, authorizer=Denying((Operation.DESCRIBE, "*"))).responses
    assert (result.name, result.error_code) == ("visits", ErrorCode.NONE)


def test_by_id_a_topic_is_named_to_who_may_describe_it() -> None:
    broker = Broker(visits=[BROKER_ID])
    asked = deleting((None, topic_id_of("visits")), ("visits", ZERO_UUID))
    (named, _) = broker.ask(asked, 6, authorizer=Denying((Operation.DELETE, "*"))).responses
    (nameless, by_name) = broker.ask(asked, 6, authorizer=Denying((Operation.DESCRIBE, "*"))).responses
    assert (named.name, named.error_code) == ("visits", ErrorCode.INVALID_REQUEST)
    assert (nameless.name, nameless.error_code) == (None, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert (by_name.name, by_name.error_code) == ("visits", ErrorCode.NONE), "nor does the other answer tell"


def test_topics_that_are_refused_after_their_id_was_found_show_their_name() -> None:
    broker = Broker(visits=[BROKER_ID])
    denying = Denying((Operation.DELETE, "*"))
    (result,) = broker.ask(deleting((None, topic_id_of("visits"))), 6, authorizer=denying).responses
    assert (result.name, result.error_code) == ("visits", ErrorCode.TOPIC_AUTHORIZATION_FAILED)


@pytest.mark.parametrize("denied", [(), ((Operation.ALTER_CONFIGS, "*"),)])
@pytest.mark.parametrize(("kind", "name", "value"), [(BROKER, "77", "1"), (TOPIC, "visits", None), (3, "x", "y")])
def test_what_nobody_could_alter_is_a_wrong_request_whoever_asks(
    denied: tuple[tuple[Operation, str], ...], kind: int, name: str, value: str | None
) -> None:
    broker = Broker(visits=[BROKER_ID])
    settings = alter_configs.AlterableConfig(name="retention.ms", value=value)
    all_of_it = alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[settings])
    setting = incremental_alter_configs.AlterableConfig(name="retention.ms", config_operation=0, value=value)
    some_of_it = incremental_alter_configs.AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=[setting]
    )
    requests = [
        (alter_configs.AlterConfigsRequest(resources=[all_of_it], validate_only=True), 2),
        (incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[some_of_it], validate_only=True), 1),
    ]
    for request, version in requests:
        (result,) = broker.ask(request, version, authorizer=Denying(*denied)).responses
        assert result.error_code == ErrorCode.INVALID_REQUEST


def test_a_kind_without_configuration_has_the_whole_description_refused() -> None:
    resources = [
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
        for kind, name in ((TOPIC, "visits"), (3, "x"))
    ]
    answer = Broker(visits=[BROKER_ID]).ask(DescribeConfigsRequest(resources=resources), 4)
    assert {each.error_code for each in answer.results} == {ErrorCode.INVALID_REQUEST}
