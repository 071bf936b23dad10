"""The settings as they are now: the broker's snapshot, each topic's and each group's overrides, changed while
the broker runs (KIP-226).

Dynamic settings live in the registry, under `/config`. Who watches them there calls `broker_changed`, `topic_changed`
and `group_changed`, which make a new immutable snapshot, swap it in and tell the listeners. What cannot be used of what
is stored (another version wrote it, or it no longer fits the static settings) is logged and left out: it must not
keep a broker down, unless it is a limit of connections, secures them, or keeps records. It stays stored, and counts as
soon as it can.
"""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Protocol

from kavka.broker.settings.stored_settings import StoredSettings
from kavka.broker.settings.usable_settings import snapshot, usable_snapshot
from kavka.config.broker_config import BrokerConfig, changed_settings
from kavka.config.errors import ConfigError
from kavka.config.group_config import GroupConfig, usable_group_overrides
from kavka.config.topic_config import UNREADABLE, TopicConfig, usable_overrides
from kavka.config.values import Source, without_values

TopicListener = Callable[[str, Mapping[str, str]], None]
"""Called with a topic's name and all of its overrides."""

THREAD_COUNTS: Final = (
    "num.network.threads",
    "num.io.threads",
    "num.replica.fetchers",
    "num.recovery.threads.per.data.dir",
    "background.threads",
    "log.cleaner.threads",
)
NONE_SET: Final[Mapping[str, str]] = MappingProxyType({})
UNKNOWN: Final[Mapping[str, str]] = MappingProxyType(usable_overrides({UNREADABLE: ""})[0])
"""Stands for a topic's overrides while nobody knows them."""

log = logging.getLogger(__name__)


class ChangingParts(Protocol):
    """What has to be told of a change of the broker's settings: first to make ready what may fail, then to follow."""

    def prepare(self, config: BrokerConfig) -> None:
        """Open and start what `config` needs beyond what is there, and apply nothing of it yet.

        Raises OSError; what could be opened is there then, until `keep_only`.
        """

    def keep_only(self, configs: Sequence[BrokerConfig]) -> None:
        """Take back what was prepared and none of these needs."""

    def changed(
        self, old: BrokerConfig, new: BrokerConfig, names: frozenset[str], pending: Sequence[BrokerConfig] = ()
    ) -> None:
        """`new` counts from now on, and was prepared; `names` are the settings that differ.

        What was prepared for those that are `pending` stays. Every part is told, whatever becomes of the others; then a
        failure is raised.
        """


