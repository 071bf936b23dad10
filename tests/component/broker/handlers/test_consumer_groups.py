"""ConsumerGroupHeartbeat and ConsumerGroupDescribe as clients see them, in every version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kavka.broker.handlers import consumer_group_describe, consumer_group_heartbeat  # noqa: F401 - register themselves
from kavka.broker.security.acl import Operation
from kavka.cluster.features import FinalizedFeatures
from kavka.coordinator.runtime.result import Result
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kavka.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.support.broker_handlers import Broker, Denying
from tests.support.consumer_stage import GROUP, ConsumerStage


class StagedConsumerGroups:
    """The group coordinator, with one shard on stage; `refuses` makes it refuse everything."""

    def __init__(self) -> None:
        self.stage = ConsumerStage()
        self.stage.topics.add("t", 2)
        self.refuses: ErrorCode | None = None

    def run(self, group_id: str, operation: Callable[[Any], Result], refused: Callable[[BrokerError], Any]) -> None:
        if self.refuses is not None:
            refused(BrokerError(self.refuses))
        else:
            self.stage.run(operation, refused)


@pytest.fixture
def groups() -> StagedConsumerGroups:
    return StagedConsumerGroups()


@pytest.fixture
def broker(groups: StagedConsumerGroups) -> Broker:
    broker = Broker()
    broker.services.groups = groups
    return broker


def join(**fields: Any) -> ConsumerGroupHeartbeatRequest:
    given = {"group_id": GROUP, "member_id": "a", "member_epoch": 0, "rebalance_timeout_ms": 1000}
    return ConsumerGroupHeartbeatRequest(**{**given, "subscribed_topic_names": ["t"], "topic_partitions": [], **fields})


def describe(*group_ids: str, **fields: Any) -> ConsumerGroupDescribeRequest:
    return ConsumerGroupDescribeRequest(
        **{"group_ids": list(group_ids), "include_authorized_operations": False, **fields}
    )


@pytest.mark.parametrize("version", [0, 1])
def test_a_member_joins_and_is_told_its_partitions(broker: Broker, version: int) -> None:
    answer = broker.ask(join(), version)
    assert (answer.error_code, answer.error_message, answer.member_id, answer.member_epoch) == (0, None, "a", 1)
    assert [each.partitions for each in answer.assignment.topic_partitions] == [[0, 1]]
    (member,) = broker.ask(describe(GROUP), version).groups[0].members
    assert member.client_host == "/10.0.0.9"
    assert member.member_type == (1 if version >= 1 else -1)


def test_a_refusal_has_code_and_words(broker: Broker) -> None:
    answer = broker.ask(join(rack_id=""), 1)
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, "RackId can't be empty.")
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms, answer.assignment) == (
        None,
        0,
        0,
        None,
    )


@pytest.mark.parametrize("code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])
def test_a_coordinator_that_is_elsewhere_or_loading(
    broker: Broker, groups: StagedConsumerGroups, code: ErrorCode
) -> None:
    groups.refuses = code
    assert broker.ask(join(), 1).error_code == code
    assert [each.error_code for each in broker.ask(describe("g", "h"), 1).groups] == [code, code]


@pytest.mark.parametrize(
    ("denied", "code"),
    [
        ((Operation.READ, GROUP), ErrorCode.GROUP_AUTHORIZATION_FAILED),
        ((Operation.DESCRIBE, "t"), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ],
)
def test_heartbeats_need_the_group_and_the_topics(
    broker: Broker, groups: StagedConsumerGroups, denied: tuple[Operation, str], code: ErrorCode
) -> None:
    assert broker.ask(join(), 1, authorizer=Denying(denied)).error_code == code
    assert groups.stage.log == []


def test_an_expression_brings_a_member_no_topic_that_it_may_not_describe(
    broker: Broker, groups: StagedConsumerGroups
) -> None:
    groups.stage.topics.add("secret", 2)
    no_secrets = Denying((Operation.DESCRIBE, "secret"))
    asked = join(subscribed_topic_names=[], subscribed_topic_regex=".*")
    broker.ask(asked, 1, authorizer=no_secrets)
    groups.stage.advance(1)
    answer = broker.ask(join(member_epoch=1, subscribed_topic_names=None), 1, authorizer=no_secrets)
    named = {groups.stage.topics.name_of(each.topic_id) for each in answer.assignment.topic_partitions}
    assert named == {"t"}
    assert no_secrets.refused == [], "what an expression would match is not asked for by name"


def test_descriptions_hide_groups_and_topics_that_are_not_the_clients(broker: Broker) -> None:
    broker.ask(join(), 1)
    no_secrets = Denying((Operation.DESCRIBE, "secret"))
    shown = broker.ask(describe(GROUP, "secret", "", "none"), 1, authorizer=no_secrets).groups
    codes = {each.group_id: ErrorCode(each.error_code) for each in shown}
    assert codes == {
        GROUP: ErrorCode.NONE,
        "secret": ErrorCode.GROUP_AUTHORIZATION_FAILED,
        "": ErrorCode.INVALID_GROUP_ID,
        "none": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    (hidden,) = broker.ask(describe(GROUP), 1, authorizer=Denying((Operation.DESCRIBE, "t"))).groups
    assert (hidden.error_code, hidden.members) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, [])


def test_operations_are_told_when_asked_for(broker: Broker) -> None:
    broker.ask(join(), 1)
    (plain,) = broker.ask(describe(GROUP), 1).groups
    (asked,) = broker.ask(describe(GROUP, include_authorized_operations=True), 1).groups
    assert plain.authorized_operations == -(2**31)
    assert asked.authorized_operations > 0


@pytest.mark.parametrize("version", [0, 1])
def test_history_is_told_to_those_alone_who_ask_and_may_describe(broker: Broker, version: int) -> None:
    broker.ask(join(), version)
    (plain,) = broker.ask(describe(GROUP), version).groups
    assert (plain.history, plain.unknown_tagged_fields) == ([], ())

    (asked,) = broker.ask(describe(GROUP, include_history=True), version).groups
    assert [each.reason for each in asked.history] == ["member a joined"]
    assert (asked.history[0].epoch, asked.history[0].member_count, asked.history[0].begins_rebalance) == (1, 1, True)
    asked.history = []
    assert asked == plain, "the rest is what Kafka's clients see"

    asking = describe(GROUP, include_history=True)
    for denied in (GROUP, "t"):
        (hidden,) = broker.ask(asking, version, authorizer=Denying((Operation.DESCRIBE, denied))).groups
        assert (bool(hidden.error_code), hidden.history) == (True, [])


def test_the_protocol_can_be_switched_off() -> None:
    broker = Broker(settings={"group.coordinator.rebalance.protocols": "classic"})
    assert broker.ask(join(), 1).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert broker.ask(describe("g"), 1).groups[0].error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("levels", [{}, {"group.version": 0, "transaction.version": 2}])
@pytest.mark.parametrize("request_", [join(), describe(GROUP)])
def test_nothing_is_served_before_the_cluster_has_agreed_on_it(
    broker: Broker, groups: StagedConsumerGroups, levels: dict[str, int], request_: Any
) -> None:
    broker.services.features = FinalizedFeatures(levels, 1)

    answer = broker.ask(request_, 0)

    code = answer.groups[0].error_code if hasattr(answer, "groups") else answer.error_code
    assert code == ErrorCode.UNSUPPORTED_VERSION
    assert groups.stage.log == []
