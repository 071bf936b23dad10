from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kavka.config import BrokerConfig, ConfigError, TopicConfig, changed_settings
from kavka.config.values import Source


@pytest.mark.parametrize(
    ("given", "awaits"),
    [
        ({"zookeeper.connect": "zoo:2181", "inter.broker.protocol.version": "3.9"}, True),
        ({"zookeeper.connect": "zoo:2181"}, False),
        ({"inter.broker.protocol.version": "3.9"}, False),
    ],
    ids=["given", "default", "alone"],
)
def test_a_release_that_was_given_announces_brokers_of_kafka(given: dict[str, str], awaits: bool) -> None:
    assert BrokerConfig(given).awaits_other_releases is awaits


@pytest.mark.parametrize(
    ("given", "retention_ms"),
    [
        ({}, 604_800_000),
        ({"log.retention.hours": "1"}, 3_600_000),
        ({"log.retention.hours": "1", "log.retention.minutes": "2"}, 120_000),
        ({"log.retention.hours": "1", "log.retention.minutes": "2", "log.retention.ms": "3"}, 3),
        ({"log.retention.hours": "1", "log.retention.ms": "-1"}, -1),
        ({"log.retention.minutes": "-1"}, -1),
    ],
)
def test_retention_is_the_finest_unit_given(given: dict[str, str], retention_ms: int) -> None:
    assert BrokerConfig(given).log_retention_ms == retention_ms


def test_rolling_and_flushing_take_the_finest_unit_given() -> None:
    coarse = BrokerConfig({"log.roll.hours": "2", "log.roll.jitter.hours": "1", "log.flush.scheduler.interval.ms": "9"})
    fine = BrokerConfig({"log.roll.hours": "2", "log.roll.ms": "5", "log.flush.interval.ms": "7"})

    assert (coarse.log_roll_ms, coarse.log_roll_jitter_ms, coarse.log_flush_interval_ms) == (7_200_000, 3_600_000, 9)
    assert (fine.log_roll_ms, fine.log_roll_jitter_ms, fine.log_flush_interval_ms) == (5, 0, 7)


def test_log_dirs_count_before_log_dir() -> None:
    assert BrokerConfig({"log.dir": "/a", "log.dirs": "/b, /c"}).log_dirs == (Path("/b"), Path("/c"))
    assert BrokerConfig({"log.dir": "/a"}).log_dirs == (Path("/a"),)


def test_node_id_and_broker_id_stand_for_each_other() -> None:
    assert BrokerConfig({"node.id": "7"}).broker_id == 7
    assert BrokerConfig({"broker.id": "7"}).node_id == 7


def test_other_resolved_values_fall_back_as_documented() -> None:
    config = BrokerConfig({"log.dirs": "/a,/b", "zookeeper.session.timeout.ms": "4000"})

    assert config.num_replica_alter_log_dirs_threads == 2
    assert config.zookeeper_connection_timeout_ms == 4000
    assert BrokerConfig({"max.connections.per.ip.overrides": "h:2,[::1]:3"}).max_connections_per_ip_overrides == {
        "h": 2,
        "::1": 3,
    }


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"num.io.threads": "many"}, "num.io.threads"),
        ({"num.io.threads": "0"}, "num.io.threads"),
        ({"log.segment.bytes": "13"}, "log.segment.bytes"),
        ({"message.max.bytes": "2147483648"}, "message.max.bytes"),
        ({"log.retention.ms": "0"}, "log.retention.ms"),
        ({"log.retention.hours": "0"}, "log.retention.hours"),
        ({"log.dirs": " , "}, "log.dirs"),
        ({"log.dirs": "/a,/a"}, "log.dirs"),
        ({"broker.id": "1001"}, "broker.id"),
        ({"broker.id": "-2"}, "broker.id"),
        ({"broker.id": "1", "node.id": "2"}, "node.id"),
        ({"broker.id.generation.enable": "false"}, "broker.id"),
        ({"queued.max.request.bytes": "10"}, "queued.max.request.bytes"),
        ({"max.connections.per.ip": "0"}, "max.connections.per.ip"),
        ({"max.connections.per.ip.overrides": "host"}, "max.connections.per.ip.overrides"),
        ({"connections.max.idle.ms": "50"}, "connection.failed.authentication.delay.ms"),
        ({"log.cleaner.dedupe.buffer.size": "1048576"}, "log.cleaner.dedupe.buffer.size"),
        ({"log.cleaner.min.compaction.lag.ms": "5", "log.cleaner.max.compaction.lag.ms": "4"}, "min.compaction"),
        ({"replica.fetch.wait.max.ms": "40000", "replica.lag.time.max.ms": "50000"}, "replica.fetch.wait.max.ms"),
        ({"replica.lag.time.max.ms": "100"}, "replica.fetch.wait.max.ms"),
        ({"offsets.commit.required.acks": "4"}, "offsets.commit.required.acks"),
        ({"group.consumer.session.timeout.ms": "44999"}, "group.consumer.session.timeout.ms"),
        ({"group.consumer.heartbeat.interval.ms": "15001"}, "group.consumer.heartbeat.interval.ms"),
        ({"group.max.session.timeout.ms": "5999"}, "group.max.session.timeout.ms"),
        ({"group.coordinator.rebalance.protocols": "consumer"}, "group.coordinator.rebalance.protocols"),
        ({"inter.broker.protocol.version": "12"}, "inter.broker.protocol.version"),
        ({"metrics.port": "65536"}, "metrics.port"),
        ({"kavka.validate.records": "none"}, "kavka.validate.records"),
        ({"control.plane.listener.name": "CONTROL"}, "control.plane.listener.name"),
    ],
)
def test_a_wrong_value_is_refused_by_name(given: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigError) as error:
        BrokerConfig(given)
    assert named in str(error.value)


