"""`CrashFiles` with folders in it: an fsync of a folder makes that folder's own entries durable and no others."""

import random
from pathlib import PurePath
from typing import Any

from kavka.storage.files import AnyPath
from tests.support.crash_files import CrashFiles, _apply


class CrashTree(CrashFiles):
    """A log directory's worth of folders. Folders themselves are durable once made; they aren't renamed here."""

    def crash(self, chance: random.Random) -> "CrashTree":
        return self._reborn(super().crash(chance))

    def kill(self) -> "CrashTree":
        return self._reborn(super().kill())

    def listdir(self, path: AnyPath) -> list[str]:
        prefix = f"{path}/"
        below = [name.removeprefix(prefix) for name in (*self._linked, *self._folders) if name.startswith(prefix)]
        return sorted({name.partition("/")[0] for name in below})

    def fsync_directory(self, path: AnyPath) -> None:
        others = []
        for operation in self._pending:
            if str(PurePath(operation[1]).parent) == str(path):
                _apply(self._durable, operation)
            else:
                others.append(operation)
        self._pending = others

    @staticmethod
    def _reborn(files: CrashFiles) -> "CrashTree":
        tree = CrashTree()
        tree.__dict__.update(files.__dict__)
        return tree


class SnapshotTree(CrashTree):
    """What would be found if the power failed after each step."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self.chance = chance
        self.snapshots: list[CrashTree] = []

    def pwrite(self, fd: int, data: bytes | bytearray | memoryview, position: int) -> int:
        written = super().pwrite(fd, data, position)
        self.snapshots.append(self.crash(self.chance))
        return written

    def fsync(self, fd: int) -> None:
        super().fsync(fd)
        self.snapshots.append(self.crash(self.chance))

    def _change(self, operation: tuple[Any, ...]) -> None:
        super()._change(operation)
        self.snapshots.append(self.crash(self.chance))

    def fsync_directory(self, path: AnyPath) -> None:
        super().fsync_directory(path)
        self.snapshots.append(self.crash(self.chance))

    def sync_file_system(self, path: AnyPath, witness: int = -1) -> bool:
        done = super().sync_file_system(path, witness)
        self.snapshots.append(self.crash(self.chance))
        return done
