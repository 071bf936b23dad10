"""A group's settings at one moment (KIP-1043): what the group has of its own, over what the broker gives to all.

Threads: immutable, so shared freely.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from kavka.config.checks import POSITIVE
from kavka.config.errors import ConfigError
from kavka.config.setting import Settings, setting
from kavka.config.values import CLUSTER_WIDE, INT, MEDIUM

if TYPE_CHECKING:
    from kavka.config.broker_config import BrokerConfig

_SESSION: Final = "consumer.session.timeout.ms"
_HEARTBEAT: Final = "consumer.heartbeat.interval.ms"
_LIMITS: Final = {
    _SESSION: ("group.consumer.min.session.timeout.ms", "group.consumer.max.session.timeout.ms"),
    _HEARTBEAT: ("group.consumer.min.heartbeat.interval.ms", "group.consumer.max.heartbeat.interval.ms"),
}
"""The broker's settings between which a group's own has to be."""


class GroupSettings(Settings):
    """What a group can have of its own. Of Kafka's those are missing that concern share and streams groups."""

    consumer_session_timeout_ms: int = setting(
        _SESSION,
        INT,
        45000,
        "The session of a member of a consumer group.",
        check=POSITIVE,
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        synonyms=("group.consumer.session.timeout.ms",),
    )
    consumer_heartbeat_interval_ms: int = setting(
        _HEARTBEAT,
        INT,
        5000,
        "How often a member of a consumer group gives a sign of life.",
        check=POSITIVE,
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        synonyms=("group.consumer.heartbeat.interval.ms",),
    )


class GroupConfig(GroupSettings):
    """A snapshot of a group's settings; `overrides` are the texts that the group has of its own."""

    overrides: Mapping[str, str]
    _values: dict[str, Any]

    def __init__(self, broker: BrokerConfig, overrides: Mapping[str, str]) -> None:
        """Raises ConfigError for a wrong value or an unknown name."""
        values = {name: broker.value(row.synonyms[0]) for name, row in GroupSettings.ROWS.items()}
        for name, text in overrides.items():
            row = GroupSettings.ROWS.get(name)
            if row is None:
                raise ConfigError(None, None, f"Unknown group config name: {name}")
            values[name] = row.parse(text)
        self.__dict__.update({GroupSettings.ROWS[name].attribute: value for name, value in values.items()})
        self.__dict__.update(overrides=dict(overrides), _values=values)

    def value(self, name: str) -> Any:
        """The parsed value of one setting. Raises KeyError if unknown."""
        return self._values[name]


def validate_group_overrides(overrides: Mapping[str, str], broker: BrokerConfig) -> None:
    """Raises ConfigError for a wrong value, an unknown name, or one outside of the broker's `group.consumer` limits."""
    config = GroupConfig(broker, overrides)
    for name in GroupSettings.ROWS:
        _require_within_limits(config, name, broker)
    _require_longer_session(config)


def usable_group_overrides(
    overrides: Mapping[str, str], broker: BrokerConfig
) -> tuple[dict[str, str], list[ConfigError]]:
    """What can be used of a stored group's settings, and what is wrong with the rest: another version wrote it, or the
    broker's limits have changed.
    """
    usable: dict[str, str] = {}
    problems: list[ConfigError] = []
    for name, text in overrides.items():
        try:
            _require_within_limits(GroupConfig(broker, {name: text}), name, broker)
        except ConfigError as error:
            problems.append(error)
        else:
            usable[name] = text
    for name in (_HEARTBEAT, _SESSION):
        try:
            _require_longer_session(GroupConfig(broker, usable))
        except ConfigError as error:
            if usable.pop(name, None) is not None:
                problems.append(error)
    return usable, problems


def _require_within_limits(config: GroupConfig, name: str, broker: BrokerConfig) -> None:
    lowest, highest = _LIMITS[name]
    value = config.value(name)
    if value < broker.value(lowest):
        raise ConfigError(None, None, f"{name} must be greater than or equal to {lowest}")
    if value > broker.value(highest):
        raise ConfigError(None, None, f"{name} must be less than or equal to {highest}")


def _require_longer_session(config: GroupConfig) -> None:
    if config.consumer_session_timeout_ms <= config.consumer_heartbeat_interval_ms:
        raise ConfigError(None, None, f"{_SESSION} must be greater than {_HEARTBEAT}")
