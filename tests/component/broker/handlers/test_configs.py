"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs: what is shown, stored, refused, and takes effect."""

from typing import Any

import pytest

from kavka.broker.handlers import alter_configs, describe_configs, incremental_alter_configs
from kavka.broker.security.acl import Operation
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages import alter_configs as whole
from kavka.protocol.messages import incremental_alter_configs as single
from kavka.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tests.support.broker_handlers import BROKER_ID, Broker, Denying
from tests.support.changing_parts import NotingParts

HANDLERS = (alter_configs, describe_configs, incremental_alter_configs)
TOPIC, BROKER, LOGGER = 2, 4, 8
SET, DELETE, APPEND, SUBTRACT = range(4)
OWN = str(BROKER_ID)


@pytest.fixture
def broker() -> Broker:
    return Broker({"log.retention.hours": "24", "log.index.interval.bytes": "8192"}, visits=[BROKER_ID])


def describing(kind: int, name: str, *keys: str, **more: bool) -> DescribeConfigsRequest:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=list(keys) or None)
    return DescribeConfigsRequest(resources=[resource], **more)


def described(broker: Broker, kind: int, name: str, *keys: str, version: int = 4, **more: bool) -> dict[str, Any]:
    (result,) = broker.ask(describing(kind, name, *keys, **more), version).results
    assert result.error_code == ErrorCode.NONE
    return {entry.name: entry for entry in result.configs}


def incremental(kind: int, name: str, *changes: tuple[str, int, str | None], **more: bool) -> Any:
    settings = [
        single.AlterableConfig(name=key, config_operation=operation, value=value) for key, operation, value in changes
    ]
    resource = single.AlterConfigsResource(resource_type=kind, resource_name=name, configs=settings)
    return single.IncrementalAlterConfigsRequest(resources=[resource], **{"validate_only": False, **more})


def replacing(kind: int, name: str, validate_only: bool = False, **settings: str | None) -> Any:
    configs = [whole.AlterableConfig(name=key.replace("_", "."), value=value) for key, value in settings.items()]
    resource = whole.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    return whole.AlterConfigsRequest(resources=[resource], validate_only=validate_only)


def code(broker: Broker, request: Any, version: int = 1, **more: Any) -> ErrorCode:
    (response,) = broker.ask(request, version, **more).responses
    return ErrorCode(response.error_code)


@pytest.mark.parametrize("version", range(5))
def test_every_setting_of_a_topic_is_shown_with_its_source(broker: Broker, version: int) -> None:
    broker.config.topic_changed("visits", {"segment.bytes": "2048"})

    shown = described(broker, TOPIC, "visits", version=version, include_synonyms=version >= 1)

    assert len(shown) > 25
    assert [shown[name].value for name in ("segment.bytes", "index.interval.bytes")] == ["2048", "8192"]
    if version == 0:
        assert (shown["segment.bytes"].is_default, shown["flush.ms"].is_default) == (False, True)
    else:
        assert [shown[name].config_source for name in ("segment.bytes", "index.interval.bytes")] == [1, 4]
        assert [(each.name, each.value, each.source) for each in shown["segment.bytes"].synonyms] == [
            ("segment.bytes", "2048", 1),
            ("log.segment.bytes", "1073741824", 5),
        ]


def test_synonyms_and_documentation_come_when_asked_for(broker: Broker) -> None:
    key = "retention.bytes"
    silent = described(broker, TOPIC, "visits", key)[key]
    full = described(broker, TOPIC, "visits", key, include_synonyms=True, include_documentation=True)[key]

    assert (silent.synonyms, silent.documentation) == ([], None)
    assert [synonym.name for synonym in full.synonyms] == ["log.retention.bytes"]
    assert full.documentation
    assert full.config_type == 5


def test_only_the_keys_asked_for_are_shown(broker: Broker) -> None:
    assert set(described(broker, TOPIC, "visits", "retention.ms", "no.such.key")) == {"retention.ms"}


def test_a_brokers_settings_say_which_are_read_only(broker: Broker) -> None:
    shown = described(broker, BROKER, OWN)

    assert shown["log.dirs"].read_only
    assert not shown["num.io.threads"].read_only
    assert (shown["log.retention.hours"].value, shown["log.retention.hours"].config_source) == ("24", 4)


def test_the_clusters_defaults_are_shown_alone(broker: Broker) -> None:
    broker.config.broker_changed(None, {"log.retention.ms": "5000"})

    shown = described(broker, BROKER, "")

    assert {name: (entry.value, entry.config_source) for name, entry in shown.items()} == {
        "log.retention.ms": ("5000", 3)
    }


