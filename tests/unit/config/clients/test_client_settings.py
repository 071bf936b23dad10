"""What producers, consumers and administrators may be made of."""

import logging
from pathlib import Path
from typing import Any

import pytest

from kavka.config.clients import (
    AdminSettings,
    ConsumerSettings,
    ProducerSettings,
    admin_settings,
    consumer_settings,
    producer_settings,
)
from kavka.config.clients.checks import duration_as_ms
from kavka.config.clients.document import client_settings_page
from kavka.config.clients.without_effect import why_without_effect
from kavka.config.errors import ConfigError

ROOT = Path(__file__).parents[4]
GROUPS = (ProducerSettings, ConsumerSettings, AdminSettings)


def test_text_and_typed_values_are_the_same() -> None:
    text = producer_settings({"linger.ms": "20", "enable.idempotence": "false", "bootstrap.servers": "a:1, b:2"})
    typed = producer_settings(linger_ms=20, enable_idempotence=False, bootstrap_servers=["a:1", "b:2"])
    assert (text.linger_ms, text.enable_idempotence, text.bootstrap_servers) == (20, False, ("a:1", "b:2"))
    assert (typed.linger_ms, typed.enable_idempotence, typed.bootstrap_servers) == (20, False, ("a:1", "b:2"))


def test_a_keyword_counts_over_a_name_and_none_is_the_default() -> None:
    settings = producer_settings({"linger.ms": 1, "batch.size": None}, linger_ms=2)
    assert (settings.linger_ms, settings.batch_size) == (2, 16_384)


