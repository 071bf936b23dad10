"""The `kavka` command with a clock and disks that a test moves and breaks: `python -m tests.chaos.rigged_broker FILE
DIRECTORY,... broker ...`; FILE is its `Rig`, and the directories are its `log.dirs`.

The product reads its wall clock from `time.time_ns`, libraries theirs from `time.time`.
"""

import errno
import mmap
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from unittest import mock

from tests.support.log_managers import FailingFiles

DIRECTORIES: Final = 2
CLOCK_BYTES: Final = 8
SIZE_BYTES: Final = CLOCK_BYTES + DIRECTORIES
CHANGES: Final = frozenset(
    {"pwrite", "ftruncate", "fsync", "rename", "unlink", "mkdir", "rmdir"}
    | {"write_atomically", "fsync_directory", "sync_file_system"}
)
"""What a file system refuses that has become read-only; one whose disk is broken (EIO) refuses everything."""


class Rig:
    """What a test does to a broker's process: a small file that both have mapped, so that a change shows at once.

    text: by how many nanoseconds its clock is ahead (eight bytes, signed), then a byte for each log directory: the
    errno with which its disk refuses, or 0.
    """

    def __init__(self, file: Path) -> None:
        if not file.exists():
            file.write_bytes(bytes(SIZE_BYTES))
        with file.open("r+b") as mapped:
            self._bytes: Final = mmap.mmap(mapped.fileno(), SIZE_BYTES)

    @property
    def shift_ns(self) -> int:
        return int.from_bytes(self._bytes[:CLOCK_BYTES], "little", signed=True)

    @shift_ns.setter
    def shift_ns(self, shift_ns: int) -> None:
        self._bytes[:CLOCK_BYTES] = shift_ns.to_bytes(CLOCK_BYTES, "little", signed=True)

    def disk_error(self, index: int) -> int:
        """Of the log directory of that number."""
        return self._bytes[CLOCK_BYTES + index]

    def set_disk_error(self, index: int, error: int) -> None:
        self._bytes[CLOCK_BYTES + index] = error


class RiggedFiles(FailingFiles):
    """The real files, but what lies in a directory that the rig breaks is refused. What is open stays open."""

    def __init__(self, rig: Rig, directories: Sequence[str]) -> None:
        super().__init__()
        self._rig = rig
        self._prefixes = [f"{directory}/" for directory in directories]
        self.exists = lambda path: not self._error("exists", str(path)) and Path(path).exists()
        self.is_directory = lambda path: not self._error("is_directory", str(path)) and Path(path).is_dir()

    def _refuse(self, operation: str, path: str) -> None:
        if error := self._error(operation, path):
            raise OSError(error, os.strerror(error), path)

    def _error(self, operation: str, path: str) -> int:
        for index, prefix in enumerate(self._prefixes):
            error = self._rig.disk_error(index)
            if error and f"{path}/".startswith(prefix) and (error == errno.EIO or operation in CHANGES):
                return error
        return 0


def main() -> int:
    rig, directories = Rig(Path(sys.argv[1])), sys.argv[2].split(",")
    real_ns = time.time_ns

    def shifted_ns() -> int:
        return real_ns() + rig.shift_ns

    def shifted_s() -> float:
        return shifted_ns() / 1e9

    mock.patch.object(time, "time_ns", shifted_ns).start()
    mock.patch.object(time, "time", shifted_s).start()
    sys.argv[:3] = ["kavka"]
    from kavka.broker import server
    from kavka.cli.entry import main as kavka

    mock.patch.object(server, "Files", return_value=RiggedFiles(rig, directories)).start()
    return kavka()


if __name__ == "__main__":
    sys.exit(main())
