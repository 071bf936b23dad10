"""`CrashFiles` with folders in it: an fsync of a folder makes that folder's own entries durable and no others."""

import random
from pathlib import PurePath

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