def test_what_was_given_is_kept_for_those_who_are_configured_with_it(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        settings = consumer_settings({"my.deserializer.url": "http://x"}, group_id="g")
    assert settings.given == {"my.deserializer.url": "http://x", "group.id": "g"}
    assert "my.deserializer.url" in caplog.text


def test_settings_do_not_change() -> None:
    settings = admin_settings()
    with pytest.raises(AttributeError):
        settings.retries = 1
    with pytest.raises(TypeError):
        settings.given["x"] = 1  # type: ignore[index]  # that it cannot be is what is tested


def test_clients_without_an_id_are_numbered() -> None:
    first, second = producer_settings().client_id, producer_settings().client_id
    assert first.startswith("producer-")
    assert first != second
    assert producer_settings(transactional_id="t").client_id == "producer-t"
    assert consumer_settings(group_id="g").client_id.startswith("consumer-g-")
    assert consumer_settings(group_id="g", group_instance_id="i").client_id == "consumer-g-i"
    assert consumer_settings(client_id="mine").client_id == "mine"
    assert admin_settings().client_id.startswith("adminclient-")


@pytest.mark.parametrize("acks", ["all", "-1", -1])
def test_acks_are_a_number(acks: object) -> None:
    assert producer_settings(acks=acks).acks == -1
    assert producer_settings(acks=1).acks == 1


@pytest.mark.parametrize("given", [{"acks": "1"}, {"retries": 0}])
def test_idempotence_gives_way_unless_it_was_asked_for(given: dict[str, Any]) -> None:
    assert producer_settings().enable_idempotence
    assert not producer_settings(given).enable_idempotence
    with pytest.raises(ConfigError, match="idempoten"):
        producer_settings({**given, "enable.idempotence": True})
    with pytest.raises(ConfigError, match="without also enabling idempotence"):
        producer_settings({**given, "transactional.id": "t"})


def test_a_delivery_timeout_that_is_not_given_grows_with_what_it_covers() -> None:
    assert producer_settings(request_timeout_ms=200_000).delivery_timeout_ms == 200_005
    with pytest.raises(ConfigError, match=r"linger\.ms \+ request\.timeout\.ms"):
        producer_settings(request_timeout_ms=200_000, delivery_timeout_ms=100)


WRONG_PRODUCERS = [
    ({"acks": "2"}, "acks"),
    ({"acks": True}, "acks"),
    ({"linger.ms": "soon"}, "LONG"),
    ({"linger.ms": -1}, "at least 0"),
    ({"linger.ms": True}, "LONG"),
    ({"linger.ms": 1.5}, "LONG"),
    ({"batch.size": 2**31}, "INT"),
    ({"enable.idempotence": "maybe"}, "true or false"),
    ({"enable.idempotence": 1}, "BOOLEAN"),
    ({"compression.type": "zip"}, "must be one of"),
    ({"compression.lz4.level": 18}, "no more than 17"),
    ({"compression.gzip.level": 0}, "between 1 and 9"),
    ({"transactional.id": ""}, "non-empty"),
    ({"max.in.flight.requests.per.connection": 6}, "at most 5"),
    ({"metadata.max.idle.ms": 4_999}, "at least 5000"),
    ({"security.protocol": "SASL_SSL"}, "GSSAPI.*Kerberos"),
    ({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": ""}, "non-empty"),
    ({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "plain"}, "must be one of PLAIN"),
    ({"ssl.engine.factory.class": "com.example.Engine"}, "Java classes cannot be loaded"),
    ({"sasl.login.refresh.window.factor": 0.4}, "at least 0.5"),
    ({"sasl.login.refresh.window.jitter": True}, "DOUBLE"),
    ({"security.protocol": "PLAIN"}, "must be one of"),
]


@pytest.mark.parametrize(("given", "expected"), WRONG_PRODUCERS, ids=lambda each: str(each)[:40])
def test_a_wrong_value_is_refused_with_what_was_expected(given: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        producer_settings(given)


WRONG_CONSUMERS = [
    ({"enable.auto.commit": True}, "default group id"),
    ({"group.protocol": "consumer", "group.id": "g", "session.timeout.ms": 1}, "cannot be set"),
    ({"group.protocol": "consumer", "group.id": "g", "partition.assignment.strategy": "range"}, "cannot be set"),
    ({"group.remote.assignor": "uniform"}, "cannot be set"),
    ({"group.protocol": "share"}, "must be one of"),
    ({"auto.offset.reset": "smallest"}, "by_duration"),
    ({"auto.offset.reset": "by_duration:-PT1S"}, "by_duration"),
    ({"heartbeat.interval.ms": 45_000}, "lower than the session timeout"),
    ({"max.poll.records": 0}, "at least 1"),
    ({"isolation.level": "serializable"}, "must be one of"),
]


@pytest.mark.parametrize(("given", "expected"), WRONG_CONSUMERS, ids=lambda each: str(each)[:40])
def test_a_consumers_wrong_values_too(given: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        consumer_settings(given)


def test_a_consumer_without_a_group_commits_nothing_by_itself() -> None:
    assert not consumer_settings().enable_auto_commit
    assert consumer_settings(group_id="g").enable_auto_commit


def test_assignors_and_interceptors_may_be_classes() -> None:
    settings = consumer_settings(partition_assignment_strategy=[str, "range"], interceptor_classes=str)
    assert settings.partition_assignment_strategy == (str, "range")
    assert settings.interceptor_classes == (str,)


def test_an_administrators_time_limits_fit_together() -> None:
    assert admin_settings(request_timeout_ms=90_000).default_api_timeout_ms == 90_000
    with pytest.raises(ConfigError, match="no smaller"):
        admin_settings(request_timeout_ms=90_000, default_api_timeout_ms=60_000)
    with pytest.raises(ConfigError, match="both"):
        admin_settings(bootstrap_servers="a:1", bootstrap_controllers="b:1")


def test_who_sets_the_first_back_off_alone_gets_it_each_time() -> None:
    settings = admin_settings(reconnect_backoff_ms=700)
    assert (settings.reconnect_backoff_ms, settings.reconnect_backoff_max_ms) == (700, 700)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PT1H", 3_600_000),
        ("P1D", 86_400_000),
        ("P1DT2H3M4.5S", 93_784_500),
        ("-PT1S", -1_000),
        ("PT-0.5S", -500),
        ("pt1s", 1_000),
        ("PT", None),
        ("P", None),
        ("P1DT", None),
        ("1H", None),
        ("PT1H ", None),
        ("PT" + "9" * 30 + "S", None),
        ("P9999999999999999D", None),
    ],
)
def test_durations_are_read_as_java_does(text: str, expected: int | None) -> None:
    assert duration_as_ms(text) == expected


@pytest.mark.parametrize("servers", [9092, [9092], b"a:1", [b"a:1"], [None]])
def test_servers_that_are_no_text_are_refused(servers: Any) -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers"):
        admin_settings(bootstrap_servers=servers)


@pytest.mark.parametrize("text", ["x" * 32_768, "\udc80"])
def test_text_that_fits_into_no_request_is_refused(text: str) -> None:
    for name in "client.id", "group.id", "group.instance.id", "client.rack":
        with pytest.raises(ConfigError, match=name):
            consumer_settings({name: text})
    with pytest.raises(ConfigError, match=r"transactional\.id"):
        producer_settings(transactional_id=text)


def test_how_far_back_to_begin_is_ready_to_use() -> None:
    assert consumer_settings(auto_offset_reset="by_duration:PT1M").auto_offset_reset_by_ms == 60_000
    assert consumer_settings().auto_offset_reset_by_ms is None


def test_what_has_no_effect_is_no_row() -> None:
    assert why_without_effect("ssl.trustmanager.algorithm")
    for group in GROUPS:
        assert [name for name in group.ROWS if why_without_effect(name)] == []


def test_the_page_is_made_of_the_rows() -> None:
    assert (ROOT / "docs" / "client-settings.md").read_text() == client_settings_page()
