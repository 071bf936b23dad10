"""Configurations of groups, and which resources have one."""

from typing import Any

import pytest

from kavka.broker.handlers import alter_configs, describe_configs, incremental_alter_configs, list_config_resources
from kavka.broker.security.acl import Operation
from kavka.config.values import Source
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages import alter_configs as whole
from kavka.protocol.messages import incremental_alter_configs as single
from kavka.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kavka.protocol.messages.list_config_resources import ListConfigResourcesRequest
from tests.support.broker_handlers import BROKER_ID, Broker, Denying

HANDLERS = (alter_configs, describe_configs, incremental_alter_configs, list_config_resources)
TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND = range(3)
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


@pytest.fixture
def broker() -> Broker:
    return Broker({"group.consumer.heartbeat.interval.ms": "5500"}, visits=[BROKER_ID])


def described(broker: Broker, group: str, **more: Any) -> dict[str, Any]:
    resource = DescribeConfigsResource(resource_type=GROUP, resource_name=group, configuration_keys=None)
    (result,) = broker.ask(DescribeConfigsRequest(resources=[resource], **more), 4).results
    assert result.error_code == ErrorCode.NONE
    return {entry.name: entry for entry in result.configs}


def altered(
    broker: Broker, group: str, *changes: tuple[str, int, str | None], **more: Any
) -> tuple[ErrorCode, str | None]:
    configs = [single.AlterableConfig(name=name, config_operation=how, value=value) for name, how, value in changes]
    resource = single.AlterConfigsResource(resource_type=GROUP, resource_name=group, configs=configs)
    request = single.IncrementalAlterConfigsRequest(resources=[resource], validate_only=more.pop("dry", False))
    (response,) = broker.ask(request, 1, **more).responses
    return ErrorCode(response.error_code), response.error_message


def listed(broker: Broker, *types: int, **more: Any) -> list[tuple[int, str]]:
    answer = broker.ask(ListConfigResourcesRequest(resource_types=list(types)), 1, **more)
    assert answer.error_code == ErrorCode.NONE
    return [(each.resource_type, each.resource_name) for each in answer.config_resources]


def test_a_group_has_what_its_broker_gives_to_all_until_it_is_set(broker: Broker) -> None:
    shown = described(broker, "readers", include_synonyms=True, include_documentation=True)

    assert {name: (entry.value, entry.config_source) for name, entry in shown.items()} == {
        SESSION: ("45000", Source.DEFAULT),
        HEARTBEAT: ("5500", Source.STATIC_BROKER),
    }
    assert not any(entry.read_only or entry.is_sensitive for entry in shown.values())
    assert all(entry.documentation for entry in shown.values())

    assert altered(broker, "readers", (HEARTBEAT, SET, "7000")) == (ErrorCode.NONE, None)

    heartbeat = described(broker, "readers", include_synonyms=True)[HEARTBEAT]
    assert (heartbeat.value, heartbeat.config_source) == ("7000", Source.DYNAMIC_GROUP)
    assert [(each.name, each.value, each.source) for each in heartbeat.synonyms] == [
        (HEARTBEAT, "7000", Source.DYNAMIC_GROUP),
        ("group.consumer.heartbeat.interval.ms", "5500", Source.STATIC_BROKER),
        ("group.consumer.heartbeat.interval.ms", "5000", Source.DEFAULT),
    ]
    assert described(broker, "others")[HEARTBEAT].value == "5500"


def test_what_is_deleted_or_left_out_is_the_brokers_again(broker: Broker) -> None:
    altered(broker, "readers", (HEARTBEAT, SET, "7000"), (SESSION, SET, "50000"))
    altered(broker, "readers", (HEARTBEAT, DELETE, None))
    assert (described(broker, "readers")[HEARTBEAT].value, described(broker, "readers")[SESSION].value) == (
        "5500",
        "50000",
    )

    rows = [whole.AlterableConfig(name=HEARTBEAT, value="8000")]
    resource = whole.AlterConfigsResource(resource_type=GROUP, resource_name="readers", configs=rows)
    (response,) = broker.ask(whole.AlterConfigsRequest(resources=[resource], validate_only=False), 2).responses

    assert response.error_code == ErrorCode.NONE
    assert (described(broker, "readers")[HEARTBEAT].value, described(broker, "readers")[SESSION].value) == (
        "8000",
        "45000",
    )


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ((HEARTBEAT, SET, "1"), "INVALID_CONFIG", "greater than or equal to group.consumer.min.heartbeat.interval.ms"),
        ((HEARTBEAT, SET, "99999"), "INVALID_CONFIG", "less than or equal to group.consumer.max.heartbeat.interval.ms"),
        ((SESSION, SET, "1"), "INVALID_CONFIG", "greater than or equal to group.consumer.min.session.timeout.ms"),
        ((SESSION, SET, "99999"), "INVALID_CONFIG", "less than or equal to group.consumer.max.session.timeout.ms"),
        ((SESSION, SET, "0"), "INVALID_CONFIG", "at least 1"),
        ((SESSION, SET, "soon"), "INVALID_CONFIG", "Not a number of type INT"),
        (("share.session.timeout.ms", SET, "45000"), "INVALID_CONFIG", "Unknown group config name: share"),
        ((SESSION, APPEND, "1"), "INVALID_CONFIG", SESSION),
        ((SESSION, SET, None), "INVALID_REQUEST", "Null value"),
    ],
)
def test_wrong_settings_are_refused_in_kafkas_words(
    broker: Broker, change: tuple[str, int, str | None], code: str, message: str
) -> None:
    given, words = altered(broker, "readers", change)

    assert given == ErrorCode[code]
    assert message in (words or "")
    assert listed(broker, GROUP) == []


