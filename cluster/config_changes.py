"""Configurations in the tree: writing them with a notice, and hearing of what others wrote.

Every write leaves a sequential notice in `/config/changes`; every broker watches that folder, rereads the entities that
are named there, and applies them. A notice may name an entity twice or one that is gone: what counts is what is read.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from kavka.cluster.registry.base import (
    BadVersionError,
    Check,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    Operation,
    Registry,
    RegistryError,
    RegistryUnavailableError,
    SetData,
    WatchEvent,
    create_path,
)
from kavka.cluster.znodes.config import DEFAULT_ENTITY, ConfigChange, EntityConfig
from kavka.cluster.znodes.json_data import ZnodeError
from kavka.cluster.znodes.topic import TopicAssignment
from kavka.config.errors import ConfigError
from kavka.config.topic_config import KEPT
from kavka.protocol.errors import BrokerError, ErrorCode

log = logging.getLogger(__name__)

OnTopicConfig = Callable[[str, dict[str, str]], None]
OnBrokerConfig = Callable[[int | None, dict[str, str]], None]
OnEntityConfig = Callable[[str, dict[str, str]], None]
ConfigUpdate = Callable[[dict[str, str]], dict[str, str]]

NOTICE_LIFE_MS: Final = 15 * 60 * 1000
"""How long a notice stays for brokers that are slow to read it; as in Kafka."""


def read_topic_config(registry: Registry, topic: str) -> dict[str, str]:
    """What was set for one topic; empty without such a node. Raises ZnodeError."""
    return read_config(registry, f"topics/{topic}")


def read_config(registry: Registry, entity_path: str) -> dict[str, str]:
    """What was set for `topics/T`, `brokers/1`, `brokers/<default>`, ...; empty without such a node."""
    found = registry.get_many([EntityConfig.path(entity_path)])[0]
    return {} if found is None else EntityConfig.decode(entity_path, found[0])


def read_configs(
    registry: Registry, kind: str, unreadable: Mapping[str, str] = MappingProxyType({})
) -> dict[str, dict[str, str]]:
    """What was set for all entities of a kind (`topics`, `brokers`) in one go, without those that have nothing set.

    One that cannot be read is logged, and `unreadable` stands for what it has; see `unreadable_configs`.
    """
    try:
        names = registry.children(EntityConfig.path(kind))
    except NoNodeError:
        return {}
    found = registry.get_many([EntityConfig.path(f"{kind}/{name}") for name in names])
    configs = {}
    for name, node in zip(names, found, strict=True):
        try:
            config = EntityConfig.decode(f"{kind}/{name}", node[0]) if node is not None else {}
        except ZnodeError as error:
            log.error("the configuration is left out: %s", error)
            config = dict(unreadable)
        if config:
            configs[name] = config
    return configs


def unreadable_configs(registry: Registry, kind: str) -> dict[str, str]:
    """Those of a kind that `read_configs` leaves out, with the reason."""
    reasons: dict[str, str] = {}
    try:
        names = registry.children(EntityConfig.path(kind))
    except NoNodeError:
        return reasons
    for name in names:
        try:
            read_config(registry, f"{kind}/{name}")
        except ZnodeError as error:
            reasons[name] = str(error)
    return reasons


def forget_config(registry: Registry, entity_path: str) -> None:
    """Leave an entity with nothing set, whatever there is now."""
    path = EntityConfig.path(entity_path)
    registry.multi([Delete(path), Create(ConfigChange.PREFIX, ConfigChange.encode(entity_path), sequential=True)])


def write_config(
    registry: Registry, entity_path: str, update: Mapping[str, str] | ConfigUpdate, *, validate_only: bool = False
) -> dict[str, str]:
    """Replace an entity's configuration, or derive it from what is stored; gives the new one.

    A function given as `update` runs again when another writer was faster. Of a topic's that cannot be read it is given
    what counts in their place, and they are replaced. Raises what it raises, ZnodeError for what else cannot be read,
    and BrokerError(UNKNOWN_TOPIC_OR_PARTITION) for a topic that does not exist.
    """
    path = EntityConfig.path(entity_path)
    kind, _, name = entity_path.partition("/")
    topic_path = TopicAssignment.path(name) if kind == "topics" else None
    while True:
        stored = registry.get_many([path] if topic_path is None else [path, topic_path])
        if stored[-1] is None and topic_path is not None:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{name}' does not exist.")
        node = stored[0]
        before = {} if node is None else _decoded(entity_path, node[0])
        config = update(before) if callable(update) else dict(update)
        if validate_only:
            return config
        data = EntityConfig.encode(config)
        operations: list[Operation] = [] if topic_path is None else [Check(topic_path)]
        operations.append(Create(path, data) if node is None else SetData(path, data, node[1].version))
        operations.append(Create(ConfigChange.PREFIX, ConfigChange.encode(entity_path), sequential=True))
        try:
            registry.multi(operations)
        except (BadVersionError, NodeExistsError):
            continue
        except NoNodeError as error:
            if error.path == topic_path:
                continue
            create_path(registry, ConfigChange.PARENT)
            create_path(registry, path.rpartition("/")[0])
            continue
        return config


def _decoded(entity_path: str, data: bytes) -> dict[str, str]:
    try:
        return EntityConfig.decode(entity_path, data)
    except ZnodeError:
        if not entity_path.startswith("topics/"):
            raise
        return dict(KEPT)


class ConfigChanges:
    """Hears of configurations that anyone wrote, and applies them in order.

    Threads: a thread of its own applies; `catch_up` does so on the caller's. Either holds `_lock`, so that callbacks
    never run twice at a time. `_last_seen` and `_failures` are guarded by it. Callbacks may read the registry.
    """

    def __init__(
        self,
        registry: Registry,
        on_topic_config: OnTopicConfig,
        on_broker_config: OnBrokerConfig,
        now_ms: Callable[[], int],
        on_entity_config: OnEntityConfig | None = None,
    ) -> None:
        """`on_topic_config(name, overrides)`, `on_broker_config(id or None for the default, overrides)`, and for all
        other kinds `on_entity_config(entity path, config)`.
        """
        self._registry = registry
        self._on_topic_config = on_topic_config
        self._on_broker_config = on_broker_config
        self._on_entity_config = on_entity_config
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._last_seen = -1
        self._failures: dict[str, str] = {}
        self._wake = threading.Semaphore(0)
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, name="kavka-config-changes", daemon=True)

    def start(self) -> None:
        """Watch from here on: what was written before is for the caller to read, after this returns."""
        with self._lock:
            names = self._registry.children(ConfigChange.PARENT, self._on_watch)
            self._last_seen = max(map(_sequence, names), default=-1)
        self._thread.start()

    def stop(self) -> None:
        self._is_stopped = True
        self._wake.release()
        if self._thread.is_alive():
            self._thread.join()

    def catch_up(self) -> None:
        """Apply everything written before this call, if nobody else has."""
        with self._lock:
            self._apply(self._registry.children(ConfigChange.PARENT))

    def failure_of(self, entity_path: str) -> str | None:
        """Why the entity's newest configuration could not be applied, or not by all; None if it was."""
        with self._lock:
            return self._failures.get(entity_path)

    def refresh(self, entity_paths: Sequence[str]) -> None:
        """Read and apply these on the caller's thread: written or removed without a notice."""
        with self._lock:
            self._reread(entity_paths)

    def _on_watch(self, event: WatchEvent) -> None:
        self._wake.release()

    def _run(self) -> None:
        while True:
            self._wake.acquire()
            if self._is_stopped:
                return
            try:
                with self._lock:
                    self._apply(self._registry.children(ConfigChange.PARENT, self._on_watch))
            except RegistryUnavailableError as error:
                log.warning("changes of configurations are not heard: %s", error)
            except RegistryError as error:
                log.error("changes of configurations are not heard: %s", error)

    def _apply(self, names: list[str]) -> None:
        new = sorted((name for name in names if _sequence(name) > self._last_seen), key=_sequence)
        if not new:
            return
        found = self._registry.get_many([f"{ConfigChange.PARENT}/{name}" for name in new])
        entities: dict[str, None] = {}
        for name, node in zip(new, found, strict=True):
            self._last_seen = max(self._last_seen, _sequence(name))
            try:
                if node is not None:
                    entities[ConfigChange.decode(name, node[0])] = None
            except ZnodeError as error:
                log.error("ignored: %s", error)
        self._reread(list(entities))
        self._purge(names)

    def _reread(self, entity_paths: Sequence[str]) -> None:
        found = self._registry.get_many([EntityConfig.path(entity_path) for entity_path in entity_paths])
        for entity_path, node in zip(entity_paths, found, strict=True):
            self._failures.pop(entity_path, None)
            try:
                self._call_back(entity_path, {} if node is None else EntityConfig.decode(entity_path, node[0]))
            except (ZnodeError, ConfigError) as error:
                self._failures[entity_path] = str(error)
                log.error("the old configuration stays entity=%s reason=%s", entity_path, error)
            except Exception as error:
                # One bad configuration must not keep the next from being applied.
                self._failures[entity_path] = str(error)
                log.exception("the configuration could not be applied entity=%s", entity_path)

    def _call_back(self, entity_path: str, config: dict[str, str]) -> None:
        kind, _, name = entity_path.partition("/")
        if kind == "topics":
            self._on_topic_config(name, config)
        elif kind == "brokers" and name == DEFAULT_ENTITY:
            self._on_broker_config(None, config)
        elif kind == "brokers" and name.isdigit():
            self._on_broker_config(int(name), config)
        elif self._on_entity_config is not None:
            self._on_entity_config(entity_path, config)

    def _purge(self, names: list[str]) -> None:
        """Remove notices that everyone had time to read. Brokers race for it: who comes late finds nothing."""
        paths = [f"{ConfigChange.PARENT}/{name}" for name in names]
        oldest_ms = self._now_ms() - NOTICE_LIFE_MS
        found = self._registry.get_many(paths)
        old = [
            path for path, node in zip(paths, found, strict=True) if node is not None and node[1].ctime_ms < oldest_ms
        ]
        if old:
            self._registry.pipeline([Delete(path) for path in old])


def _sequence(name: str) -> int:
    """The number at the end of a notice's name, -1 for a stranger."""
    digits = name[-10:]
    return int(digits) if digits.isascii() and digits.isdigit() else -1
