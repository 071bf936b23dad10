"""ListGroups, DescribeGroups, DeleteGroups: every version, partial errors, authorisation."""

from typing import Any, cast

import pytest

from kavka.broker.handlers import delete_groups, describe_groups, list_groups
from kavka.broker.security.acl import Operation
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.delete_groups import DeleteGroupsRequest
from kavka.protocol.messages.describe_groups import DescribeGroupsRequest
from kavka.protocol.messages.list_groups import ListGroupsRequest
from tests.support.broker_handlers import Broker, Denying
from tests.support.offset_stage import FakeGroup
from tests.support.staged_groups import StagedGroups

HANDLERS = (delete_groups, describe_groups, list_groups)
NO_OPERATIONS = -(2**31)


@pytest.fixture
def broker() -> Broker:
    made = Broker()
    groups = StagedGroups()
    groups.stage.put_offsets({("events", 0): 1}, "offsets-only")
    groups.stage.shard.groups.put(FakeGroup("busy", refuse=ErrorCode.NON_EMPTY_GROUP))
    made.services.groups = groups
    return made


def groups_of(broker: Broker) -> StagedGroups:
    groups: StagedGroups = cast(Any, broker.services.groups)
    return groups


@pytest.mark.parametrize("version", range(6))
def test_groups_are_listed_in_every_version(broker: Broker, version: int) -> None:
    answer = broker.ask(ListGroupsRequest(), version)

    assert answer.error_code == 0
    assert [(each.group_id, each.protocol_type) for each in answer.groups] == [
        ("offsets-only", ""),
        ("busy", "consumer"),
    ]
    if version >= 4:
        assert [each.group_state for each in answer.groups] == ["Empty", "Stable"]
    if version >= 5:
        assert [each.group_type for each in answer.groups] == ["classic", "consumer"]


def test_filters_reach_the_shards(broker: Broker) -> None:
    by_state = broker.ask(ListGroupsRequest(states_filter=["stable"]), 4)
    by_type = broker.ask(ListGroupsRequest(types_filter=["classic"]), 5)

    assert [each.group_id for each in by_state.groups] == ["busy"]
    assert [each.group_id for each in by_type.groups] == ["offsets-only"]


@pytest.mark.parametrize(
    ("denied", "listed"),
    [
        ([(Operation.DESCRIBE, "kafka-cluster")], ["offsets-only", "busy"]),
        ([(Operation.DESCRIBE, "kafka-cluster"), (Operation.DESCRIBE, "busy")], ["offsets-only"]),
        ([(Operation.DESCRIBE, "busy")], ["offsets-only", "busy"]),
    ],
)
def test_the_cluster_or_each_group_must_be_describable(
    broker: Broker, denied: list[tuple[Operation, str]], listed: list[str]
) -> None:
    answer = broker.ask(ListGroupsRequest(), 4, authorizer=Denying(*denied))

    assert [each.group_id for each in answer.groups] == listed


@pytest.mark.parametrize(
    ("refusal", "code"),
    [
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.NONE),
    ],
)
def test_a_shard_that_loads_is_an_error_one_that_left_is_none(
    broker: Broker, refusal: ErrorCode, code: ErrorCode
) -> None:
    groups_of(broker).refuse = BrokerError(refusal)

    answer = broker.ask(ListGroupsRequest(), 4)

    assert (answer.error_code, answer.groups) == (code, [])


def test_a_broker_that_never_coordinated_anything_lists_nothing(broker: Broker) -> None:
    groups_of(broker).existing_runtime = None

    assert broker.ask(ListGroupsRequest(), 4).groups == []


@pytest.mark.parametrize("version", range(7))
def test_groups_are_described_in_every_version_in_the_order_asked(broker: Broker, version: int) -> None:
    asked = DescribeGroupsRequest(groups=["nobody", "offsets-only"])

    nobody, known = broker.ask(asked, version).groups

    assert (known.group_id, known.error_code, known.group_state, known.members) == ("offsets-only", 0, "Empty", [])
    assert (nobody.group_id, nobody.group_state) == ("nobody", "Dead")
    assert nobody.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.NONE)
    assert known.authorized_operations == NO_OPERATIONS


def test_authorized_operations_are_told_of_groups_without_an_error(broker: Broker) -> None:
    asked = DescribeGroupsRequest(groups=["nobody", "offsets-only"], include_authorized_operations=True)

    nobody, known = broker.ask(asked, 6, authorizer=Denying((Operation.DELETE, "offsets-only"))).groups

    allowed = (Operation.READ, Operation.DESCRIBE)
    assert known.authorized_operations == sum(1 << each for each in allowed)
    assert nobody.authorized_operations == NO_OPERATIONS


def test_groups_that_may_not_be_described_come_first_with_an_error(broker: Broker) -> None:
    asked = DescribeGroupsRequest(groups=["offsets-only", "busy"])

    described = broker.ask(asked, 5, authorizer=Denying((Operation.DESCRIBE, "busy"))).groups

    assert [(each.group_id, each.error_code) for each in described] == [
        ("busy", ErrorCode.GROUP_AUTHORIZATION_FAILED),
        ("offsets-only", ErrorCode.NONE),
    ]


def test_history_is_told_to_those_alone_who_ask_and_may_describe(broker: Broker) -> None:
    (plain,) = broker.ask(DescribeGroupsRequest(groups=["offsets-only"]), 6).groups
    assert (plain.history, plain.unknown_tagged_fields) == ([], ())

    asking = DescribeGroupsRequest(groups=["offsets-only"], include_history=True)
    (asked,) = broker.ask(asking, 6).groups
    assert [(each.new_state, each.reason) for each in asked.history] == [
        ("Empty", "made by a commit without a generation")
    ]
    asked.history = []
    assert asked == plain, "the rest is what Kafka's clients see"

    (hidden,) = broker.ask(asking, 6, authorizer=Denying((Operation.DESCRIBE, "offsets-only"))).groups
    assert (hidden.error_code, hidden.history) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, [])


def test_a_coordinators_refusal_is_told_group_by_group(broker: Broker) -> None:
    groups_of(broker).refuse = BrokerError(ErrorCode.NOT_COORDINATOR)

    described = broker.ask(DescribeGroupsRequest(groups=["a"]), 5).groups
    deleted = broker.ask(DeleteGroupsRequest(groups_names=["a"]), 2).results

    assert [(each.group_id, each.error_code) for each in described] == [("a", ErrorCode.NOT_COORDINATOR)]
    assert [(each.group_id, each.error_code) for each in deleted] == [("a", ErrorCode.NOT_COORDINATOR)]


@pytest.mark.parametrize("version", range(3))
def test_groups_are_deleted_one_by_one(broker: Broker, version: int) -> None:
    asked = DeleteGroupsRequest(groups_names=["busy", "offsets-only", "nobody", "offsets-only", "secret"])

    answer = broker.ask(asked, version, authorizer=Denying((Operation.DELETE, "secret")))

    assert [(each.group_id, each.error_code) for each in answer.results] == [
        ("busy", ErrorCode.NON_EMPTY_GROUP),
        ("offsets-only", ErrorCode.NONE),
        ("nobody", ErrorCode.GROUP_ID_NOT_FOUND),
        ("secret", ErrorCode.GROUP_AUTHORIZATION_FAILED),
    ]
    assert groups_of(broker).stage.list_groups() == ["busy"]


def test_nothing_asked_is_nothing_answered(broker: Broker) -> None:
    assert broker.ask(DescribeGroupsRequest(groups=[]), 5).groups == []
    assert broker.ask(DeleteGroupsRequest(groups_names=[]), 2).results == []
