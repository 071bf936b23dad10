"""The broker's settings at one moment: typed attributes, checked together, never changed.

A value comes from the strongest layer that has it: a dynamic setting of this broker, a dynamic default of the cluster,
the static settings (command line, environment, file: see sources.py), the default. A change makes a new snapshot
(`with_dynamic`), and whoever needs to know asks `changed_settings` for what differs.

Threads: immutable, so shared freely.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from types import MappingProxyType
from typing import Any, ClassVar, Final

from kavka.config import ignored
from kavka.config.broker_values import BrokerValues
from kavka.config.cross_checks import check_together
from kavka.config.dynamic_names import check_dynamic_names
from kavka.config.errors import ConfigError
from kavka.config.listener_prefix import base_row, split_prefix
from kavka.config.resolved import resolve
from kavka.config.setting import Setting
from kavka.config.values import Source, without_values

_EMPTY: Final[Mapping[str, str]] = MappingProxyType({})


class BrokerConfig(BrokerValues):
    """A snapshot of all broker settings. Raises ConfigError for a wrong value."""

    ALL_ROWS: ClassVar[dict[str, Setting]]
    DEFAULT_VALUES: ClassVar[dict[str, Any]]

    def __init__(
        self,
        static: Mapping[str, str] = _EMPTY,
        cluster_defaults: Mapping[str, str] = _EMPTY,
        per_broker: Mapping[str, str] = _EMPTY,
    ) -> None:
        static = _with_synonyms(static)
        try:
            self._fill(static, cluster_defaults, per_broker)
        except ConfigError as error:
            given = chain(static.items(), cluster_defaults.items(), per_broker.items())
            raise without_values(error, given) from None

    def _fill(
        self, static: Mapping[str, str], cluster_defaults: Mapping[str, str], per_broker: Mapping[str, str]
    ) -> None:
        values = self.DEFAULT_VALUES.copy()
        by_listener: dict[tuple[str, str], Any] = {}
        # What a stronger layer hides is parsed too: it counts as soon as that is taken away.
        for layer in (static, cluster_defaults, per_broker):
            for name, text in layer.items():
                row = self.ROWS.get(name)
                if row is not None:
                    values[name] = row.parse(text)
                elif (prefixed := split_prefix(name)) and (base := base_row(prefixed[1], self.ROWS)):
                    by_listener[prefixed] = base.parse(text, name)
        attributes = self.__dict__
        for name, attribute in _ATTRIBUTES.items():
            attributes[attribute] = values[name]
        attributes.update(resolve(values))
        attributes["_values"] = values
        attributes["_by_listener"] = by_listener
        attributes["layers"] = (
            (Source.DYNAMIC_BROKER, MappingProxyType(dict(per_broker))),
            (Source.DYNAMIC_DEFAULT_BROKER, MappingProxyType(dict(cluster_defaults))),
            (Source.STATIC_BROKER, MappingProxyType(dict(static))),
        )
        attributes["topic_defaults"] = {}
        check_together(self)

    topic_defaults: dict[str, Any]
    """TopicConfig's cache of what this snapshot gives to topics; written once, by whichever thread is first."""

    @classmethod
    def rows(cls) -> Iterator[Setting]:
        """Every row, those of ignored settings too."""
        return iter(cls.ALL_ROWS.values())

    def with_dynamic(self, cluster_defaults: Mapping[str, str], per_broker: Mapping[str, str]) -> BrokerConfig:
        """A new snapshot with these dynamic settings in place of the present ones.

        Raises ConfigError for a name that cannot be changed so, a wrong value, or values that do not fit together.
        """
        check_dynamic_names(cluster_defaults, self.ALL_ROWS, per_broker=False)
        check_dynamic_names(per_broker, self.ALL_ROWS, per_broker=True)
        static = self.layers[-1][1]
        return BrokerConfig(static, cluster_defaults, per_broker)


def changed_settings(old: BrokerConfig, new: BrokerConfig) -> frozenset[str]:
    """Names whose values differ between two snapshots, those with a listener's prefix included."""
    missing = object()
    changed = {name for name, value in new._values.items() if old._values[name] != value}
    for key in old._by_listener.keys() | new._by_listener.keys():
        if old._by_listener.get(key, missing) != new._by_listener.get(key, missing):
            changed.add(f"listener.name.{key[0]}.{key[1]}")
    return frozenset(changed)


def _with_synonyms(given: Mapping[str, str]) -> Mapping[str, str]:
    """broker.id and node.id stand for each other where only one is given."""
    for name, other in (("broker.id", "node.id"), ("node.id", "broker.id")):
        if name in given and other not in given:
            return {**given, other: given[name]}
    return given


BrokerConfig.ALL_ROWS = {**BrokerConfig.ROWS, **{row.name: row for row in ignored.ROWS}}
_ATTRIBUTES: Final = {name: row.attribute for name, row in BrokerConfig.ROWS.items()}
BrokerConfig.DEFAULT_VALUES = {name: row.default for name, row in BrokerConfig.ROWS.items()}
