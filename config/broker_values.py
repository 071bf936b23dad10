"""The broker's settings of one moment as values, for whoever checks them or speaks of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from kavka.config.cleaner import CleanerSettings
from kavka.config.cluster import ClusterSettings
from kavka.config.groups import GroupSettings
from kavka.config.kavka_settings import KavkaSettings
from kavka.config.log import LogSettings
from kavka.config.network import NetworkSettings
from kavka.config.quotas import QuotaSettings, RateSettings
from kavka.config.replication import ReplicationSettings
from kavka.config.security import SecuritySettings
from kavka.config.transactions import TransactionSettings
from kavka.config.values import Source


class Original(NamedTuple):
    """A setting's text as it was given."""

    text: str
    source: Source


class BrokerValues(
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
    """What `BrokerConfig` holds; `config.num_io_threads` is the setting `num.io.threads`.

    Settings that are ignored have rows and texts, but no attributes.
    """

    layers: tuple[tuple[Source, Mapping[str, str]], ...]
    """(source, name -> text), the strongest first."""
    _values: dict[str, Any]
    _by_listener: dict[tuple[str, str], Any]

    @property
    def originals(self) -> dict[str, Original]:
        """What was given, by name: the strongest text and where it comes from. Has passwords in clear."""
        merged: dict[str, Original] = {}
        for source, texts in reversed(self.layers):
            merged.update((name, Original(text, source)) for name, text in texts.items())
        return merged

    @property
    def given(self) -> Iterator[tuple[str, str]]:
        """Names and texts of all layers, also those that a stronger one hides. Has passwords in clear."""
        return chain.from_iterable(texts.items() for _, texts in self.layers)

    @property
    def awaits_other_releases(self) -> bool:
        """Whether brokers of Kafka are meant to be in the cluster: its `inter.broker.protocol.version` was given."""
        given = any("inter.broker.protocol.version" in texts for _, texts in self.layers)
        return given and bool(self.zookeeper_connect)

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