@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [
        (TOPIC, "nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "not a name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "77", ErrorCode.INVALID_REQUEST),
        (BROKER, "one", ErrorCode.INVALID_REQUEST),
        (LOGGER, "", ErrorCode.INVALID_REQUEST),
        (16, "metrics", ErrorCode.INVALID_REQUEST),
    ],
)
def test_resources_that_cannot_be_described_are_refused(broker: Broker, kind: int, name: str, error: ErrorCode) -> None:
    (result,) = broker.ask(describing(kind, name), 4).results

    assert (result.error_code, result.configs) == (error, [])
    assert result.error_message


def test_who_may_not_see_or_alter_is_told_so(broker: Broker) -> None:
    seeing, altering = Denying((Operation.DESCRIBE_CONFIGS, "*")), Denying((Operation.ALTER_CONFIGS, "*"))

    for kind, name, error in (
        (TOPIC, "visits", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (BROKER, OWN, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ):
        (result,) = broker.ask(describing(kind, name), 4, authorizer=seeing).results
        assert result.error_code == error
        assert code(broker, incremental(kind, name), authorizer=altering) == error
        assert code(broker, replacing(kind, name), authorizer=altering) == error
    assert broker.controller.stored == {}


def test_single_settings_of_a_topic_are_set_and_deleted(broker: Broker) -> None:
    assert code(broker, incremental(TOPIC, "visits", ("retention.ms", SET, "9"), ("segment.bytes", SET, "2048"))) == 0
    assert broker.config.topic_config("visits").retention_ms == 9

    assert code(broker, incremental(TOPIC, "visits", ("retention.ms", DELETE, None))) == ErrorCode.NONE

    assert broker.controller.stored["topics/visits"] == {"segment.bytes": "2048"}
    assert broker.config.topic_config("visits").retention_ms == 86_400_000


def test_replacing_forgets_what_is_not_named(broker: Broker) -> None:
    code(broker, incremental(TOPIC, "visits", ("retention.ms", SET, "9")))

    assert code(broker, replacing(TOPIC, "visits", segment_bytes="2048"), 2) == ErrorCode.NONE

    assert broker.controller.stored["topics/visits"] == {"segment.bytes": "2048"}


def test_lists_are_appended_to_and_subtracted_from(broker: Broker) -> None:
    def policy() -> str:
        return broker.controller.stored["topics/visits"]["cleanup.policy"]

    assert code(broker, incremental(TOPIC, "visits", ("cleanup.policy", APPEND, "compact,delete"))) == ErrorCode.NONE
    assert policy() == "delete,compact"
    assert code(broker, incremental(TOPIC, "visits", ("cleanup.policy", SUBTRACT, "delete"))) == ErrorCode.NONE
    assert policy() == "compact"


def test_appending_to_what_is_no_list_is_refused(broker: Broker) -> None:
    for operation in (APPEND, SUBTRACT):
        changed = incremental(TOPIC, "visits", ("retention.ms", operation, "9"))
        assert code(broker, changed) == ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ([("retention.ms", SET, "soon")], ErrorCode.INVALID_CONFIG),
        ([("no.such.key", SET, "1")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", SET, "1"), ("retention.ms", DELETE, None)], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", 9, "1")], ErrorCode.INVALID_REQUEST),
    ],
)
def test_wrong_changes_of_a_topic_change_nothing(
    broker: Broker, changes: list[tuple[str, int, str | None]], error: ErrorCode
) -> None:
    assert code(broker, incremental(TOPIC, "visits", ("segment.bytes", SET, "2048"), *changes)) == error
    assert broker.controller.stored == {}


def test_a_wrong_value_of_a_topic_is_refused_in_kafkas_words(broker: Broker) -> None:
    (refused,) = broker.ask(incremental(TOPIC, "visits", ("compression.type", SET, "zip")), 1).responses

    words = "Invalid config value for resource ConfigResource(type=TOPIC, name='visits'): Invalid value zip for "
    assert refused.error_message.startswith(f"{words}configuration compression.type: String must be one of: ")


