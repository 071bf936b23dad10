"""Stored settings of which not all can be used: the wrong ones are left out, and no others with them."""

import logging
from typing import Any

import pytest

from kavka.broker.settings import usable_settings
from kavka.broker.settings.dynamic_config import DynamicConfig
from kavka.broker.settings.usable_settings import snapshot, usable_snapshot
from kavka.config.broker_config import BrokerConfig
from kavka.config.errors import ConfigError
from kavka.config.values import Source

PAIR = {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:100"}
MAP = "PLAINTEXT:PLAINTEXT,EXT:PLAINTEXT"
GONE_LISTENER = "PLAINTEXT://:9092,EXT://:9093"


def test_a_brokers_settings_that_need_the_clusters_defaults_are_there_from_the_start() -> None:
    static = BrokerConfig({"log.cleaner.max.compaction.lag.ms": "500"})
    config = DynamicConfig(static, 1)

    config.broker_started(
        {"max.connections.per.ip.overrides": "127.0.0.1:100", "log.cleaner.max.compaction.lag.ms": "2000"},
        {"max.connections.per.ip": "0", "log.cleaner.min.compaction.lag.ms": "1000"},
    )

    assert config.current.max_connections_per_ip == 0
    assert config.current.log_cleaner_min_compaction_lag_ms == 1000


@pytest.mark.parametrize("names", [list(PAIR), list(reversed(PAIR))])
@pytest.mark.parametrize(
    "wrong",
    [
        {"listeners": GONE_LISTENER},
        {"listeners": GONE_LISTENER, "advertised.listeners": "EXT://a:1"},
        {"log.dirs": "/elsewhere", "broker.id": "7", "num.io.threads": "many"},
        {"security.inter.broker.protocol": "SSL"},
    ],
)
def test_settings_that_need_one_another_stay_beside_one_that_is_wrong(wrong: dict[str, str], names: list[str]) -> None:
    stored = {**wrong, **{name: PAIR[name] for name in names}}

    for layers in (({}, stored), (PAIR, wrong)):
        config, unused = usable_snapshot(BrokerConfig({"broker.id": "1"}), *layers)
        assert {name for name, _ in unused} == wrong.keys()
        assert (config.max_connections_per_ip, config.max_connections_per_ip_overrides) == (0, {"127.0.0.1": 100})
        assert config.broker_id == 1
        assert not any(name in wrong for name, original in config.originals.items() if original.source.name[0] == "D")


@pytest.mark.parametrize(
    "limit",
    [
        {"max.connections.per.ip": "0"},
        {"max.connections": "none"},
        {"listener.name.ext.max.connections": "none"},
        {"max.connection.creation.rate": "-1"},
        {"log.retention.ms": "soon"},
        {"log.retention.bytes": "all"},
        {"log.flush.interval.messages": "0"},
        {"log.cleanup.policy": "kept"},
        {"log.cleaner.min.compaction.lag.ms": "long"},
        {"log.cleaner.delete.retention.ms": "-1"},
        {"min.insync.replicas": "0"},
        {"listener.security.protocol.map": "PLAINTEXT:TLS"},
        {"listener.security.protocol.map": "PLAINTEXT:SSL"},
        {"listener.name.ext.ssl.client.auth": "always"},
        {"listener.name.ext.connections.max.reauth.ms": "soon"},
        {"listener.name.ext.plain.connections.max.reauth.ms": "soon"},
        {"principal.builder.class": "com.example.Principals"},
        {"listener.name.ext.ssl.engine.factory.class": "com.example.Engines"},
    ],
)
def test_what_limits_connections_secures_them_or_keeps_records_is_not_left_out(limit: dict[str, str]) -> None:
    (name,) = limit
    static = BrokerConfig({"listeners": "PLAINTEXT://:9092,EXT://:9093", "listener.security.protocol.map": MAP})
    with pytest.raises(ConfigError, match=f"kavka storage settings --delete {name} "):
        usable_snapshot(static, {}, {"log.segment.bytes": "2000", **limit})


@pytest.mark.parametrize("stored", ["GONE://:9093", "PLAINTEXT://127.0.0.1:9092,GONE://:9093", "nonsense"])
def test_listeners_that_cannot_be_used_do_not_open_those_that_were_closed(stored: str) -> None:
    config = DynamicConfig(BrokerConfig({"listeners": "PLAINTEXT://:9092"}), 1)
    with pytest.raises(ConfigError, match="kavka storage settings --delete listeners "):
        config.broker_started({}, {"listeners": stored})

    config.broker_changed(1, {"listeners": "PLAINTEXT://127.0.0.1:9094"})
    with pytest.raises(ConfigError, match="kavka storage settings --delete listeners "):
        config.broker_changed(1, {"listeners": stored})
    assert [each.port for each in config.current.listeners] == [9094]


@pytest.mark.parametrize("wrong", [{"log.cleaner.threads": "2"}, {"num.io.threads": "many"}])
def test_a_wrong_one_is_found_among_many_in_few_tries(monkeypatch: pytest.MonkeyPatch, wrong: dict[str, str]) -> None:
    tries: list[int] = []

    def counted(*layers: Any) -> BrokerConfig:
        tries.append(1)
        return snapshot(*layers)

    monkeypatch.setattr(usable_settings, "snapshot", counted)
    many = {f"listener.name.l{index}.max.connections": "5" for index in range(1000)}

    config, unused = usable_snapshot(
        BrokerConfig({"log.cleaner.dedupe.buffer.size": "2000000"}), many, {**many, **wrong}
    )

    assert [name for name, _ in unused] == list(wrong)
    assert config.listener_value("l999", "max.connections") == 5
    assert len(tries) < 50


def test_many_wrong_ones_take_few_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []

    def counted(*layers: Any) -> BrokerConfig:
        tries.append(1)
        return snapshot(*layers)

    monkeypatch.setattr(usable_settings, "snapshot", counted)
    wrong = {f"listener.name.l{index}.ssl.client.auth": "maybe" for index in range(200)}

    config, unused = usable_snapshot(BrokerConfig(), {}, {**wrong, **INNOCENT})

    assert {name for name, _ in unused} == wrong.keys()
    assert config.log_retention_ms == -1
    assert len(tries) < 10


def test_what_could_not_be_used_counts_as_soon_as_it_can(caplog: pytest.LogCaptureFixture) -> None:
    config = DynamicConfig(BrokerConfig({"log.cleaner.dedupe.buffer.size": "2000000"}), 1)
    with caplog.at_level(logging.WARNING):
        config.broker_changed(1, {"log.cleaner.threads": "2"})
    assert config.current.log_cleaner_threads == 1
    assert "log.cleaner.threads" in caplog.text

    config.broker_changed(None, {"log.cleaner.dedupe.buffer.size": "8000000"})

    assert config.current.log_cleaner_threads == 2


def test_a_lag_of_compaction_that_no_longer_fits_is_not_left_out() -> None:
    config = DynamicConfig(BrokerConfig({"log.cleaner.max.compaction.lag.ms": "500"}), 1)

    with pytest.raises(ConfigError, match=r"settings --delete log\.cleaner\.min\.compaction\.lag\.ms "):
        config.broker_started({}, {"log.cleaner.min.compaction.lag.ms": "1000"})


INNOCENT = {
    "log.retention.ms": "-1",
    "log.flush.interval.messages": "1",
    "log.segment.bytes": "2000",
    "num.io.threads": "3",
}


@pytest.mark.parametrize("culprit_first", [True, False])
@pytest.mark.parametrize("defaults", [{}, INNOCENT])
def test_a_wrong_one_that_is_stored_twice_takes_no_others_along(defaults: dict[str, str], culprit_first: bool) -> None:
    wrong = {"log.cleaner.threads": "2"}
    stored = {**wrong, **INNOCENT} if culprit_first else {**INNOCENT, **wrong}

    config, unused = usable_snapshot(
        BrokerConfig({"log.cleaner.dedupe.buffer.size": "2000000"}), {**defaults, **wrong}, stored
    )

    assert [name for name, _ in unused] == ["log.cleaner.threads"] * 2
    assert dict(config.layers)[Source.DYNAMIC_BROKER] == INNOCENT
    assert dict(config.layers)[Source.DYNAMIC_DEFAULT_BROKER] == defaults


def test_settings_that_fit_only_together_are_taken_together_beside_a_wrong_one() -> None:
    moved = {
        "listeners": "EXT://127.0.0.1:9093",
        "advertised.listeners": "EXT://b.example:9093",
        "listener.security.protocol.map": "EXT:PLAINTEXT",
    }
    static = {"advertised.listeners": "PLAINTEXT://a.example:9092", "log.cleaner.dedupe.buffer.size": "2000000"}

    config, unused = usable_snapshot(BrokerConfig(static), {}, {"log.cleaner.threads": "2", **moved})

    assert [name for name, _ in unused] == ["log.cleaner.threads"]
    assert dict(config.layers)[Source.DYNAMIC_BROKER] == moved


def test_what_is_wrong_and_hidden_keeps_no_broker_down_and_is_not_uncovered(caplog: pytest.LogCaptureFixture) -> None:
    config = DynamicConfig(BrokerConfig(), 1)
    hidden = {"log.retention.ms": "abc", "max.connections": "none", "num.io.threads": "0", "min.insync.replicas": "1"}
    own = {"log.retention.ms": "5", "max.connections": "7", "num.io.threads": "4"}

    with caplog.at_level(logging.WARNING):
        config.broker_started(hidden, own)

    assert (config.current.log_retention_ms, config.current.max_connections) == (5, 7)
    assert [name for name in hidden if f"name={name} " in caplog.text] == list(own)
    with pytest.raises(ConfigError, match=r"kavka storage settings --delete log\.retention\.ms "):
        config.check_broker_change(1, {"max.connections": "7"})
    assert config.check_broker_change(1, {**own, "log.retention.ms": "6"}).log_retention_ms == 6
    assert config.check_broker_change(None, {"min.insync.replicas": "1"}).log_retention_ms == 5
