"""Notices that brokers leave one another in a folder of the tree: that a configuration, ACLs or a token were written.

Who writes leaves one; every broker watches the folder, and reads anew what the notice names. A notice may name
something twice, or what is gone: what counts is what is read. Each stays for a while, for brokers that are slow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from kavka.cluster.registry.base import Delete, Registry, Stat, Watch, children_or_none, get_readable

NOTICE_LIFE_MS: Final = 15 * 60 * 1000
"""How long a notice stays; as in Kafka."""

RETRY_S: Final = 5.0
"""What could not be read is read again after this."""


class Notices:
    """Which notices one broker has read. Threads: one at a time, which is its owner's to see to.

    `begin`, then again and again: `new`, whatever that asks for, `done`. What fails on the way is new the next time,
    too. All of it raises RegistryError.
    """

    def __init__(self, registry: Registry, parents: Sequence[str], now_ms: Callable[[], int]) -> None:
        """`parents`: the folders."""
        self._registry: Final = registry
        self._parents: Final = parents
        self._now_ms: Final = now_ms
        self._read: dict[str, int | None] = {}
        """Those that were there at the last look, by their paths: when each was left (ms), where that may be known."""
        self._found: dict[str, int | None] = {}
        """The same of the look that is not done."""
        self.has_missed = False
        """Whether some may not have been read at that look, and will not be: whatever they may tell of has to be."""
        self._folders: dict[str, int] = {}
        self._found_folders: dict[str, int] = {}
        """When they were made, by zxids: in one that was made anew the names begin again."""

    def begin(self, watch: Watch) -> None:
        """From here on: what was written before is for the caller to read, after this returns."""
        self.new(watch)
        self._read = self._found
        self._folders = self._found_folders

    def new(self, watch: Watch | None = None) -> dict[str, bytes]:
        """What the notices say that were not read, by their paths. `watch` hears of the next one."""
        # In this order: of a folder that is made anew in between the watch tells.
        self._found_folders = {parent: self._made_at(parent) for parent in self._parents}
        paths, unread = [], []
        for parent, made_at in self._found_folders.items():
            read = self._read if made_at == self._folders.get(parent) else {}
            here = [f"{parent}/{name}" for name in children_or_none(self._registry, parent, watch)]
            paths += here
            unread += [path for path in here if path not in read]
        # Each once, and with all that is to be known of it: there may be thousands, and one comes for each change.
        nodes = self._nodes(unread)
        self.has_missed = len(nodes) < len(unread) or self._found_folders != self._folders
        self._found = {path: nodes[path][1].ctime_ms if path in nodes else self._read.get(path) for path in paths}
        return {path: data for path, (data, _) in nodes.items()}

    def done(self) -> None:
        """What `new` has given is read; those go that everyone had time to read.

        Brokers race for that: who comes late finds nothing.
        """
        self._read = self._found
        self._folders = self._found_folders
        left_ms = {path: each for path, each in self._read.items() if each is not None}
        # By the tree's clock, too: a broker whose own is ahead would take them from all others before they hear of any.
        oldest_ms = min(self._now_ms(), max(left_ms.values(), default=0)) - NOTICE_LIFE_MS
        old = [path for path, each in left_ms.items() if each < oldest_ms]
        if old:
            self._registry.pipeline([Delete(path) for path in old])

    def _made_at(self, parent: str) -> int:
        stat = self._registry.exists(parent)
        return -1 if stat is None else stat.czxid

    def _nodes(self, paths: Sequence[str]) -> dict[str, tuple[bytes, Stat]]:
        """Without those that are gone by now, or that this login may not read."""
        nodes = get_readable(self._registry, paths) if paths else []
        return {path: node for path, node in zip(paths, nodes, strict=True) if node is not None}