def test_a_session_must_outlast_a_heartbeat() -> None:
    broker = Broker(
        {"group.consumer.min.session.timeout.ms": "6000", "group.consumer.max.heartbeat.interval.ms": "20000"}
    )

    given, words = altered(broker, "readers", (SESSION, SET, "8000"), (HEARTBEAT, SET, "8000"))

    assert (given, words) == (ErrorCode.INVALID_CONFIG, f"{SESSION} must be greater than {HEARTBEAT}")


def test_a_group_without_a_name_has_no_configuration(broker: Broker) -> None:
    resource = DescribeConfigsResource(resource_type=GROUP, resource_name="", configuration_keys=None)
    (result,) = broker.ask(DescribeConfigsRequest(resources=[resource]), 4).results

    assert result.error_code == ErrorCode.INVALID_REQUEST
    assert altered(broker, "", (SESSION, SET, "50000"))[0] == ErrorCode.INVALID_REQUEST


def test_a_dry_run_changes_nothing(broker: Broker) -> None:
    assert altered(broker, "readers", (HEARTBEAT, SET, "7000"), dry=True)[0] == ErrorCode.NONE
    assert altered(broker, "readers", (HEARTBEAT, SET, "1"), dry=True)[0] == ErrorCode.INVALID_CONFIG
    assert described(broker, "readers")[HEARTBEAT].value == "5500"


@pytest.mark.parametrize("name", ["a/b", ".", "..", "<default>", "two words", "\u017elu\u0165", "x%2Fy", "~", "a\0b"])
def test_any_name_can_be_a_groups(broker: Broker, name: str) -> None:
    assert altered(broker, name, (HEARTBEAT, SET, "7000"))[0] == ErrorCode.NONE

    assert described(broker, name)[HEARTBEAT].value == "7000"
    assert listed(broker, GROUP) == [(GROUP, name)]
    (path,) = broker.controller.stored
    assert path.count("/") == 1
    assert path.isprintable()
    assert path not in ("groups/.", "groups/..")


def test_rights_on_the_group_are_needed(broker: Broker) -> None:
    no_changes = Denying((Operation.ALTER_CONFIGS, "readers"))
    assert altered(broker, "readers", (HEARTBEAT, SET, "7000"), authorizer=no_changes)[0] == (
        ErrorCode.GROUP_AUTHORIZATION_FAILED
    )
    resource = DescribeConfigsResource(resource_type=GROUP, resource_name="readers", configuration_keys=None)
    no_looks = Denying((Operation.DESCRIBE_CONFIGS, "readers"))
    (result,) = broker.ask(DescribeConfigsRequest(resources=[resource]), 4, authorizer=no_looks).results
    assert result.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_resources_that_can_have_a_configuration_are_listed(broker: Broker) -> None:
    altered(broker, "readers", (HEARTBEAT, SET, "7000"))
    own = str(BROKER_ID)

    assert listed(broker) == [(GROUP, "readers"), (LOGGER, own), (BROKER, own), (TOPIC, "visits")]
    assert listed(broker, TOPIC, GROUP) == [(GROUP, "readers"), (TOPIC, "visits")]
    assert listed(broker, CLIENT_METRICS) == []
    assert broker.ask(ListConfigResourcesRequest(), 0).config_resources == []


def test_other_types_and_those_who_may_not_look_are_refused(broker: Broker) -> None:
    unknown = broker.ask(ListConfigResourcesRequest(resource_types=[TOPIC, 99]), 1)
    denied = broker.ask(
        ListConfigResourcesRequest(), 0, authorizer=Denying((Operation.DESCRIBE_CONFIGS, "kafka-cluster"))
    )

    assert (unknown.error_code, unknown.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])
    assert (denied.error_code, denied.config_resources) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])
