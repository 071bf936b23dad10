"""Who writes a lake: one process at a time, and the others are told who.

The lock is the kernel's (flock), so that it ends with the process that has it, however that ends. On a file system that
several machines share it holds between them as far as that file system's flock does (NFS 4 does).
"""

import contextlib
import fcntl
import os
import socket
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from kavka.pipeline.lake.errors import LakeLockedError

COMPACTING: Final = "kavka pipeline compact"
"""The owner's name of a compaction."""

_MAX_OWNER_BYTES: Final = 4096
_POLL_S: Final = 0.1
_NOBODY: Final = "somebody who has not said yet who it is"


class LakeLock:
    """The lock of one file. Owned by one thread; another `LakeLock` of the same process is somebody else."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def take(self, owner: str, waiting_for: str = "", patience_s: float = 0.0) -> None:
        """Have the lock, and write `owner` into it. Raises LakeLockedError, which says whose it is; OSError.

        Waits so many seconds at most while somebody has it who is called `waiting_for`.
        """
        until = time.monotonic() + patience_s
        while (descriptor := self._tried()) is None:
            if time.monotonic() >= until or not self._owner().startswith((waiting_for, _NOBODY)):
                break
            time.sleep(_POLL_S)
        if descriptor is None:
            raise LakeLockedError(
                f"{self._path.parent.parent} is being written by {self._owner()}. "
                "One at a time: end that one, or use another folder"
            )
        self._descriptor = descriptor
        since = datetime.now(UTC).isoformat(timespec="seconds")
        words = f"{owner}, process {os.getpid()} on {socket.gethostname()}, since {since}\n"
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, words.encode(), 0)

    def try_take(self, owner: str) -> bool:
        """As `take`; False where somebody has it."""
        try:
            self.take(owner)
        except LakeLockedError:
            return False
        return True

    def release(self) -> None:
        """Let others have it. Harmless without it."""
        if self._descriptor is not None:
            # Emptied, not deleted: who waits for a name that is gone and who makes it again would both have a lock.
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None

    def _tried(self) -> int | None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def _owner(self) -> str:
        with self._path.open("rb") as file:
            words = file.read(_MAX_OWNER_BYTES).decode(errors="replace").strip()
        return words or _NOBODY
