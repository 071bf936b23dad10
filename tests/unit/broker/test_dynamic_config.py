"""Dynamic settings: precedence, listeners, and stored settings that cannot be used."""

import logging
from collections.abc import Mapping

import pytest

from kavka.broker.partitions.role import PartitionRole
from kavka.broker.settings import dynamic_config
from kavka.broker.settings.dynamic_config import DynamicConfig, PendingChange, check_broker_change
from kavka.config.broker_config import BrokerConfig
from kavka.config.errors import ConfigError
from kavka.config.topic_config import TopicConfig
from tests.support.changing_parts import NotingParts


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


def test_parts_hear_what_changed_and_nothing_when_nothing_did(config: DynamicConfig) -> None:
    parts = NotingParts()
    config.follow(parts)

    config.broker_changed(1, {"num.io.threads": "8"})
    config.broker_changed(1, {"num.io.threads": "8"})

    heard = [(old.num_io_threads, new.num_io_threads, names) for old, new, names in parts.told]
    assert heard == [(4, 8, frozenset({"num.io.threads"}))]


def test_what_was_stored_and_cannot_be_applied_does_not_count(config: DynamicConfig) -> None:
    parts = NotingParts()
    config.follow(parts)
    parts.refuses = OSError(98, "the port is taken")

    with pytest.raises(ConfigError, match=r"num\.io\.threads cannot be applied: the port is taken"):
        config.broker_changed(1, {"num.io.threads": "8"})

    assert config.current.num_io_threads == 4
    assert parts.told == []


def test_a_change_that_comes_to_nothing_takes_back_its_own_and_no_others(config: DynamicConfig) -> None:
    parts = NotingParts()
    config.follow(parts)
    refused, other, never_prepared = PendingChange(config), PendingChange(config), PendingChange(config)
    wanted = BrokerConfig({"num.io.threads": "8"})
    refused.prepare(BrokerConfig({"num.io.threads": "6"}))
    other.prepare(wanted)

    never_prepared.end()
    assert parts.kept == []
    refused.end()
    refused.end()
    assert parts.kept == [[config.current, wanted]]

    config.broker_changed(1, {"log.retention.ms": "9"})
    assert parts.pending == [[wanted]]
    config.broker_changed(1, {"num.io.threads": "8"})
    other.end()
    assert parts.kept[-1] == [config.current]


def test_a_change_that_cannot_be_prepared_costs_no_other_what_it_has(config: DynamicConfig) -> None:
    parts = NotingParts()
    config.follow(parts)
    wanted = BrokerConfig({"num.io.threads": "8"})
    PendingChange(config).prepare(wanted)
    parts.refuses = OSError(98, "the port is taken")
    refused = PendingChange(config)

    with pytest.raises(ConfigError, match="the port is taken"):
        refused.prepare(BrokerConfig({"num.io.threads": "6"}))

    assert parts.kept == [[config.current, wanted]]


def test_a_topic_keeps_its_settings_when_the_brokers_no_longer_fit_them(config: DynamicConfig) -> None:
    config.topic_changed("visits", {"min.compaction.lag.ms": "100", "retention.ms": "-1"})
    config.broker_changed(1, {"log.cleaner.max.compaction.lag.ms": "50"})

    visits = config.topic_config("visits")
    assert (visits.min_compaction_lag_ms, visits.max_compaction_lag_ms, visits.retention_ms) == (100, 50, -1)


