"""Notices in `/config/changes` that a configuration was written: every broker hears of them and applies it.

`entity_configs.py` leaves them, `notices.py` says how a broker follows them.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from kavka.cluster.notices import RETRY_S, Notices
from kavka.cluster.promise import Promise
from kavka.cluster.registry.base import (
    InvalidNodeError,
    NotPermittedError,
    Registry,
    RegistryError,
    RegistryUnavailableError,
    SessionEvent,
    Stat,
    Watch,
    WatchEvent,
    validate_path,
)
from kavka.cluster.znodes.config import DEFAULT_ENTITY, ConfigChange, EntityConfig
from kavka.cluster.znodes.json_data import ZnodeError
from kavka.config.errors import ConfigError
from kavka.config.thread_names import thread_name
from kavka.protocol.errors import BrokerError, ErrorCode

log = logging.getLogger(__name__)

Node = tuple[bytes, Stat]
OnTopicConfig = Callable[[str, dict[str, str]], None]
OnBrokerConfig = Callable[[int | None, dict[str, str]], None]
OnUnknownTopic = Callable[[str], None]
OnEntityConfig = Callable[[str, dict[str, str]], None]

PATIENCE_S: Final = 5.0
"""So long who hears of topics waits for their configurations: clients are served by that thread."""

STOP_PATIENCE_S: Final = 30.0

MOST_WAITING: Final = 5_000
"""So many changes may wait to be written."""

_FEW: Final = ("brokers", "groups", "users", "clients", "ips")
_KINDS: Final = ("topics", *_FEW)


class _Asked:
    """Who asked for a topic's configuration, once."""

    __slots__ = ("on_unknown",)

    def __init__(self, on_unknown: OnUnknownTopic) -> None:
        self.on_unknown: Final = on_unknown


