"""Who watches which node: one-shot, fired in the order in which they were set.

Threads: owned by the registry's thread.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from kavka.cluster.registry.base import EventType, Watch, WatchEvent

log = logging.getLogger(__name__)


class WatchTable:
    """Data watches and child watches by path. The same callable set twice on a node is called once, as in ZooKeeper."""

    __slots__ = ("_children", "_data")

    def __init__(self) -> None:
        self._data: dict[str, dict[Watch, None]] = {}
        self._children: dict[str, dict[Watch, None]] = {}

    def watch_data(self, path: str, watch: Watch) -> None:
        self._data.setdefault(path, {})[watch] = None

    def watch_data_of(self, paths: Iterable[str], watch: Watch) -> None:
        for path in paths:
            self.watch_data(path, watch)

    def watch_children(self, path: str, watch: Watch) -> None:
        self._children.setdefault(path, {})[watch] = None

    def fire_all(self, events: Iterable[WatchEvent]) -> None:
        for event in events:
            self.fire(event)

    def fire(self, event: WatchEvent) -> None:
        """Spend the watches that `event` concerns. One that raises is logged: the others still hear of it."""
        watches: dict[Watch, None] = {}
        if event.type is not EventType.CHILDREN_CHANGED:
            watches |= self._data.pop(event.path, {})
        if event.type in (EventType.CHILDREN_CHANGED, EventType.DELETED):
            watches |= self._children.pop(event.path, {})
        for watch in watches:
            try:
                watch(event)
            except Exception:
                # A watcher's mistake must not take the registry down.
                log.exception("a watch on %s failed", event.path)

    def clear(self) -> None:
        self._data.clear()
        self._children.clear()