def test_the_error_names_setting_value_and_what_is_expected() -> None:
    with pytest.raises(ConfigError) as error:
        BrokerConfig({"num.io.threads": "0"})
    assert (error.value.name, error.value.value) == ("num.io.threads", 0)
    assert str(error.value) == "Invalid value 0 for configuration num.io.threads: Value must be at least 1"


def test_a_password_is_never_shown() -> None:
    config = BrokerConfig({"ssl.keystore.password": "open sesame"})

    assert "sesame" not in repr(config.ssl_keystore_password) + str(config.ssl_keystore_password)
    assert config.ssl_keystore_password is not None
    assert config.ssl_keystore_password.value == "open sesame"


def test_a_snapshot_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        BrokerConfig().num_io_threads = 5


def test_attributes_are_plain_instance_attributes() -> None:
    config = BrokerConfig()

    assert "num_io_threads" in vars(config)
    assert not hasattr(BrokerConfig, "num_io_threads")


def test_attribute_names_are_interned_so_that_reading_one_compares_no_text() -> None:
    for name in (*vars(BrokerConfig()), *vars(TopicConfig.of(BrokerConfig(), {}))):
        assert sys.intern(name) is name


def test_dynamic_settings_count_before_static_ones_and_the_brokers_own_before_the_clusters() -> None:
    config = BrokerConfig({"message.max.bytes": "100", "num.io.threads": "3"})

    changed = config.with_dynamic({"message.max.bytes": "200", "num.io.threads": "4"}, {"message.max.bytes": "300"})

    assert (changed.message_max_bytes, changed.num_io_threads) == (300, 4)
    assert config.message_max_bytes == 100
    assert changed_settings(config, changed) == {"message.max.bytes", "num.io.threads"}
    assert changed.originals["message.max.bytes"] == ("300", Source.DYNAMIC_BROKER)
    assert changed.with_dynamic({}, {}).message_max_bytes == 100


def test_dynamic_settings_are_checked_together() -> None:
    with pytest.raises(ConfigError, match=r"log\.cleaner\.dedupe\.buffer\.size"):
        BrokerConfig().with_dynamic({"log.cleaner.threads": "1000"}, {})


def test_a_listeners_own_setting_counts_for_it_alone() -> None:
    config = BrokerConfig({"listener.name.internal.ssl.keystore.location": "/own", "ssl.keystore.location": "/all"})

    assert config.listener_value("INTERNAL", "ssl.keystore.location") == "/own"
    assert config.listener_value("OTHER", "ssl.keystore.location") == "/all"
    assert config.listener_given("OTHER", "ssl.keystore.location") is None


def test_a_listeners_own_setting_is_checked_and_its_secret_hidden() -> None:
    with pytest.raises(ConfigError, match=r"listener\.name\.a\.max\.connections"):
        BrokerConfig({"listener.name.a.max.connections": "-1"})
    config = BrokerConfig({"listener.name.a.plain.sasl.jaas.config": "secret"})
    assert "secret" not in repr(config.listener_given("a", "plain.sasl.jaas.config"))


def test_a_change_for_one_listener_is_listed() -> None:
    config = BrokerConfig()
    changed = config.with_dynamic({}, {"listener.name.a.max.connections": "5"})

    assert changed_settings(config, changed) == {"listener.name.a.max.connections"}
