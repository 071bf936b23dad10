"""What DescribeConfigs says of brokers, topics and groups: every key with its value, its source and its synonyms.

Values are written as Kafka writes them; secrets have none, and what a config provider gave is shown as its reference.
Of a setting's synonyms those are listed that have a value, the strongest first; those before the first of the setting's
own name are left out, as Kafka does (ConfigHelper).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from kavka.config.broker_config import BrokerConfig
from kavka.config.errors import ConfigError
from kavka.config.group_config import GroupConfig
from kavka.config.listener_prefix import base_row, row_of, split_prefix
from kavka.config.setting import Setting
from kavka.config.topic_config import TopicConfig
from kavka.config.topic_settings import TopicSettings
from kavka.config.values import Referred, Source, as_given, render

_UNKNOWN_TYPE: Final = 0


class ConfigSynonym(NamedTuple):
    """A setting that gives, or would give, the value. `value` is None for a secret."""

    name: str
    value: str | None
    source: Source


class ConfigEntry(NamedTuple):
    """One key of a described resource. `type_code` is DescribeConfigs' number, 0 where the type is unknown."""

    name: str
    value: str | None
    source: Source
    is_read_only: bool
    is_sensitive: bool
    synonyms: tuple[ConfigSynonym, ...]
    type_code: int
    documentation: str | None


def describe_broker(config: BrokerConfig) -> list[ConfigEntry]:
    """Every setting of one broker, those it was given without knowing them included (as secrets: who knows)."""
    given = config.originals
    shown = [(name, row) for name, row in BrokerConfig.ALL_ROWS.items() if not row.internal or name in given]
    others = [(name, row_of(name, BrokerConfig.ALL_ROWS)) for name in given if name not in BrokerConfig.ALL_ROWS]
    return [_broker_entry(config, name, row) for name, row in (*shown, *others)]


def describe_cluster_defaults(config: BrokerConfig) -> list[ConfigEntry]:
    """The dynamic defaults of the cluster alone (the broker resource without a name)."""
    texts = dict(config.layers)[Source.DYNAMIC_DEFAULT_BROKER]
    entries = []
    for name, text in texts.items():
        entry = _broker_entry(config, name, row_of(name, BrokerConfig.ALL_ROWS))
        synonyms = tuple(s for s in entry.synonyms if s.source is Source.DYNAMIC_DEFAULT_BROKER)
        value = None if entry.is_sensitive else as_given(text)
        entries.append(entry._replace(value=value, source=Source.DYNAMIC_DEFAULT_BROKER, synonyms=synonyms))
    return entries


def describe_topic(broker: BrokerConfig, topic: TopicConfig) -> list[ConfigEntry]:
    """Every setting of a topic."""
    return [_topic_entry(broker, topic, row) for row in TopicSettings.ROWS.values()]


def describe_group(broker: BrokerConfig, group: GroupConfig) -> list[ConfigEntry]:
    """Every setting of a group."""
    return [_group_entry(broker, group, row) for row in GroupConfig.ROWS.values()]


def broker_synonyms(name: str) -> tuple[str, ...]:
    """The names that may give a broker setting its value, the strongest first."""
    family = _FAMILY_OF.get(name)
    if family is not None:
        return family
    prefixed = split_prefix(name)
    base = base_row(prefixed[1], BrokerConfig.ALL_ROWS) if prefixed else None
    return (name,) if base is None else (name, base.name)


_FAMILIES: Final = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
_FAMILY_OF: Final = {name: family for family in _FAMILIES for name in family}


def _broker_entry(config: BrokerConfig, name: str, row: Setting | None) -> ConfigEntry:
    is_sensitive = row is None or row.is_sensitive
    synonyms = _synonyms(config, name, is_sensitive)
    return ConfigEntry(
        name,
        None if row is None or is_sensitive else _broker_value(config, name, row),
        synonyms[0].source if synonyms else Source.DEFAULT,
        row is None or name != row.name or not row.is_dynamic,
        is_sensitive,
        synonyms,
        _UNKNOWN_TYPE if row is None else int(row.type),
        None if row is None else row.doc,
    )


def _topic_entry(broker: BrokerConfig, topic: TopicConfig, row: Setting) -> ConfigEntry:
    value = render(row.type, topic.value(row.name))
    synonyms = _synonyms(broker, row.synonyms[0], row.is_sensitive) if row.synonyms else ()
    if row.name in topic.overrides:
        synonyms = (ConfigSynonym(row.name, value, Source.DYNAMIC_TOPIC), *synonyms)
    source = synonyms[0].source if synonyms else Source.DEFAULT
    return ConfigEntry(row.name, value, source, False, row.is_sensitive, synonyms, int(row.type), row.doc)


def _group_entry(broker: BrokerConfig, group: GroupConfig, row: Setting) -> ConfigEntry:
    value = render(row.type, group.value(row.name))
    synonyms = _synonyms(broker, row.synonyms[0], row.is_sensitive)
    if row.name in group.overrides:
        synonyms = (ConfigSynonym(row.name, value, Source.DYNAMIC_GROUP), *synonyms)
    return ConfigEntry(row.name, value, synonyms[0].source, False, row.is_sensitive, synonyms, int(row.type), row.doc)


def _synonyms(config: BrokerConfig, name: str, is_sensitive: bool) -> tuple[ConfigSynonym, ...]:
    found = list(_given(config, broker_synonyms(name), is_sensitive))
    while found and found[0].name != name:
        del found[0]
    return tuple(found)


def _given(config: BrokerConfig, names: tuple[str, ...], is_sensitive: bool) -> Iterator[ConfigSynonym]:
    for source, texts in config.layers:
        for name in names:
            if name in texts:
                yield ConfigSynonym(name, None if is_sensitive else as_given(texts[name]), source)
    for name in names:
        row = BrokerConfig.ALL_ROWS.get(name)
        if row is not None and row.default is not None:
            yield ConfigSynonym(name, None if is_sensitive else row.default_text, Source.DEFAULT)


def _broker_value(config: BrokerConfig, name: str, row: Setting) -> str | None:
    text = next((texts[name] for _, texts in config.layers if name in texts), None)
    if isinstance(text, Referred):
        return text.reference
    if row.ignored is None and name == row.name:
        return render(row.type, config.value(name))
    if text is None:
        return row.default_text
    try:
        return render(row.type, row.parse(text))
    except ConfigError:
        return text