def test_a_topics_settings_that_change_while_they_are_read_are_not_kept(
    config: DynamicConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.topic_changed("visits", {"retention.ms": "1"})

    class Slow(TopicConfig):
        @staticmethod
        def of(broker: BrokerConfig, overrides: Mapping[str, str]) -> TopicConfig:
            config.topic_changed("visits", {"retention.ms": "2"})
            return TopicConfig.of(broker, overrides)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(dynamic_config, "TopicConfig", Slow)
        config.topic_config("visits")

    assert config.topic_config("visits").retention_ms == 2


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


def test_a_topic_whose_settings_cannot_be_read_yet_is_on_the_safe_side_unless_some_are_known(
    config: DynamicConfig,
) -> None:
    config.topic_changed("visits", {"retention.ms": "7"})

    config.topic_unknown("visits")
    config.topic_unknown("clicks")

    visits, clicks = config.topic_config("visits"), config.topic_config("clicks")
    assert (visits.retention_ms, visits.min_insync_replicas) == (7, 1)
    assert clicks.retention_ms == -1
    assert PartitionRole(replicas=(1, 2, 3)).effective_min_isr(clicks.min_insync_replicas) == 3
    config.topic_changed("clicks", {})
    clicks = config.topic_config("clicks")
    assert (clicks.retention_ms, clicks.min_insync_replicas) == (1000, 1)


def test_what_is_known_of_a_topic_says_nothing_of_one_that_was_made_anew_under_its_name(config: DynamicConfig) -> None:
    config.topic_changed("visits", {"retention.ms": "7"})
    assert config.topic_config("visits").retention_ms == 7

    config.topic_made_anew("visits")
    config.topic_unknown("visits")

    assert config.topic_config("visits").retention_ms == -1
    config.topic_changed("visits", {"retention.ms": "8"})
    assert config.topic_config("visits").retention_ms == 8


def test_who_hears_of_topics_waits_for_nobody_who_changes_settings(config: DynamicConfig) -> None:
    config.topic_changed("gone", {"retention.ms": "7"})
    with config._lock:
        config.topic_unknown("visits")
        config.topic_made_anew("clicks")
        config.topic_gone("gone")
    assert {config.topic_config(each).retention_ms for each in ("visits", "clicks")} == {-1}
    assert config.topic_config("gone").retention_ms == 1000


def test_a_change_of_the_brokers_settings_is_heard_once_it_counts(config: DynamicConfig) -> None:
    heard: list[int] = []
    config.on_broker_change(lambda: heard.append(config.current.log_retention_ms or 0))

    config.broker_changed(None, {"log.retention.ms": "42"})
    config.broker_changed(None, {"log.retention.ms": "42"})
    config.broker_changed(7, {"log.retention.ms": "43"})

    assert heard == [42]


def test_a_part_that_fails_keeps_nobody_from_hearing_of_a_change(config: DynamicConfig) -> None:
    class Failing(NotingParts):
        def changed(self, *_: object) -> None:
            raise ValueError("as an example")

    heard: list[int] = []
    config.follow(Failing())
    config.on_broker_change(lambda: heard.append(config.current.log_segment_bytes))

    with pytest.raises(ValueError, match="as an example"):
        config.broker_changed(1, {"log.segment.bytes": "2000"})

    assert heard == [2000]


def test_a_topic_follows_the_brokers_settings_where_it_has_none(config: DynamicConfig) -> None:
    config.topic_changed("visits", {"segment.bytes": "2048"})
    assert config.topic_config("visits").retention_ms == 1000

    config.broker_changed(None, {"log.retention.ms": "42"})

    visits = config.topic_config("visits")
    assert (visits.retention_ms, visits.segment_bytes) == (42, 2048)


def test_stored_topic_settings_that_cannot_be_used_are_left_out(config: DynamicConfig) -> None:
    config.topic_changed("visits", {"retention.ms": "soon", "segment.bytes": "2048", "no.such": "1"})

    assert config.topic_overrides("visits") == {"segment.bytes": "2048", "retention.ms": "-1"}


@pytest.mark.parametrize(("threads", "fits"), [("1", False), ("2", True), ("8", True), ("9", False)])
def test_thread_counts_change_by_a_factor_of_two_at_most(config: DynamicConfig, threads: str, fits: bool) -> None:
    change = {"num.io.threads": threads}
    if fits:
        assert check_broker_change(config.current, {}, change).num_io_threads == int(threads)
    else:
        with pytest.raises(ConfigError, match="current value 4"):
            check_broker_change(config.current, {}, change)


@pytest.mark.parametrize(
    ("name", "before", "allowed", "refused"),
    [
        ("num.io.threads", 3, (1, 6), (7,)),
        ("log.cleaner.threads", 4, (2, 8), (1, 9)),
        ("background.threads", 1, (2,), (3,)),
    ],
)
def test_threads_are_halved_or_doubled_at_most(
    name: str, before: int, allowed: tuple[int, ...], refused: tuple[int, ...]
) -> None:
    config = BrokerConfig({name: str(before)})
    for count in allowed:
        assert check_broker_change(config, {}, {name: str(count)}).value(name) == count
    for count in refused:
        with pytest.raises(ConfigError, match=f"current value {before}"):
            check_broker_change(config, {}, {name: str(count)})


@pytest.mark.parametrize(("name", "text"), [("log.retention.ms", "abc"), ("num.io.threads", "0")])
def test_what_a_brokers_own_setting_hides_is_checked_too(config: DynamicConfig, name: str, text: str) -> None:
    own = {"log.retention.ms": "5", "num.io.threads": "4"}
    config.broker_changed(1, own)

    with pytest.raises(ConfigError, match=f"{text} for configuration {name}"):
        config.check_broker_change(None, {name: text})
    with pytest.raises(ConfigError, match=f"{text} for configuration {name}"):
        BrokerConfig({name: text}, own)
