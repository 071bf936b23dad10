"""A log in two directories, and what carries it from one to the other, step by step."""

import shutil
from collections.abc import Callable
from pathlib import Path

from kavka.broker.log_moves.log_copy import LogCopy, Progress
from kavka.storage.files import AnyPath
from kavka.storage.log_directory import LogDirectory
from kavka.storage.log_manager import LogManager
from tests.support.log_managers import FailingFiles

KEY = ("visits", 0)
MOST_STEPS = 10_000


def other_directory(manager: LogManager) -> LogDirectory:
    """The one that the log of KEY does not lie in."""
    log = manager.get(*KEY)
    assert log is not None
    return next(each for each in manager.directories if each is not manager.directory_of(log))


def begin(manager: LogManager, directory: LogDirectory | None = None) -> LogCopy:
    """Begin to move the log of KEY, or go on."""
    log = manager.get(*KEY)
    future = manager.moves.begin(KEY, directory or other_directory(manager))
    assert log is not None
    assert future is not None
    return LogCopy(manager, KEY, log, future)


def finish(copy: LogCopy, max_bytes: int = 200) -> None:
    """Carry on until the move has ended."""
    for _ in range(MOST_STEPS):
        if copy.step(max_bytes)[0] is Progress.DONE:
            return
    raise AssertionError("the move does not end")


class WatchedFiles(FailingFiles):
    """Calls `after_step` after each operation that changes a directory. Nothing is fsynced: no power fails here."""

    CHANGES = ("pwrite", "ftruncate", "rename", "unlink", "mkdir", "rmdir")

    def __init__(self) -> None:
        self.after_step: Callable[[], object] | None = None
        super().__init__()
        self.fsync = lambda fd: None

    def fsync_directory(self, path: AnyPath) -> None:
        self._check("fsync_directory", str(path))

    def sync_file_system(self, path: AnyPath, witness: int = -1) -> bool:
        return True

    def _changed(self, name: str) -> None:
        if self.after_step is not None and name in self.CHANGES:
            self.after_step()

    def _on_descriptor(self, name: str, function: Callable[..., object]) -> Callable[..., object]:
        return self._watched(name, super()._on_descriptor(name, function))

    def _on_path(self, name: str, function: Callable[..., object]) -> Callable[..., object]:
        return self._watched(name, super()._on_path(name, function))

    def _watched(self, name: str, call: Callable[..., object]) -> Callable[..., object]:
        def watched(*arguments: object) -> object:
            result = call(*arguments)
            self._changed(name)
            return result

        return watched


class Snapshots:
    """What a kill -9 would leave of a tree of directories, at each step; each in a directory of its own."""

    def __init__(self, tree: Path, place: Path) -> None:
        self._tree = tree
        self._place = place
        self.paths: list[Path] = []

    def take(self) -> None:
        path = self._place / str(len(self.paths))
        shutil.copytree(self._tree, path, symlinks=True)
        self.paths.append(path)
