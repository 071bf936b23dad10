"""A topic's settings at one moment: what the topic has of its own, over what the broker gives to all.

Threads: immutable, so shared freely; topics without settings of their own share one object per broker snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from kavka.config.broker_config import BrokerConfig
from kavka.config.errors import ConfigError
from kavka.config.setting import Setting, attribute_name
from kavka.config.topic_settings import TopicSettings
from kavka.config.values import INT_MAX, LONG_MAX

UNREADABLE: Final = "<unreadable>"
"""Stands for the name of a setting where none can be read."""
KEPT: Final = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
"""What keeps all records of a topic of which nobody knows how long they are wanted."""
_COPIED_TO_ALL: Final = {"min.insync.replicas": str(INT_MAX)}
"""As many as are assigned: nobody asks for more."""
_STAND_INS: Final[Mapping[str, Mapping[str, str]]] = {
    "retention.ms": {"retention.ms": "-1"},
    "retention.bytes": {"retention.bytes": "-1"},
    "cleanup.policy": KEPT,
    "min.compaction.lag.ms": KEPT,
    "delete.retention.ms": KEPT,
    "min.insync.replicas": _COPIED_TO_ALL,
    UNREADABLE: {**KEPT, **_COPIED_TO_ALL},
}
"""For a setting that cannot be used and that records may be kept by."""
_BEFORE: Final = "message.timestamp.before.max.ms"
_AFTER: Final = "message.timestamp.after.max.ms"
_DIFFERENCE: Final = "message.timestamp.difference.max.ms"
_DEFAULTS_KEY: Final = "values"
_PLAIN_KEY: Final = "config"


class TopicConfig(TopicSettings):
    """A snapshot of a topic's settings; `config.retention_ms` is the setting `retention.ms`.

    Beyond the settings: `is_compacted`, `is_deleted_by_retention` (from cleanup.policy) and `is_log_append_time`.
    `message_timestamp_before_max_ms` and `.._after_max_ms` already respect the older `..difference.max.ms`.
    """

    is_compacted: bool
    is_deleted_by_retention: bool
    is_log_append_time: bool
    overrides: Mapping[str, str]
    """The texts the topic has of its own."""
    _values: dict[str, Any]

    def __init__(self, broker: BrokerConfig, overrides: Mapping[str, str]) -> None:
        """Raises ConfigError for a wrong value or an unknown name.

        Values that do not fit together are taken, as in Kafka: the broker's settings may change under a topic's, and
        `validate_topic_overrides` looks at them where a topic's change is asked for.
        """
        values = _broker_defaults(broker)
        if overrides:
            values = {**values, **_parse_overrides(overrides)}
        attributes = self.__dict__
        for name, attribute in _ATTRIBUTES.items():
            attributes[attribute] = values[name]
        policy = frozenset(values["cleanup.policy"])
        difference = values[_DIFFERENCE]
        attributes.update(
            cleanup_policy=policy,
            is_compacted="compact" in policy,
            is_deleted_by_retention="delete" in policy,
            is_log_append_time=values["message.timestamp.type"] == "LogAppendTime",
            message_timestamp_before_max_ms=difference if values[_BEFORE] == LONG_MAX else values[_BEFORE],
            message_timestamp_after_max_ms=difference if values[_AFTER] == LONG_MAX else values[_AFTER],
            overrides=MappingProxyType(dict(overrides)),
            _values=values,
        )

    @staticmethod
    def of(broker: BrokerConfig, overrides: Mapping[str, str]) -> TopicConfig:
        """The settings of a topic with these overrides. Raises ConfigError."""
        if overrides:
            return TopicConfig(broker, overrides)
        plain: TopicConfig | None = broker.topic_defaults.get(_PLAIN_KEY)
        if plain is None:
            plain = broker.topic_defaults[_PLAIN_KEY] = TopicConfig(broker, overrides)
        return plain

    def value(self, name: str) -> Any:
        """The parsed value of one setting. Raises KeyError if unknown."""
        return self._values[name]


def validate_topic_overrides(overrides: Mapping[str, str], broker: BrokerConfig | None = None) -> None:
    """Raises ConfigError for a wrong value, an unknown name, or values that contradict each other or the broker's."""
    config = TopicConfig(broker or BrokerConfig(), overrides)
    if overrides:
        _check_together(config)


def topic_rows() -> Mapping[str, Setting]:
    return TopicSettings.ROWS


def broker_synonyms(name: str) -> tuple[str, ...]:
    """The broker settings behind a topic's setting, the strongest first; () for those a topic alone has."""
    return TopicSettings.ROWS[name].synonyms


def usable_overrides(overrides: Mapping[str, str]) -> tuple[dict[str, str], list[ConfigError]]:
    """What can be used of a stored topic's settings, and what is wrong with the rest.

    For loading what another broker or an older version wrote: one bad value must not keep a partition away. Nor must it
    cost records, which the broker's own settings might: in place of one that may have kept some stands what keeps all,
    and acks=all asks for all replicas, where nobody knows for how many.
    """
    stand_ins: dict[str, str] = {}
    usable: dict[str, str] = {}
    problems: list[ConfigError] = []
    for name, text in overrides.items():
        try:
            _parse_overrides({name: text})
        except ConfigError as error:
            problems.append(error)
            stand_ins.update(_STAND_INS.get(name, {}))
        else:
            usable[name] = text
    return usable | stand_ins, problems


def _parse_overrides(overrides: Mapping[str, str]) -> dict[str, Any]:
    parsed: dict[str, Any] = {}
    for name, text in overrides.items():
        row = TopicSettings.ROWS.get(name)
        if row is None:
            raise ConfigError(None, None, f"Unknown topic config name: {name}")
        parsed[name] = row.parse(text)
    return parsed


def _check_together(config: TopicConfig) -> None:
    low, high = config.min_compaction_lag_ms, config.max_compaction_lag_ms
    if low > high:
        raise ConfigError(
            None,
            None,
            f"conflict topic config setting min.compaction.lag.ms ({low}) > max.compaction.lag.ms ({high})",
        )
    if config.value("remote.storage.enable"):
        raise ConfigError(
            None,
            None,
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        )


def _broker_defaults(broker: BrokerConfig) -> dict[str, Any]:
    defaults: dict[str, Any] | None = broker.topic_defaults.get(_DEFAULTS_KEY)
    if defaults is None:
        defaults = {name: _from_broker(row, broker) for name, row in TopicSettings.ROWS.items()}
        broker.topic_defaults[_DEFAULTS_KEY] = defaults
    return defaults


def _from_broker(row: Setting, broker: BrokerConfig) -> Any:
    if not row.synonyms or row.ignored:
        return row.default
    name = row.synonyms[0]
    return broker.value(name) if name == "log.cleanup.policy" else getattr(broker, attribute_name(name))


_ATTRIBUTES: Final = {name: row.attribute for name, row in TopicSettings.ROWS.items()}
