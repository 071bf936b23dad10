"""Notices that brokers leave one another in a folder of the tree: that a configuration, ACLs or a token were written.

Who writes leaves one; every broker watches the folder, and reads anew what the notice names. A notice may name
something twice, or what is gone: what counts is what is read. Each stays for a while, for brokers that are slow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from kavka.cluster.registry.base import Delete, Registry, Stat, Watch, children_or_none, get_readable

NOTICE_LIFE_MS: Final = 15 * 60 * 1000
"""How long a notice stays; as in Kafka."""

RETRY_S: Final = 5.0
"""What could not be read is read again after this."""

_DIGITS: Final = 10
"""Of the number at the end of a notice's name."""


class _Folder(NamedTuple):
    """A folder of notices at one moment."""

    made_at: int
    """By zxids: in one that was made anew the names begin again."""
    created: int
    """How many were made in it by then, whatever became of them: the number of the next one."""


_NO_FOLDER: Final = _Folder(-1, 0)


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
        """Whether some may not have been read at that look, and will not be: whatever they may tell of has to be.

        Those, too, that others have removed before it: this broker may have been held up for as long as one stays.
        """
        self._folders: dict[str, _Folder] = {}
        self._found_folders: dict[str, _Folder] = {}

    def begin(self, watch: Watch) -> None:
        """From here on: what was written before is for the caller to read, after this returns."""
        self.new(watch)
        self._read = self._found
        self._folders = self._found_folders

    def new(self, watch: Watch | None = None) -> dict[str, bytes]:
        """What the notices say that were not read, by their paths. `watch` hears of the next one."""
        # In this order: of a folder that is made anew in between the watch tells.
        self._found_folders = {parent: self._folder(parent) for parent in self._parents}
        paths, unread = [], []
        is_whole = True
        for parent, folder in self._found_folders.items():
            before = self._folders.get(parent, _NO_FOLDER)
            is_same = folder.made_at == before.made_at
            read = self._read if is_same else {}
            here = [f"{parent}/{name}" for name in children_or_none(self._registry, parent, watch)]
            paths += here
            unread += [path for path in here if path not in read]
            known = {*here, *[path for path in read if path.startswith(f"{parent}/")]}
            is_whole &= is_same and _are_all(before.created, folder.created, known)
        # Each once, and with all that is to be known of it: there may be thousands, and one comes for each change.
        nodes = self._nodes(unread)
        self.has_missed = len(nodes) < len(unread) or not is_whole
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

    def _folder(self, parent: str) -> _Folder:
        stat = self._registry.exists(parent)
        # ZooKeeper's cversion counts those that were made and those that were removed.
        return _NO_FOLDER if stat is None else _Folder(stat.czxid, (stat.cversion + stat.num_children) // 2)

    def _nodes(self, paths: Sequence[str]) -> dict[str, tuple[bytes, Stat]]:
        """Without those that are gone by now, or that this login may not read."""
        nodes = get_readable(self._registry, paths) if paths else []
        return {path: node for path, node in zip(paths, nodes, strict=True) if node is not None}


def _are_all(first: int, end: int, paths: Iterable[str]) -> bool:
    """Whether these are all that were made with a number from `first` to before `end`."""
    return sum([first <= _number_of(path) < end for path in paths]) == end - first


def _number_of(path: str) -> int:
    """-1: it is none that a broker leaves."""
    digits = path[-_DIGITS:]
    return int(digits) if digits.isascii() and digits.isdigit() else -1
