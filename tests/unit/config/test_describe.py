"""What the comparison with Kafka (test_against_kafka.py) leaves out: dynamic layers."""

from __future__ import annotations

from kavka.config import BrokerConfig, TopicConfig
from kavka.config.describe import ConfigEntry, describe_broker, describe_cluster_defaults, describe_topic
from kavka.config.values import Source

CONFIG = BrokerConfig({"log.retention.hours": "1", "ssl.key.password": "open sesame"}).with_dynamic(
    {"log.retention.ms": "200", "message.max.bytes": "2"},
    {"log.retention.ms": "300", "listener.name.a.ssl.keystore.password": "open sesame"},
)


def by_name(entries: list[ConfigEntry]) -> dict[str, ConfigEntry]:
    return {entry.name: entry for entry in entries}


def test_synonyms_stand_in_order_of_precedence() -> None:
    entry = by_name(describe_broker(CONFIG))["log.retention.ms"]

    assert (entry.value, entry.source) == ("300", Source.DYNAMIC_BROKER)
    assert entry.synonyms == (
        ("log.retention.ms", "300", Source.DYNAMIC_BROKER),
        ("log.retention.ms", "200", Source.DYNAMIC_DEFAULT_BROKER),
        ("log.retention.hours", "1", Source.STATIC_BROKER),
        ("log.retention.hours", "168", Source.DEFAULT),
    )


def test_a_topics_synonyms_begin_with_its_own_and_go_on_with_the_brokers() -> None:
    entry = by_name(describe_topic(CONFIG, TopicConfig.of(CONFIG, {"retention.ms": "400"})))["retention.ms"]

    assert (entry.value, entry.source) == ("400", Source.DYNAMIC_TOPIC)
    assert [synonym.name for synonym in entry.synonyms] == [
        "retention.ms",
        "log.retention.ms",
        "log.retention.ms",
        "log.retention.hours",
        "log.retention.hours",
    ]


def test_the_clusters_defaults_are_described_alone() -> None:
    entries = by_name(describe_cluster_defaults(CONFIG))

    assert entries.keys() == {"log.retention.ms", "message.max.bytes"}
    assert entries["log.retention.ms"].value == "200"
    assert {s.source for e in entries.values() for s in e.synonyms} == {Source.DYNAMIC_DEFAULT_BROKER}


def test_no_description_holds_a_secret() -> None:
    assert "sesame" not in repr(describe_broker(CONFIG))


def test_an_ignored_setting_is_described_as_it_was_given() -> None:
    config = BrokerConfig({"process.roles": " broker , controller", "controller.quorum.fetch.timeout.ms": "soon"})
    entries = by_name(describe_broker(config))

    assert entries["process.roles"].value == "broker,controller"
    assert entries["controller.quorum.fetch.timeout.ms"].value == "soon"
    assert "Not used" in (entries["process.roles"].documentation or "")
