"""The broker's settings at one moment: typed attributes, checked together, never changed.

A value comes from the strongest layer that has it: a dynamic setting of this broker, a dynamic default of the cluster,
the static settings (command line, environment, file: see sources.py), the default. A change makes a new snapshot
(`with_dynamic`), and whoever needs to know asks `changed_settings` for what differs.

Threads: immutable, so shared freely.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from kavka.config import ignored
from kavka.config.cleaner import CleanerSettings
from kavka.config.cluster import ClusterSettings
from kavka.config.cross_checks import check_together
from kavka.config.dynamic import check_dynamic_names
from kavka.config.groups import GroupSettings
from kavka.config.listener_prefix import base_row, split_prefix
from kavka.config.log import LogSettings
from kavka.config.network import NetworkSettings
from kavka.config.own import KavkaSettings
from kavka.config.quotas import QuotaSettings, RateSettings
from kavka.config.replication import ReplicationSettings
from kavka.config.resolved import resolve
from kavka.config.security import SecuritySettings
from kavka.config.setting import Setting
from kavka.config.transactions import TransactionSettings
from kavka.config.values import Source

if TYPE_CHECKING:
    from kavka.config.sources import Loaded

_EMPTY: Final[Mapping[str, str]] = MappingProxyType({})


class Original(NamedTuple):
    """A setting's text as it was given."""

    text: str
    source: Source


class BrokerConfig(
    NetworkSettings,
    LogSettings,
    CleanerSettings,
    ClusterSettings,
    ReplicationSettings,
    GroupSettings,
    TransactionSettings,
    QuotaSettings,
    RateSettings,
    SecuritySettings,
    KavkaSettings,
):
    """A snapshot of all broker settings; `config.num_io_threads` is the setting `num.io.threads`.

    Settings that are ignored have rows and texts, but no attributes. Raises ConfigError for a wrong value.
    """

    ALL_ROWS: ClassVar[dict[str, Setting]]
    DEFAULT_VALUES: ClassVar[dict[str, Any]]

    def __init__(
        self,
        static: Mapping[str, str] = _EMPTY,
        cluster_defaults: Mapping[str, str] = _EMPTY,
        per_broker: Mapping[str, str] = _EMPTY,
    ) -> None:
        static = _with_synonyms(static)
        given = {**static, **cluster_defaults, **per_broker}
        values = self.DEFAULT_VALUES.copy()
        by_listener: dict[tuple[str, str], Any] = {}
        for name, text in given.items():
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

    layers: tuple[tuple[Source, Mapping[str, str]], ...]
    """(source, name -> text), the strongest first."""
    topic_defaults: dict[str, Any]
    """TopicConfig's cache of what this snapshot gives to topics; written once, by whichever thread is first."""
    _values: dict[str, Any]
    _by_listener: dict[tuple[str, str], Any]

    @staticmethod
    def load(path: Path | str | None, overrides: list[str], environ: Mapping[str, str]) -> Loaded:
        """Reads the file (None: none), the environment's KAFKA_* variables and `name=value` overrides.

        Raises ConfigError, also where the file cannot be read.
        """
        from kavka.config.sources import load

        return load(path, overrides, environ)

    @classmethod
    def rows(cls) -> Iterator[Setting]:
        """Every row, those of ignored settings too."""
        return iter(cls.ALL_ROWS.values())

    @property
    def originals(self) -> dict[str, Original]:
        """What was given, by name: the strongest text and where it comes from. Has passwords in clear."""
        merged: dict[str, Original] = {}
        for source, texts in reversed(self.layers):
            merged.update((name, Original(text, source)) for name, text in texts.items())
        return merged

    def value(self, name: str) -> Any:
        """The parsed value of one setting as given, before it is resolved with others. Raises KeyError if unknown."""
        return self._values[name]

    def listener_value(self, listener_name: str, name: str) -> Any:
        """A setting as the listener has it: by its prefix `listener.name.NAME.`, else the broker's. Raises KeyError."""
        prefixed = self._by_listener.get((listener_name.lower(), name))
        return self._values[name] if prefixed is None else prefixed

    def listener_given(self, listener_name: str, name: str) -> Any:
        """What was given with the listener's prefix alone (as `plain.sasl.jaas.config` can be); None if nothing."""
        return self._by_listener.get((listener_name.lower(), name))

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