def test_unknown_topics_and_other_brokers_are_not_altered(broker: Broker) -> None:
    for kind, name, error in (
        (TOPIC, "nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "", ErrorCode.INVALID_REQUEST),
        (BROKER, "77", ErrorCode.INVALID_REQUEST),
        (16, "metrics", ErrorCode.INVALID_REQUEST),
    ):
        assert code(broker, incremental(kind, name, ("retention.ms", SET, "1"))) == error
        assert code(broker, replacing(kind, name, retention_ms="1")) == error


def test_dynamic_broker_settings_take_effect_at_once_by_precedence(broker: Broker) -> None:
    parts = NotingParts()
    broker.config.follow(parts)

    assert code(broker, incremental(BROKER, "", ("log.retention.ms", SET, "5000"))) == ErrorCode.NONE
    assert broker.config.current.log_retention_ms == 5000
    assert code(broker, incremental(BROKER, OWN, ("log.retention.ms", SET, "7000"))) == ErrorCode.NONE
    assert broker.config.current.log_retention_ms == 7000
    assert broker.config.topic_config("visits").retention_ms == 7000
    assert code(broker, replacing(BROKER, OWN)) == ErrorCode.NONE
    assert broker.config.current.log_retention_ms == 5000

    assert [names for _, _, names in parts.told] == [{"log.retention.ms"}] * 3


@pytest.mark.parametrize(
    ("name", "change"),
    [
        (OWN, ("log.dirs", SET, "/elsewhere")),
        (OWN, ("num.io.threads", SET, "many")),
        (OWN, ("num.io.threads", SET, "99")),
        ("", ("sasl.enabled.mechanisms", SET, "PLAIN")),
        (OWN, ("listener.name.plaintext.ssl.keystore.password", SET, "secret")),
    ],
    ids=["read-only", "no number", "more than double", "per broker only", "password"],
)
def test_broker_settings_that_cannot_be_changed_so_are_refused(
    broker: Broker, name: str, change: tuple[str, int, str | None]
) -> None:
    before = broker.config.current

    assert code(broker, incremental(BROKER, name, change)) == ErrorCode.INVALID_REQUEST

    assert broker.controller.stored == {}
    assert broker.config.current is before


@pytest.mark.parametrize(
    ("name", "text", "default", "reason"),
    [
        ("log.preallocate", "true", "false", "without preallocation"),
        ("listener.name.plaintext.num.network.threads", "2", None, "serve all listeners together"),
    ],
)
def test_changes_that_would_have_no_effect_are_refused_with_the_reason(
    broker: Broker, name: str, text: str, default: str | None, reason: str
) -> None:
    (refused,) = broker.ask(incremental(BROKER, OWN, (name, SET, text)), 1).responses

    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert name in refused.error_message
    assert reason in refused.error_message
    assert broker.controller.stored == {}
    if default is not None:
        assert code(broker, incremental(BROKER, OWN, (name, SET, default))) == ErrorCode.NONE


def test_what_paces_logins_by_kerberos_may_be_changed(broker: Broker) -> None:
    name = "sasl.kerberos.min.time.before.relogin"

    assert code(broker, incremental(BROKER, OWN, (name, SET, "58000"))) == ErrorCode.NONE
    assert broker.controller.stored["brokers/1"] == {name: "58000"}
    assert code(broker, incremental(BROKER, OWN, (name, SET, "soon"))) == ErrorCode.INVALID_REQUEST


def test_validation_alone_stores_nothing_but_finds_faults(broker: Broker) -> None:
    right = incremental(TOPIC, "visits", ("retention.ms", SET, "1"), validate_only=True)
    wrong = incremental(TOPIC, "visits", ("retention.ms", SET, "soon"), validate_only=True)

    assert [code(broker, right), code(broker, wrong)] == [ErrorCode.NONE, ErrorCode.INVALID_CONFIG]
    assert code(broker, replacing(BROKER, OWN, validate_only=True, num_io_threads="4")) == ErrorCode.NONE
    assert broker.controller.stored == {}


def test_a_resource_named_twice_is_altered_by_neither(broker: Broker) -> None:
    twice = incremental(TOPIC, "visits", ("retention.ms", SET, "1"))
    twice.resources *= 2

    responses = broker.ask(twice, 1).responses

    assert [each.error_code for each in responses] == [ErrorCode.INVALID_REQUEST] * 2
    assert broker.controller.stored == {}


def test_levels_of_loggers_are_shown_and_changed(broker: Broker) -> None:
    name = "kavka.broker.settings.dynamic_config"
    before = described(broker, LOGGER, OWN)[name].value

    assert code(broker, incremental(LOGGER, OWN, (name, SET, "DEBUG"))) == ErrorCode.NONE
    assert described(broker, LOGGER, OWN)[name].value == "DEBUG"
    assert code(broker, incremental(LOGGER, OWN, (name, DELETE, None))) == ErrorCode.NONE
    assert described(broker, LOGGER, OWN)[name].value == before


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (("kavka.no.such.logger", SET, "INFO"), ErrorCode.INVALID_CONFIG),
        (("kavka.broker.settings.dynamic_config", SET, "LOUD"), ErrorCode.INVALID_CONFIG),
        (("kavka.broker.settings.dynamic_config", APPEND, "INFO"), ErrorCode.INVALID_REQUEST),
        (("root", DELETE, None), ErrorCode.INVALID_REQUEST),
    ],
)
def test_wrong_changes_of_loggers_are_refused(
    broker: Broker, change: tuple[str, int, str | None], error: ErrorCode
) -> None:
    assert code(broker, incremental(LOGGER, OWN, change)) == error
    assert code(broker, replacing(LOGGER, OWN)) == ErrorCode.INVALID_REQUEST
