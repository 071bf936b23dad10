"""Watches that outlive connections: kazoo drops its own at each disconnect.

Each remembers what its reader saw. After a disconnect the nodes are read again with kazoo's watch, and where something
else is seen the watch fires.
"""

from __future__ import annotations

import logging
import threading
from enum import Enum
from typing import Final, NamedTuple

from kavka.cluster.registry.base import EventType, Stat, Watch, WatchEvent

log = logging.getLogger(__name__)


class Kind(Enum):
    """What a watch is about: a node's data and existence, or its children."""

    DATA = "data"
    CHILDREN = "children"


Seen = tuple[int, int] | None
"""What a reader saw: (czxid, mzxid) of a node's data, (czxid, pzxid) of its children; None where there was no node."""


class Armed:
    """One watch on one node. `is_set` once its read was answered; `is_spent` once it fired or its session ended."""

    __slots__ = ("is_set", "is_spent", "is_void", "seen", "watch")

    def __init__(self, watch: Watch) -> None:
        self.watch: Final = watch
        self.seen: Seen = None
        self.is_set = False
        self.is_spent = False
        self.is_void = False


class Watched(NamedTuple):
    """A node that somebody watches."""

    kind: Kind
    path: str


class ZooKeeperWatches:
    """Who watches which node. The same callable set twice on a node is called once.

    Threads: any; `_lock` guards the table, and no watch is called with it held.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._table: dict[Watched, dict[Watch, Armed]] = {}

    def arm(self, node: Watched, watch: Watch) -> Armed:
        """To be called before the read that sets the watch is sent; `set_` or `withdraw` follows."""
        with self._lock:
            return self._table.setdefault(node, {}).setdefault(watch, Armed(watch))

    def set_(self, node: Watched, armed: Armed, seen: Seen) -> bool:
        """The read was answered. False: the session has ended since `arm`, and the watch with it."""
        with self._lock:
            if armed.is_void:
                return False
            armed.is_set = True
            armed.seen = seen
            if not armed.is_spent:
                self._table.setdefault(node, {})[armed.watch] = armed
            return True

    def withdraw(self, node: Watched, armed: Armed) -> None:
        """The read failed: no watch is left behind, but for one that an earlier read has set."""
        with self._lock:
            watches = self._table.get(node, {})
            if not armed.is_set and watches.get(armed.watch) is armed:
                del watches[armed.watch]
                if not watches:
                    del self._table[node]

    def fire(self, event: WatchEvent) -> None:
        """Spend the watches that `event` concerns. One that raises is logged: the others still hear of it."""
        spent: dict[Watch, None] = {}
        with self._lock:
            for kind in _CONCERNED[event.type]:
                for armed in self._table.pop(Watched(kind, event.path), {}).values():
                    armed.is_spent = True
                    spent[armed.watch] = None
        _call(spent, event)

    def nodes(self) -> list[Watched]:
        """All that are watched, to be read again after a disconnect."""
        with self._lock:
            return [node for node, watches in self._table.items() if any(armed.is_set for armed in watches.values())]

    def compare(self, node: Watched, seen: Seen) -> None:
        """A node was read again, with kazoo's watch set: fire those that have seen something else."""
        missed: dict[Watch, None] = {}
        with self._lock:
            watches = self._table.get(node, {})
            for watch, armed in list(watches.items()):
                if armed.is_set and armed.seen != seen:
                    armed.is_spent = True
                    missed[watch] = None
                    del watches[watch]
            if not watches:
                self._table.pop(node, None)
        changed = EventType.CHILDREN_CHANGED if node.kind is Kind.CHILDREN else EventType.DATA_CHANGED
        _call(missed, WatchEvent(EventType.DELETED if seen is None else changed, node.path))

    def give_up(self, node: Watched) -> None:
        """A node cannot be watched any more: fire its watches."""
        with self._lock:
            watches = self._table.get(node, {})
            lost = {watch: armed for watch, armed in watches.items() if armed.is_set}
            for watch, armed in lost.items():
                armed.is_spent = True
                del watches[watch]
            if not watches:
                self._table.pop(node, None)
        changed = EventType.CHILDREN_CHANGED if node.kind is Kind.CHILDREN else EventType.DATA_CHANGED
        _call(dict.fromkeys(lost), WatchEvent(changed, node.path))

    def clear(self) -> None:
        """The session ended."""
        with self._lock:
            for watches in self._table.values():
                for armed in watches.values():
                    armed.is_spent = armed.is_void = True
            self._table.clear()


def data_seen(stat: Stat | None) -> Seen:
    return None if stat is None else (stat.czxid, stat.mzxid)


def children_seen(stat: Stat | None) -> Seen:
    return None if stat is None else (stat.czxid, stat.pzxid)


def _call(watches: dict[Watch, None], event: WatchEvent) -> None:
    for watch in watches:
        try:
            watch(event)
        except Exception:
            # A watcher's mistake must not take the registry down.
            log.exception("a watch on %s failed", event.path)


_CONCERNED: Final = {
    EventType.CREATED: (Kind.DATA,),
    EventType.DATA_CHANGED: (Kind.DATA,),
    EventType.CHILDREN_CHANGED: (Kind.CHILDREN,),
    EventType.DELETED: (Kind.DATA, Kind.CHILDREN),
}
