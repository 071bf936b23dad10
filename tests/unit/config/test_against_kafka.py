"""The rows, descriptions and refusals are those of Apache Kafka 3.9 (golden/, written by its own classes)."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from kavka.config import BrokerConfig, ConfigError, TopicConfig, validate_topic_overrides
from kavka.config.defaults import KAVKA_DEFAULTS
from kavka.config.describe import ConfigEntry, describe_broker, describe_topic
from kavka.config.kavka_settings import KavkaSettings
from kavka.config.quotas import RateSettings
from kavka.config.setting import Setting
from kavka.config.topic_settings import TopicSettings
from kavka.config.values import LIST, render

GOLDEN = Path(__file__).parent / "golden"
UNCHECKED = ("null", "non-null string", "non-empty list", "non-empty string")
GIVEN = {
    "log.retention.hours": "1",
    "log.segment.bytes": "1000000",
    "my.own": "5",
    "log.roll.ms": "7000",
    "log.cleanup.policy": " compact , delete",
    "ssl.keystore.password": "secret",
    "sasl.enabled.mechanisms": "PLAIN, GSSAPI",
    "num.io.threads": " 2 ",
    "broker.id": "3",
    "log.dirs": "/a,/b",
    "listener.name.plaintext.plain.sasl.jaas.config": "u",
    "log.message.timestamp.difference.max.ms": "99",
    "zookeeper.connect": "x:1",
}
TOPIC_GIVEN = {"retention.bytes": "77", "flush.ms": " 9", "cleanup.policy": "delete"}


class KafkaSetting(NamedTuple):
    kind: str
    name: str
    type: str
    importance: str
    scope: str
    default: str
    allowed: str
    internal: str


def golden(name: str) -> list[list[str]]:
    lines = (GOLDEN / name).read_text().splitlines()
    return [line.split("|") for line in lines if not line.startswith("#")]


def kafka_settings(kind: str) -> dict[str, KafkaSetting]:
    rows = [KafkaSetting(*fields) for fields in golden("settings-3.9.txt") if fields[0] == kind]
    return {row.name: row for row in rows}


def rows_of(kind: str) -> dict[str, Setting]:
    return BrokerConfig.ALL_ROWS if kind == "B" else TopicSettings.ROWS


@pytest.mark.parametrize("kind", ["B", "T"])
def test_every_setting_of_kafka_has_a_row_and_no_other_but_our_own(kind: str) -> None:
    own = KavkaSettings.ROWS.keys() | RateSettings.ROWS.keys() if kind == "B" else set()

    assert rows_of(kind).keys() - own == kafka_settings(kind).keys()


@pytest.mark.parametrize("kind", ["B", "T"])
def test_rows_have_kafkas_type_importance_scope_and_default(kind: str) -> None:
    for name, kafka in kafka_settings(kind).items():
        row = rows_of(kind)[name]
        default = render(row.type, row.default)
        if name in KAVKA_DEFAULTS and kind == "B":
            assert default != kafka.default, f"{name} does not differ"
            default = kafka.default
        ours = (
            row.type.name,
            row.importance.name,
            row.scope.name.lower().replace("_", "-"),
            "null" if default is None else default,
            str(row.internal).lower(),
        )
        theirs = (kafka.type, kafka.importance, kafka.scope, kafka.default, kafka.internal)
        assert (name, *ours) == (name, *theirs)


@pytest.mark.parametrize("kind", ["B", "T"])
def test_used_rows_allow_what_kafka_allows(kind: str) -> None:
    for name, kafka in kafka_settings(kind).items():
        row = rows_of(kind)[name]
        if kafka.allowed in UNCHECKED:
            assert row.check is None, name
        elif row.ignored is None:
            assert (name, str(row.check)) == (name, kafka.allowed)


def described(entry: ConfigEntry) -> list[str]:
    synonyms = "".join(f"{s.name}={'null' if s.value is None else s.value}:{int(s.source)};" for s in entry.synonyms)
    flags = [str(entry.is_read_only).lower(), str(entry.is_sensitive).lower()]
    value = "null" if entry.value is None else entry.value
    return [entry.name, value, str(int(entry.source)), *flags, synonyms, str(entry.type_code)]


@pytest.fixture
def like_kafkas_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KAVKA_DEFAULTS:
        kafka = kafka_settings("B")[name]
        row = BrokerConfig.ROWS[name]
        monkeypatch.setattr(row, "default", row.parse(kafka.default))
        monkeypatch.setitem(BrokerConfig.DEFAULT_VALUES, name, row.default)


@pytest.mark.usefixtures("like_kafkas_defaults")
@pytest.mark.parametrize("kind", ["B", "T"])
def test_resources_are_described_as_kafka_describes_them(kind: str) -> None:
    config = BrokerConfig(GIVEN)
    entries = describe_broker(config) if kind == "B" else describe_topic(config, TopicConfig.of(config, TOPIC_GIVEN))
    expected = {fields[1]: fields[1:] for fields in golden("described-3.9.txt") if fields[0] == kind}

    ours = {entry.name: described(entry) for entry in entries if entry.name not in KavkaSettings.ROWS}

    assert ours == expected


def message_of(error: pytest.ExceptionInfo[ConfigError]) -> str:
    return str(error.value)


@pytest.mark.parametrize(("name", "text", "message"), golden("topic-validation-3.9.txt"))
def test_topic_settings_are_refused_in_kafkas_words(name: str, text: str, message: str) -> None:
    if message == "ok":
        validate_topic_overrides({name: text})
        return
    with pytest.raises(ConfigError) as error:
        validate_topic_overrides({name: text})
    assert message_of(error) == message


@pytest.mark.parametrize(("name", "text", "for_one_broker", "message"), golden("dynamic-validation-3.9.txt"))
def test_dynamic_settings_are_refused_in_kafkas_words(name: str, text: str, for_one_broker: str, message: str) -> None:
    per_broker, defaults = ({name: text}, {}) if for_one_broker == "true" else ({}, {name: text})
    config = BrokerConfig({"sasl.mechanism.inter.broker.protocol": "PLAIN"})
    if message == "ok":
        config.with_dynamic(defaults, per_broker)
        return
    with pytest.raises(ConfigError) as error:
        config.with_dynamic(defaults, per_broker)
    assert message_of(error) == message


def test_attributes_are_named_by_their_settings() -> None:
    config = BrokerConfig()
    for row in BrokerConfig.ROWS.values():
        assert row.name.replace(".", "_") in vars(config), row.name
        assert row.type is not LIST or isinstance(row.default, tuple) or row.default is None
