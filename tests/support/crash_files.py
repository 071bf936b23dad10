"""A file system in memory that loses at a crash what was not fsynced, in part and out of order.

    file    what was fsynced stays; of the writes and truncations since then any subset does, each maybe torn
    folder  what was fsynced stays; of the creations, renames and removals since then any subset does

That is more than most file systems do, and what POSIX promises no better than.
"""

import errno
import random
from typing import Any

from kavka.storage.files import AnyPath, Files

_Operation = tuple[Any, ...]


class _Node:
    """One file: what programs see, what the disk has, and what happened in between."""

    def __init__(self) -> None:
        self.content = bytearray()
        self.durable = b""
        self.pending: list[_Operation] = []

    def fsync(self) -> None:
        self.durable = bytes(self.content)
        self.pending.clear()

    def after_crash(self, chance: random.Random) -> bytearray:
        content = bytearray(self.durable)
        for operation in self.pending:
            if chance.random() < 0.4:
                continue
            if operation[0] == "truncate":
                _truncate(content, operation[1])
            else:
                _, position, data = operation
                torn = data[: chance.randrange(len(data) + 1)] if chance.random() < 0.2 else data
                _write(content, position, torn)
        return content


class FoldersSurvive(random.Random):
    """For `crash`: all changes of a folder reach the disk, of files what was fsynced, as where space comes late."""

    def random(self) -> float:
        return 0.3


class CrashFiles(Files):
    """The files of a machine that may lose power. `crash` gives the machine after it came back."""

    def __init__(self) -> None:
        self._linked: dict[str, _Node] = {}
        self._durable: dict[str, _Node] = {}
        self._pending: list[_Operation] = []
        self._open: dict[int, _Node] = {}
        self._next_descriptor = 1_000_000
        self._folders: set[str] = set()
        self.full = False

    def crash(self, chance: random.Random) -> "CrashFiles":
        """What is found after the power came back; this object goes on as if nothing had happened."""
        linked = dict(self._durable)
        for operation in self._pending:
            if chance.random() < 0.5:
                _apply(linked, operation)
        after = CrashFiles()
        after._folders = set(self._folders)
        copies: dict[int, _Node] = {}
        for path, node in linked.items():
            if id(node) not in copies:
                copies[id(node)] = copy = _Node()
                copy.content = node.after_crash(chance)
                copy.fsync()
            after._linked[path] = copies[id(node)]
        after._durable = dict(after._linked)
        return after

    def kill(self) -> "CrashFiles":
        """What is found after kill -9: the page cache stays, so that nothing is lost."""
        after = CrashFiles()
        after._folders, after._linked = set(self._folders), dict(self._linked)
        after._durable, after._pending = dict(self._durable), list(self._pending)
        return after

    def open(self, path: AnyPath, *, create: bool = False, read_only: bool = False) -> int:
        node = self._linked.get(str(path))
        if node is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", str(path))
            node = _Node()
            self._change(("link", str(path), node))
        self._next_descriptor += 1
        self._open[self._next_descriptor] = node
        return self._next_descriptor

    def close(self, fd: int) -> None:
        del self._open[fd]

    def pread(self, fd: int, size_bytes: int, position: int) -> bytes:
        return bytes(self._open[fd].content[position : position + size_bytes])

    def pwrite(self, fd: int, data: bytes | bytearray | memoryview, position: int) -> int:
        if self.full:
            raise OSError(errno.ENOSPC, "no space left on device")
        node = self._open[fd]
        _write(node.content, position, bytes(data))
        node.pending.append(("write", position, bytes(data)))
        return len(data)

    def ftruncate(self, fd: int, size_bytes: int) -> None:
        node = self._open[fd]
        if len(node.content) != size_bytes:
            _truncate(node.content, size_bytes)
            node.pending.append(("truncate", size_bytes))

    def fsync(self, fd: int) -> None:
        self._open[fd].fsync()

    def descriptor_size(self, fd: int) -> int:
        return len(self._open[fd].content)

    def size(self, path: AnyPath) -> int:
        return len(self._node(path).content)

    def modified_ms(self, path: AnyPath) -> int:
        self._node(path)
        return 0

    def set_modified(self, path: AnyPath, modified_ms: int) -> None:
        self._node(path)

    def exists(self, path: AnyPath) -> bool:
        return str(path) in self._linked or str(path) in self._folders

    def is_directory(self, path: AnyPath) -> bool:
        return str(path) in self._folders

    def makedirs(self, path: AnyPath) -> None:
        self._folders.add(str(path))

    mkdir = makedirs

    def listdir(self, path: AnyPath) -> list[str]:
        folder = f"{path}/"
        return [name.removeprefix(folder) for name in self._linked if name.startswith(folder)]

    def rename(self, source: AnyPath, target: AnyPath) -> None:
        self._node(source)
        self._change(("rename", str(source), str(target)))

    def link(self, source: AnyPath, target: AnyPath) -> None:
        if str(target) in self._linked:
            raise FileExistsError(errno.EEXIST, "file exists", str(target))
        self._change(("link", str(target), self._node(source)))

    def unlink(self, path: AnyPath) -> None:
        self._node(path)
        self._change(("unlink", str(path)))

    def fsync_directory(self, path: AnyPath) -> None:
        """One folder's entries; the tests have one."""
        self._durable = dict(self._linked)
        self._pending.clear()

    def sync_file_system(self, path: AnyPath, witness: int = -1) -> bool:
        for node in (*self._linked.values(), *self._open.values()):
            node.fsync()
        self._durable = dict(self._linked)
        self._pending.clear()
        return True

    def device(self, path: AnyPath) -> int:
        return 1

    def _node(self, path: AnyPath) -> _Node:
        node = self._linked.get(str(path))
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", str(path))
        return node

    def _change(self, operation: _Operation) -> None:
        _apply(self._linked, operation)
        self._pending.append(operation)


def _apply(linked: dict[str, _Node], operation: _Operation) -> None:
    """One change of a folder; harmless where an earlier one, which it builds on, was lost."""
    kind, path, *rest = operation
    if kind == "link":
        linked[path] = rest[0]
    elif kind == "unlink":
        linked.pop(path, None)
    elif path in linked:
        linked[rest[0]] = linked.pop(path)


def _truncate(content: bytearray, size_bytes: int) -> None:
    del content[size_bytes:]
    content.extend(bytes(size_bytes - len(content)))


def _write(content: bytearray, position: int, data: bytes) -> None:
    if position > len(content):
        content.extend(bytes(position - len(content)))
    content[position : position + len(data)] = data