class DynamicConfig:
    """Holds the current snapshot.

    Threads: `current`, `topic_overrides`, `topic_config` and `group_config` by any thread, lock-free (each is one read
    of an attribute or a dictionary). Changes come one after another, under `_lock`; the parts and all listeners
    run under it, on the thread that brought the change: they must be short and must not change the configuration.
    But `topic_unknown`, `topic_gone`, and `topic_made_anew`, which is followed by a change, take no lock.
    """

    def __init__(self, static: BrokerConfig, broker_id: int) -> None:
        self.current = static
        self.stored_settings: Final = StoredSettings(static)
        """What reads and makes the texts that are stored."""
        self._broker_id = broker_id
        self._stored_defaults: Mapping[str, str] = NONE_SET
        self._stored_own: Mapping[str, str] = NONE_SET
        self._lock = threading.Lock()
        self._topic_listeners: list[TopicListener] = []
        self._broker_listeners: list[Callable[[], object]] = []
        self._parts: ChangingParts | None = None
        self._pending: dict[PendingChange, BrokerConfig] = {}
        self._topic_overrides: dict[str, Mapping[str, str]] = {}
        self._groups: dict[str, GroupConfig] = {}
        self._plain_group = GroupConfig(static, {})
        self._topic_configs: dict[str, TopicConfig] = {}

    def on_topic_change(self, listener: TopicListener) -> None:
        """Have `listener` called after every change of a topic's overrides."""
        self._topic_listeners.append(listener)

    def on_broker_change(self, listener: Callable[[], object]) -> None:
        """Have `listener` called after every change of the broker's settings."""
        self._broker_listeners.append(listener)

    def follow(self, parts: ChangingParts) -> None:
        """Have `parts` changed with the broker's settings from now on."""
        with self._lock:
            self._parts = parts

    def undisturbed(self, step: Callable[[], None]) -> None:
        """Run `step` while nobody changes the settings."""
        with self._lock:
            step()

    def check_broker_change(self, broker_id: int | None, new: Mapping[str, str]) -> BrokerConfig:
        """The snapshot that there will be when `new` is stored for this broker, or with None for the cluster.

        Raises ConfigError where the change is wrong (see the function), or the next start would be refused with it.
        """
        with self._lock:
            stored_defaults, stored_own = self._stored_defaults, self._stored_own
        before = stored_defaults if broker_id is None else stored_own
        texts, unread = self.stored_settings.read(new)
        unread_before = {name for name, _ in self.stored_settings.read(before)[1]}
        for name, reason in unread:
            # A provider that is not defined is not among the names.
            if before.get(name) != new.get(name) or (name not in new and name not in unread_before):
                raise reason
        try:
            if broker_id is None:
                check_broker_change(self.current, texts, layer(self.current, Source.DYNAMIC_BROKER))
                return usable_snapshot(self.current, texts, self.stored_settings.read(stored_own)[0])[0]
            check_broker_change(self.current, layer(self.current, Source.DYNAMIC_DEFAULT_BROKER), texts)
            return usable_snapshot(self.current, self.stored_settings.read(stored_defaults)[0], texts)[0]
        except ConfigError as error:
            raise without_values(error, [*texts.items(), *self.current.given]) from None

    def prepare(self, change: "PendingChange", config: BrokerConfig) -> None:
        """See `PendingChange.prepare`."""
        with self._lock:
            if self._parts is None:
                return
            self._prepare(self._parts, config, "it")
            self._pending[change] = config

    def end(self, change: "PendingChange") -> None:
        """See `PendingChange.end`."""
        with self._lock:
            if self._pending.pop(change, None) is not None:
                self._keep_only_wanted()

    def _prepare(self, parts: ChangingParts, config: BrokerConfig, what: str) -> None:
        """Do what may fail of a change, or take it back; `what` is it for people. Raises ConfigError. Lock held."""
        try:
            parts.prepare(config)
        except (OSError, ConfigError) as failure:
            self._keep_only_wanted()
            reason = failure.strerror if isinstance(failure, OSError) else str(failure)
            error = ConfigError(None, None, f"{what} cannot be applied: {reason}")
            raise without_values(error, config.given) from failure

    def _keep_only_wanted(self) -> None:
        """Take back what neither the present settings nor a pending change needs. Lock held."""
        if self._parts is not None:
            self._parts.keep_only([self.current, *self._pending.values()])

    def broker_started(self, cluster_defaults: Mapping[str, str], per_broker: Mapping[str, str]) -> None:
        """These were stored before the start. Both at once: either may need the other to be usable.

        Raises ConfigError for a limit of connections, or what secures them or keeps records, that cannot be used.
        """
        with self._lock:
            self._stored_defaults, self._stored_own = cluster_defaults, per_broker
            self._apply_stored()

    def broker_changed(self, broker_id: int | None, stored: Mapping[str, str]) -> None:
        """The dynamic settings of one broker, or with None the cluster's defaults, are now `stored`.

        Those of other brokers are none of this one's business. Raises ConfigError for what cannot be applied, with
        nothing changed, and whatever a part of the broker that failed to follow raises.
        """
        if broker_id is not None and broker_id != self._broker_id:
            return
        with self._lock:
            if broker_id is None:
                self._stored_defaults = stored
            else:
                self._stored_own = stored
            self._apply_stored()

    def _apply_stored(self) -> None:
        """Make what is stored count. Lock held."""
        old = self.current
        defaults, unread_defaults = self.stored_settings.read(self._stored_defaults)
        own, unread = self.stored_settings.read(self._stored_own)
        unread += [each for each in unread_defaults if each.name not in own]
        new, unused = usable_snapshot(old, defaults, own, unread)
        for name, reason in unused:
            log.warning("stored dynamic setting is not used name=%s reason=%s", name, reason)
        changed = changed_settings(old, new)
        if self._parts is not None and changed:
            # Of what another broker or tool has stored: here it was prepared before.
            self._prepare(self._parts, new, ",".join(sorted(changed)))
        self.current = new
        if not changed:
            return
        self._topic_configs = {}
        log.info("settings changed names=%s", ",".join(sorted(changed)))
        try:
            if self._parts is not None:
                self._parts.changed(old, new, changed, list(self._pending.values()))
        finally:
            # Also where a part has failed: nobody tells them of this change again.
            for listener in self._broker_listeners:
                listener()

    def topic_changed(self, topic: str, stored: Mapping[str, str]) -> None:
        """A topic's overrides are now `stored`."""
        usable, problems = usable_overrides(stored)
        for problem in problems:
            log.warning("stored topic setting is not used topic=%s reason=%s now=%s", topic, problem, usable)
        with self._lock:
            if usable == self._topic_overrides.get(topic, NONE_SET):
                return
            if usable:
                self._topic_overrides[topic] = MappingProxyType(usable)
            else:
                self._topic_overrides.pop(topic, None)
            self._topic_configs.pop(topic, None)
            for listener in self._topic_listeners:
                listener(topic, usable)

    def topic_unknown(self, topic: str) -> None:
        """A topic is here whose overrides can't be read yet: unless some are known, all of its records are kept, and
        acks=all asks for all of its replicas, however few the topic itself may ask for. Until `topic_changed`.

        Waits for nobody who changes settings; logs that are here already keep theirs.
        """
        self._topic_overrides.setdefault(topic, UNKNOWN)
        self._topic_configs.pop(topic, None)

    def topic_gone(self, topic: str) -> None:
        """The topic is deleted, and its logs go with the settings that they have. Waits for nobody."""
        self._topic_overrides.pop(topic, None)
        self._topic_configs.pop(topic, None)

    def topic_made_anew(self, topic: str) -> None:
        """What is known under that name was another topic's: as `topic_unknown`, whatever is known."""
        self._topic_overrides[topic] = UNKNOWN
        self._topic_configs.pop(topic, None)

    def group_changed(self, group_id: str, stored: Mapping[str, str]) -> None:
        """A group's overrides are now `stored`."""
        usable, problems = usable_group_overrides(stored, self.current)
        for problem in problems:
            log.warning("stored group setting is not used group=%s reason=%s", group_id, problem)
        with self._lock:
            if usable:
                self._groups[group_id] = GroupConfig(self.current, usable)
            else:
                self._groups.pop(group_id, None)

    def group_config(self, group_id: str) -> GroupConfig:
        """The group's settings over the broker's, which no client changes while the broker runs."""
        return self._groups.get(group_id) or self._plain_group

    def configured_groups(self) -> list[str]:
        """The groups that have settings of their own."""
        return sorted(self._groups.copy())

    def topic_overrides(self, topic: str) -> Mapping[str, str]:
        """What the topic has of its own."""
        return self._topic_overrides.get(topic, NONE_SET)

    def topic_config(self, topic: str) -> TopicConfig:
        """The topic's settings over the broker's."""
        configs = self._topic_configs
        config = configs.get(topic)
        if config is None:
            overrides = self.topic_overrides(topic)
            config = TopicConfig.of(self.current, overrides)
            if not overrides:
                return config
            configs[topic] = config
            if self._topic_overrides.get(topic) is not overrides:
                # Changed meanwhile, maybe after the old one was removed from here.
                configs.pop(topic, None)
        return config


