"""Dynamic settings: precedence, listeners, and stored settings that cannot be used."""

import logging

import pytest

from kavka.broker.dynamic_config import DynamicConfig, check_broker_change
from kavka.config.broker_config import BrokerConfig
from kavka.config.errors import ConfigError


@pytest.fixture
def config() -> DynamicConfig:
    return DynamicConfig(BrokerConfig({"log.retention.ms": "1000", "num.io.threads": "4"}), 1)


def test_a_brokers_own_setting_wins_over_the_clusters_and_that_over_the_file(config: DynamicConfig) -> None:
    def retention() -> int | None:
        return config.current.log_retention_ms

    config.broker_changed(1, {"log.retention.ms": "3000"})
    assert retention() == 3000
    config.broker_changed(None, {"log.retention.ms": "2000"})
    assert retention() == 3000
    config.broker_changed(1, {})
    assert retention() == 2000
    config.broker_changed(None, {})
    assert retention() == 1000


def test_another_brokers_settings_change_nothing(config: DynamicConfig) -> None:
    before = config.current

    config.broker_changed(2, {"log.retention.ms": "9"})

    assert config.current is before


def test_listeners_hear_what_changed_and_nothing_when_nothing_did(config: DynamicConfig) -> None:
    heard: list[tuple[int, int, set[str]]] = []
    config.on_change(lambda old, new, names: heard.append((old.num_io_threads, new.num_io_threads, set(names))))

    config.broker_changed(1, {"num.io.threads": "8"})
    config.broker_changed(1, {"num.io.threads": "8"})

    assert heard == [(4, 8, {"num.io.threads"})]


def test_stored_settings_that_cannot_be_used_are_left_out_and_the_rest_is_taken(
    config: DynamicConfig, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        config.broker_changed(1, {"log.retention.ms": "5", "num.io.threads": "many", "log.dirs": "/elsewhere"})

    assert (config.current.log_retention_ms, config.current.num_io_threads) == (5, 4)
    assert "num.io.threads" in caplog.text
    assert "log.dirs" in caplog.text


def test_topics_have_their_own_settings_over_the_brokers(config: DynamicConfig) -> None:
    heard: list[tuple[str, dict[str, str]]] = []
    config.on_topic_change(lambda topic, overrides: heard.append((topic, dict(overrides))))

    config.topic_changed("visits", {"retention.ms": "7"})
    assert config.topic_config("visits").retention_ms == 7
    assert config.topic_config("clicks").retention_ms == 1000
    config.topic_changed("visits", {"retention.ms": "7"})
    config.topic_changed("visits", {})

    assert config.topic_config("visits").retention_ms == 1000
    assert heard == [("visits", {"retention.ms": "7"}), ("visits", {})]


def test_a_topic_follows_the_brokers_settings_where_it_has_none(config: DynamicConfig) -> None:
    config.topic_changed("visits", {"segment.bytes": "2048"})
    assert config.topic_config("visits").retention_ms == 1000

    config.broker_changed(None, {"log.retention.ms": "42"})

    visits = config.topic_config("visits")
    assert (visits.retention_ms, visits.segment_bytes) == (42, 2048)


def test_stored_topic_settings_that_cannot_be_used_are_left_out(config: DynamicConfig) -> None:
    config.topic_changed("visits", {"retention.ms": "soon", "segment.bytes": "2048", "no.such": "1"})

    assert config.topic_overrides("visits") == {"segment.bytes": "2048"}


@pytest.mark.parametrize(("threads", "fits"), [("1", False), ("2", True), ("8", True), ("9", False)])
def test_thread_counts_change_by_a_factor_of_two_at_most(config: DynamicConfig, threads: str, fits: bool) -> None:
    change = {"num.io.threads": threads}
    if fits:
        assert check_broker_change(config.current, {}, change).num_io_threads == int(threads)
    else:
        with pytest.raises(ConfigError, match="current value 4"):
            check_broker_change(config.current, {}, change)
