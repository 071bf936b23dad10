from __future__ import annotations

import pytest

from kavka.config import BrokerConfig, ConfigError, TopicConfig, validate_topic_overrides
from kavka.config.sources import load_config
from kavka.config.topic_config import KEPT, UNREADABLE, broker_synonyms, usable_overrides
from kavka.config.topic_settings import TopicSettings
from kavka.config.values import LONG_MAX

BROKER = BrokerConfig()


def test_a_topic_has_the_brokers_values_and_its_own_over_them() -> None:
    broker = BrokerConfig({"log.retention.hours": "1", "message.max.bytes": "77", "log.segment.bytes": "5000"})

    topic = TopicConfig.of(broker, {"segment.bytes": "100"})

    assert (topic.retention_ms, topic.max_message_bytes, topic.segment_bytes) == (3_600_000, 77, 100)
    assert topic.overrides == {"segment.bytes": "100"}


def test_topics_without_settings_of_their_own_share_one_object() -> None:
    assert TopicConfig.of(BROKER, {}) is TopicConfig.of(BROKER, {})
    assert TopicConfig.of(BROKER, {}) is not TopicConfig.of(BROKER, {"segment.bytes": "100"})


def test_a_dynamic_change_of_the_broker_reaches_topics_made_from_the_new_snapshot() -> None:
    TopicConfig.of(BROKER, {})
    changed = BROKER.with_dynamic({"log.retention.ms": "9"}, {})

    assert TopicConfig.of(changed, {}).retention_ms == 9


@pytest.mark.parametrize(
    ("policy", "compacted", "deleted"),
    [("delete", False, True), ("compact", True, False), ("compact,delete", True, True), ("", False, False)],
)
def test_the_cleanup_policy_is_told_as_flags(policy: str, compacted: bool, deleted: bool) -> None:
    topic = TopicConfig.of(BROKER, {"cleanup.policy": policy})

    assert (topic.is_compacted, topic.is_deleted_by_retention) == (compacted, deleted)
    assert topic.cleanup_policy == frozenset(policy.split(",")) - {""}


def test_the_timestamp_type_is_told_as_a_flag() -> None:
    assert TopicConfig.of(BROKER, {"message.timestamp.type": "LogAppendTime"}).is_log_append_time
    assert not TopicConfig.of(BROKER, {}).is_log_append_time


@pytest.mark.parametrize(
    ("overrides", "bounds"),
    [
        ({}, (LONG_MAX, LONG_MAX)),
        ({"message.timestamp.difference.max.ms": "5"}, (5, 5)),
        ({"message.timestamp.difference.max.ms": "5", "message.timestamp.after.max.ms": "6"}, (5, 6)),
        ({"message.timestamp.before.max.ms": "7"}, (7, LONG_MAX)),
    ],
)
def test_the_older_timestamp_bound_counts_where_the_newer_is_not_set(
    overrides: dict[str, str], bounds: tuple[int, int]
) -> None:
    topic = TopicConfig.of(BROKER, overrides)

    assert (topic.message_timestamp_before_max_ms, topic.message_timestamp_after_max_ms) == bounds


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "8"}, "conflict topic config setting"),
        ({"remote.storage.enable": "true"}, "Tiered Storage functionality is disabled"),
        ({"leader.replication.throttled.replicas": "0-1"}, "must be the literal"),
        ({"log.retention.ms": "1"}, "Unknown topic config name: log.retention.ms"),
    ],
)
def test_what_cannot_be_is_refused(overrides: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace(".", r"\.")):
        validate_topic_overrides(overrides, BROKER)


@pytest.mark.parametrize("overrides", [{"min.compaction.lag.ms": "9"}, {"remote.storage.enable": "true"}])
def test_what_is_refused_of_a_change_is_taken_where_it_is_stored(overrides: dict[str, str]) -> None:
    broker = BrokerConfig({"log.cleaner.max.compaction.lag.ms": "8"})
    with pytest.raises(ConfigError):
        validate_topic_overrides(overrides, broker)

    (name,) = overrides
    assert usable_overrides(overrides) == (overrides, [])
    assert str(TopicConfig.of(broker, overrides).value(name)).lower() == overrides[name]


@pytest.mark.parametrize("text", ["*", "", "0:1,1:2"])
def test_throttled_replicas_are_a_star_or_pairs(text: str) -> None:
    topic = TopicConfig.of(BROKER, {"leader.replication.throttled.replicas": text})
    assert ",".join(topic.leader_replication_throttled_replicas) == text


def test_every_synonym_is_a_broker_setting_of_the_same_type() -> None:
    for row in TopicSettings.ROWS.values():
        for name in broker_synonyms(row.name)[:1]:
            assert BrokerConfig.ALL_ROWS[name].type is row.type, row.name


def test_of_stored_settings_the_usable_ones_are_kept() -> None:
    usable, problems = usable_overrides({"retention.ms": "5", "segment.bytes": "x", "what": "1"})

    assert usable == {"retention.ms": "5"}
    assert len(problems) == 2


@pytest.mark.parametrize(
    ("wrong", "kept"),
    [
        ({"retention.ms": "-5"}, {"cleanup.policy": "compact", "retention.ms": "-1"}),
        ({"retention.bytes": "all"}, {"cleanup.policy": "compact", "retention.bytes": "-1"}),
        ({"cleanup.policy": "kept", "retention.ms": "5"}, KEPT),
        ({"min.compaction.lag.ms": "long"}, KEPT),
        ({"delete.retention.ms": "-5"}, KEPT),
        ({UNREADABLE: ""}, {**KEPT, "min.insync.replicas": "2147483647"}),
        ({"min.insync.replicas": "most"}, {"cleanup.policy": "compact", "min.insync.replicas": "2147483647"}),
    ],
)
def test_in_place_of_a_setting_that_kept_records_stands_what_keeps_all(
    wrong: dict[str, str], kept: dict[str, str]
) -> None:
    usable, problems = usable_overrides({"cleanup.policy": "compact", **wrong})

    assert usable == kept
    assert len(problems) == 1


def test_preallocation_is_accepted_checked_and_named_as_not_used() -> None:
    loaded = load_config(None, ["log.preallocate=true"], {})

    assert [name for name, reason in loaded.without_effect if "preallocation" in reason] == ["log.preallocate"]
    assert TopicConfig.of(loaded.config, {"preallocate": "true"}).value("preallocate") is True
    with pytest.raises(ConfigError):
        TopicConfig.of(loaded.config, {"preallocate": "yes"})