class ConfigNotificationListener:
    """Hears of configurations that anyone wrote, and applies them in order.

    Threads: a thread of its own applies, and does what `write` is given; `catch_up` and `refresh` apply on the
    caller's. All hold `_lock`, so that callbacks never run twice at a time, and with it read the registry. It guards
    `_notices`, `_known` and `_failures`. Callbacks may read the registry, whose thread counts `_sessions`.
    `read_topics` is for threads that may wait neither for the registry nor for a disk: `_new_changed`, under which
    nobody reads or applies anything, guards `_new`, `_doubted` and `_is_out_of_touch`.
    """

    def __init__(
        self,
        registry: Registry,
        on_topic_config: OnTopicConfig,
        on_broker_config: OnBrokerConfig,
        now_ms: Callable[[], int],
        on_entity_config: OnEntityConfig | None = None,
        on_unreadable: Callable[[str], None] = lambda _entity_path: None,
    ) -> None:
        """`on_topic_config(name, overrides)`, `on_broker_config(id or None for the default, overrides)`, and for all
        other kinds `on_entity_config(entity path, config)`. `on_unreadable(entity path)`: what counted before goes on
        to, as far as that is safe.
        """
        self._registry = registry
        self._on_topic_config = on_topic_config
        self._on_broker_config = on_broker_config
        self._on_entity_config = on_entity_config
        self._on_unreadable = on_unreadable
        self._lock = threading.Lock()
        self._notices = Notices(registry, [ConfigChange.PARENT], now_ms)
        self._known: set[str] = set()
        """Entities, but for topics, that there were when they were last read."""
        self._failures: dict[str, str] = {}
        self._new_changed = threading.Condition()
        self._new: dict[str, _Asked] = {}
        """Topics that this broker has heard of, and whose configurations are still to be read."""
        self._doubted: set[str] = set()
        """Of these, what was called unknown since its configuration was last read, perhaps behind its back."""
        self._waiting: deque[tuple[Callable[[], None], Promise[None]]] = deque()
        """What is to be written before the next look; no lock, as any of these may be held over a slow disk."""
        self._is_out_of_touch = False
        """Whether the last wait for them was in vain."""
        self._wake = threading.Semaphore(0)
        self._is_stopped = False
        self._sessions = self._sessions_read = 0
        self._thread = threading.Thread(target=self._run, name=thread_name("kavka-config-changes"), daemon=True)

    def start(self) -> None:
        """Watch from here on: what was written before is for the caller to read, after this returns."""
        self._registry.on_session_event(self._on_session_event)
        with self._lock:
            self._notices.begin(self._on_watch)
            self._known = set(self._entities(_FEW))
        self._thread.start()

    def stop(self) -> None:
        with self._new_changed:
            self._is_stopped = True
            self._new_changed.notify_all()
        self._refuse_waiting()
        self._wake.release()
        if self._thread.is_alive():
            self._thread.join(STOP_PATIENCE_S)
            if self._thread.is_alive():
                log.error("the stop goes on without a configuration that a disk still holds up")

    def catch_up(self) -> None:
        """Apply everything written before this call, if nobody else has."""
        with self._lock:
            self._apply()

    def write(self, work: Callable[[], None]) -> Promise[None]:
        """A promise that `work` is done, and that what it has written is applied: both on the thread that applies, for
        who may wait for no disk and no registry. Settled there.

        BrokerError, as `work` raises it; KAFKA_STORAGE_ERROR: it is done, but the registry can't be read now, and will
        be later; REQUEST_TIMED_OUT: too many wait.
        """
        promise: Promise[None] = Promise()
        if len(self._waiting) >= MOST_WAITING:
            promise.fail(BrokerError(ErrorCode.REQUEST_TIMED_OUT, "Too many configurations are to be changed."))
            return promise
        self._waiting.append((work, promise))
        if self._is_stopped:
            self._refuse_waiting()
        self._wake.release()
        return promise

    def failure_of(self, entity_path: str) -> str | None:
        """Why the entity's newest configuration could not be applied, or not by all; None if it was."""
        with self._lock:
            return self._failures.get(entity_path)

    def read_topics(self, topics: Sequence[str], on_unknown: OnUnknownTopic) -> None:
        """Have the configurations of topics applied that this broker hears of first.

        Waits PATIENCE_S at most, and not at all where that was in vain before: what could not be read by then is as
        soon as it can be. `on_unknown(topic)`, which may wait for nothing, is called then, and where what is read is no
        configuration.
        """
        with self._new_changed:
            self._new.update({topic: _Asked(on_unknown) for topic in topics})
            self._wake.release()
            self._new_changed.wait_for(
                lambda: self._is_stopped or self._new.keys().isdisjoint(topics),
                0 if self._is_out_of_touch else PATIENCE_S,
            )
            late = [topic for topic in topics if topic in self._new]
            self._is_out_of_touch = bool(late)
            # What is read meanwhile is applied after it, or once more.
            self._doubted.update(late)
            for topic in late:
                on_unknown(topic)
        if late:
            log.warning("configurations of new topics are not known yet topics=%d first=%s", len(late), late[0])

    def refresh(self, entity_paths: Sequence[str]) -> None:
        """Read and apply these on the caller's thread: written or removed without a notification."""
        with self._lock:
            self._reread(entity_paths)

    def refresh_kinds(self, kinds: Sequence[str]) -> None:
        """The same, of all entities of these kinds; `users` brings the client ids of users with it."""
        with self._lock:
            self._reread(self._entities(kinds))

    def _on_watch(self, event: WatchEvent) -> None:
        self._wake.release()

    def _on_session_event(self, event: SessionEvent) -> None:
        if event is SessionEvent.ESTABLISHED:
            # The watch went with the session before, and notifications may have been purged meanwhile.
            self._sessions += 1
            self._wake.release()

    def _run(self) -> None:
        has_applied = True
        while True:
            self._wake.acquire(timeout=None if has_applied else RETRY_S)
            if self._is_stopped:
                return
            has_applied = self._look()

    def _look(self) -> bool:
        """Apply what is new, and hear of what comes next. False if that has to be tried again."""
        written = [promise for work, promise in self._take_waiting() if _is_done(work, promise)]
        failure = self._attempt()
        for promise in written:
            promise.settle(None, failure)
        return failure is None

    def _attempt(self) -> BrokerError | None:
        try:
            with self._lock:
                sessions = self._sessions
                self._read_new()
                self._apply(self._on_watch)
                if sessions != self._sessions_read:
                    self._reread_all()
                    self._sessions_read = sessions
        except RegistryUnavailableError as error:
            log.warning("changes of configurations are not heard: %s", error)
            return BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
        except RegistryError as error:
            log.error("changes of configurations are not heard: %s", error)
            return BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
        return None

    def _refuse_waiting(self) -> None:
        for _, promise in self._take_waiting():
            promise.fail(BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "The broker stops."))

    def _take_waiting(self) -> list[tuple[Callable[[], None], Promise[None]]]:
        taken = []
        with contextlib.suppress(IndexError):
            while True:
                taken.append(self._waiting.popleft())
        return taken

    def _read_new(self) -> None:
        with self._new_changed:
            new = dict(self._new)
            self._doubted.clear()
        if not new:
            return
        entity_paths = [f"topics/{topic}" for topic in new]
        nodes = self._nodes(entity_paths)
        while True:
            self._apply_nodes(entity_paths, nodes)
            for (topic, asked), entity_path in zip(new.items(), entity_paths, strict=True):
                if entity_path in self._failures:
                    try:
                        asked.on_unknown(topic)
                    except Exception:
                        log.exception("the settings of a topic stay as they are topic=%s", topic)
            with self._new_changed:
                if self._doubted.isdisjoint(new):
                    for topic, asked in new.items():
                        # Who has asked again meanwhile may have heard of another topic of that name.
                        if self._new[topic] is asked:
                            del self._new[topic]
                    self._is_out_of_touch = False
                    self._new_changed.notify_all()
                    return
                self._doubted.clear()

    def _apply(self, watch: Watch | None = None) -> None:
        entities: dict[str, None] = {}
        new = self._notices.new(watch)
        has_missed = self._notices.has_missed
        for path, data in new.items():
            try:
                entity_path = ConfigChange.decode(path.rpartition("/")[2], data)
                validate_path(EntityConfig.path(entity_path))
                entities[entity_path] = None
            except ZnodeError as error:
                log.error("all configurations are read: %s", error)
                has_missed = True
            except InvalidNodeError as error:
                log.error("ignored: %s", error)
        if has_missed:
            self._reread_all()
        else:
            self._reread(list(entities))
        self._notices.done()

    def _reread_all(self) -> None:
        """Also those that are not there any more: nothing is set for them."""
        found = self._entities(_FEW)
        self._reread([*self._entities(("topics",)), *found, *sorted(self._known.difference(found))])
        self._known = set(found)

    def _entities(self, kinds: Sequence[str]) -> list[str]:
        found = self._names_below(kinds)
        return found + self._names_below([f"{user}/clients" for user in found if user.startswith("users/")])

    def _names_below(self, parents: Sequence[str]) -> list[str]:
        names = self._registry.children_of_many([EntityConfig.path(parent) for parent in parents])
        return [f"{parent}/{name}" for parent, below in zip(parents, names, strict=True) for name in below or ()]

    def _reread(self, entity_paths: Sequence[str]) -> None:
        self._apply_nodes(entity_paths, self._nodes(entity_paths))

    def _apply_nodes(self, entity_paths: Sequence[str], nodes: Sequence[Node | RegistryError | None]) -> None:
        for entity_path, node in zip(entity_paths, nodes, strict=True):
            self._failures.pop(entity_path, None)
            if not entity_path.startswith("topics/"):
                (self._known.discard if node is None else self._known.add)(entity_path)
            try:
                self._call_back(entity_path, self._config_in(entity_path, node))
            except (ZnodeError, ConfigError, RegistryError) as error:
                self._failures[entity_path] = str(error)
                log.error("the old configuration stays entity=%s reason=%s", entity_path, error)
            except Exception as error:
                # One bad configuration must not keep the next from being applied.
                self._failures[entity_path] = str(error)
                log.exception("the configuration could not be applied entity=%s", entity_path)

    def _nodes(self, entity_paths: Sequence[str]) -> list[Node | RegistryError | None]:
        """One that may not be read is an error of its own: it has settings, and nobody knows which."""
        paths = [EntityConfig.path(entity_path) for entity_path in entity_paths]
        try:
            return list(self._registry.get_many(paths))
        except (NotPermittedError, InvalidNodeError):
            return [self._node(path) for path in paths]

    def _node(self, path: str) -> Node | RegistryError | None:
        try:
            return self._registry.get_many([path])[0]
        except (NotPermittedError, InvalidNodeError) as error:
            return error

    def _config_in(self, entity_path: str, node: Node | RegistryError | None) -> dict[str, str]:
        try:
            if isinstance(node, RegistryError):
                raise node
            return {} if node is None else EntityConfig.decode(entity_path, node[0])
        except (ZnodeError, RegistryError):
            self._on_unreadable(entity_path)
            raise

    def _call_back(self, entity_path: str, config: dict[str, str]) -> None:
        kind, _, name = entity_path.partition("/")
        if kind == "topics":
            self._on_topic_config(name, config)
        elif kind == "brokers" and name == DEFAULT_ENTITY:
            self._on_broker_config(None, config)
        elif kind == "brokers":
            if not (name.isascii() and name.isdigit() and str(int(name)) == name):
                raise ZnodeError(EntityConfig.path(entity_path), "no broker has such an id")
            self._on_broker_config(int(name), config)
        elif self._on_entity_config is not None:
            self._on_entity_config(entity_path, config)


def _is_done(work: Callable[[], None], promise: Promise[None]) -> bool:
    """Do it. False: it failed, and so does the promise."""
    try:
        work()
    except Exception as failure:  # noqa: BLE001 - handed on to the one who asked
        promise.fail(failure)
        return False
    return True
