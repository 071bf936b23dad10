"""Stored settings of which not all can be used: the wrong ones are left out, and no others with them."""

import logging

import pytest

from kavka.broker.dynamic_config import DynamicConfig
from kavka.broker.usable_settings import usable_snapshot
from kavka.config.broker_config import BrokerConfig
from kavka.config.errors import ConfigError

PAIR = {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:100"}
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
        config = usable_snapshot(BrokerConfig({"broker.id": "1"}), *layers)
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
    ],
)
def test_a_limit_that_cannot_be_used_is_not_left_out(limit: dict[str, str]) -> None:
    (name,) = limit
    with pytest.raises(ConfigError, match=f"kavka storage settings --delete {name} "):
        usable_snapshot(BrokerConfig(), {}, {"log.retention.ms": "1", **limit})


def test_what_could_not_be_used_counts_as_soon_as_it_can(caplog: pytest.LogCaptureFixture) -> None:
    config = DynamicConfig(BrokerConfig({"log.cleaner.max.compaction.lag.ms": "500"}), 1)
    with caplog.at_level(logging.WARNING):
        config.broker_changed(1, {"log.cleaner.min.compaction.lag.ms": "1000"})
    assert config.current.log_cleaner_min_compaction_lag_ms == 0
    assert "log.cleaner.min.compaction.lag.ms" in caplog.text

    config.broker_changed(None, {"log.cleaner.max.compaction.lag.ms": "2000"})

    assert config.current.log_cleaner_min_compaction_lag_ms == 1000