class PendingChange:
    """A change of the broker's settings on its way to the registry. It is the only one that can take back its own.

    Threads: any.
    """

    def __init__(self, config: DynamicConfig) -> None:
        self._config = config

    def prepare(self, changed: BrokerConfig) -> None:
        """Do what may fail of a change to `changed`, before it is stored: all or nothing. Raises ConfigError.

        Again where another writer was faster: then only the last one counts.
        """
        self._config.prepare(self, changed)

    def end(self) -> None:
        """It has been stored and applied, or it will not be: what was prepared and nobody needs goes."""
        self._config.end(self)


def layer(config: BrokerConfig, source: Source) -> Mapping[str, str]:
    """What one source gives to a snapshot: name to text."""
    return dict(config.layers)[source]


def check_broker_change(
    current: BrokerConfig, cluster_defaults: Mapping[str, str], per_broker: Mapping[str, str]
) -> BrokerConfig:
    """The snapshot that these dynamic settings would make.

    Raises ConfigError for what cannot be changed so, is wrong, does not fit together, promises a safety that would not
    be given, or changes a number of threads by more than a factor of two at a time (KIP-226).
    """
    new = snapshot(current, cluster_defaults, per_broker)
    for name in THREAD_COUNTS:
        before, after = current.value(name), new.value(name)
        if after == before:
            continue
        if after < 1:
            raise ConfigError(name, after, "value should be at least 1")
        if after < before // 2:
            raise ConfigError(name, after, f"value should be at least half the current value {before}")
        if after > before * 2:
            raise ConfigError(name, after, f"value should not be greater than double the current value {before}")
    return new
