"""Notifications in `/config/changes` that a configuration was written: every broker hears of them and applies it.

`entity_configs.py` leaves them. A broker watches the folder, rereads the entities that are named there, and applies
them. A notification may name an entity twice or one that is gone: what counts is what is read.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Final

from kavka.cluster.registry.base import (
    Delete,
    Registry,
    RegistryError,
    RegistryUnavailableError,
    SessionEvent,
    WatchEvent,
)
from kavka.cluster.znodes.config import DEFAULT_ENTITY, ConfigChange, EntityConfig
from kavka.cluster.znodes.json_data import ZnodeError
from kavka.config.errors import ConfigError

log = logging.getLogger(__name__)

OnTopicConfig = Callable[[str, dict[str, str]], None]
OnBrokerConfig = Callable[[int | None, dict[str, str]], None]
OnEntityConfig = Callable[[str, dict[str, str]], None]

NOTIFICATION_LIFE_MS: Final = 15 * 60 * 1000
"""How long a notification stays for brokers that are slow to read it; as in Kafka."""


class ConfigNotificationListener:
    """Hears of configurations that anyone wrote, and applies them in order.

    Threads: a thread of its own applies; `catch_up` does so on the caller's. Either holds `_lock`, so that callbacks
    never run twice at a time. `_last_seen` and `_failures` are guarded by it. Callbacks may read the registry, whose
    thread sets `_has_missed`.
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
        self._has_missed = False
        self._thread = threading.Thread(target=self._run, name="kavka-config-changes", daemon=True)

    def start(self) -> None:
        """Watch from here on: what was written before is for the caller to read, after this returns."""
        self._registry.on_session_event(self._on_session_event)
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

    def read_topics(self, topics: Sequence[str]) -> None:
        """Read and apply the configurations of topics that this broker hears of first, on the caller's thread.

        What the registry refuses is read again with all else once there is another session.
        """
        try:
            self.refresh([f"topics/{topic}" for topic in topics])
        except RegistryError as error:
            log.warning("configurations of new topics are not known topics=%d error=%s", len(topics), error)

    def refresh(self, entity_paths: Sequence[str]) -> None:
        """Read and apply these on the caller's thread: written or removed without a notification."""
        with self._lock:
            self._reread(entity_paths)

    def _on_watch(self, event: WatchEvent) -> None:
        self._wake.release()

    def _on_session_event(self, event: SessionEvent) -> None:
        if event is SessionEvent.ESTABLISHED:
            # The watch went with the session before, and notifications may have been purged meanwhile.
            self._has_missed = True
            self._wake.release()

    def _run(self) -> None:
        while True:
            self._wake.acquire()
            if self._is_stopped:
                return
            try:
                with self._lock:
                    self._apply(self._registry.children(ConfigChange.PARENT, self._on_watch))
                    if self._has_missed:
                        self._has_missed = False
                        self._reread(self._all_entities())
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

    def _all_entities(self) -> list[str]:
        kinds = ("topics", "brokers", "groups")
        found = self._registry.children_of_many([EntityConfig.path(kind) for kind in kinds])
        return [f"{kind}/{name}" for kind, names in zip(kinds, found, strict=True) for name in names or ()]

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
        """Remove notifications that everyone had time to read. Brokers race for it: who comes late finds nothing."""
        paths = [f"{ConfigChange.PARENT}/{name}" for name in names]
        oldest_ms = self._now_ms() - NOTIFICATION_LIFE_MS
        found = self._registry.get_many(paths)
        old = [
            path for path, node in zip(paths, found, strict=True) if node is not None and node[1].ctime_ms < oldest_ms
        ]
        if old:
            self._registry.pipeline([Delete(path) for path in old])


def _sequence(name: str) -> int:
    """The number at the end of a notification's name; -1 for a stranger."""
    digits = name[-10:]
    return int(digits) if digits.isascii() and digits.isdigit() else -1
