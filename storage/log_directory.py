"""One of `log.dirs`: who holds it, whether it was closed cleanly, whether it still works.

    .lock                  locked while a broker runs
    .kafka_cleanshutdown   {"version":0,"brokerEpoch":n}; written last in a clean stop, deleted first at start

Two locks, since POSIX record locks belong to the process: the file's keeps other processes out (Kafka's own broker
takes the same one), and a set of real paths keeps a second broker of this process out, to which `lockf` would grant it.
The lock is lost when *any* descriptor of the file is closed in this process, so the file is opened once and the
descriptor lives as long as the lock.
"""

import fcntl
import os
import threading
from pathlib import Path
from typing import Final

from kavka.storage.directory_checkpoints import DirectoryCheckpoints
from kavka.storage.files import Files
from kavka.storage.offset_checkpoint import TopicPartition

LOCK_FILE: Final = ".lock"
CLEAN_SHUTDOWN_FILE: Final = ".kafka_cleanshutdown"


class DirectoryInUseError(Exception):
    """Another broker, in this process or another, holds the log directory."""


class LogDirectory:
    """One of `log.dirs`.

    Threads: `lock`, `take_clean_shutdown_mark`, `mark_clean` and `unlock` belong to the thread that starts and stops
    the broker. `failure` is set once, under the manager's lock, and read by any thread.
    """

    __slots__ = (
        "_descriptor",
        "_files",
        "_real_path",
        "checkpoints",
        "failure",
        "fsync_is_due",
        "path",
        "refusal_told_s",
        "strangers",
    )

    def __init__(self, path: Path, files: Files) -> None:
        self.path = path
        self.failure: OSError | None = None
        """Why the directory is offline; None while it is online."""
        self.fsync_is_due = False
        """Whether a folder came or went that a power cut might bring back or take; any thread."""
        self.refusal_told_s = float("-inf")
        """When the last write that the disk refused was logged (monotonic)."""
        self.checkpoints: Final = DirectoryCheckpoints(path, files, lambda: self.failure is None)
        self.strangers: frozenset[TopicPartition] = frozenset()
        """Whose logs lie here and are left alone, for the registry does not know them; set at start."""
        self._files = files
        self._descriptor = -1
        self._real_path = ""

    def __repr__(self) -> str:
        return f"LogDirectory({str(self.path)!r}, {'online' if self.failure is None else self.failure})"

    @property
    def online(self) -> bool:
        """Whether the directory's partitions can be served."""
        return self.failure is None

    @property
    def locked(self) -> bool:
        """Whether this object holds the directory."""
        return self._descriptor >= 0

    @property
    def witness(self) -> int:
        """A descriptor in the directory, open as long as it is held: see `Files.sync_file_system`. -1: not held."""
        return self._descriptor

    def lock(self) -> None:
        """Make the directory if it is missing, and hold it. Raises DirectoryInUseError, OSError."""
        missing = [path for path in (self.path, *self.path.parents) if not self._files.exists(path)]
        self._files.makedirs(self.path)
        for made in missing:
            self._files.fsync_directory(made.parent)
        real_path = os.path.realpath(self.path)
        if not _HELD.add(real_path):
            raise DirectoryInUseError(f"{self.path} is in use by another broker of this process")
        descriptor = -1
        try:
            descriptor = os.open(self.path / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if descriptor >= 0:
                os.close(descriptor)
            _HELD.discard(real_path)
            if isinstance(error, BlockingIOError | PermissionError) and descriptor >= 0:
                raise DirectoryInUseError(
                    f"{self.path} is in use by another broker: {LOCK_FILE} is locked by another process"
                ) from None
            raise
        self._descriptor = descriptor
        self._real_path = real_path

    def unlock(self) -> None:
        """Let go of the directory; harmless if it isn't held."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            try:
                os.close(descriptor)
            finally:
                _HELD.discard(self._real_path)

    def fsync(self) -> None:
        """Make it durable that folders came and went. Raises OSError, and then `fsync_is_due`: somebody tries again."""
        # First: who is refused meanwhile sets it again.
        self.fsync_is_due = False
        try:
            self._files.fsync_directory(self.path)
        except OSError:
            self.fsync_is_due = True
            raise

    def take_clean_shutdown_mark(self) -> bool:
        """Whether the last broker here stopped cleanly; the mark is gone afterwards. Raises OSError.

        It goes before anything is written, so that a crash from now on is seen at the next start. What it says (the
        broker epoch) matters to KRaft alone; older brokers left it empty.
        """
        found = True
        try:
            self._files.unlink(self.path / CLEAN_SHUTDOWN_FILE)
        except FileNotFoundError:
            found = False
        # Also where it is gone: a broker that was killed may have made folders and taken the mark, and fsynced neither.
        self._files.fsync_directory(self.path)
        return found

    def mark_clean(self, broker_epoch: int = -1) -> None:
        """Say that all is on the disk: the last thing that a clean stop writes. Raises OSError."""
        mark = b'{"version":0,"brokerEpoch":%d}' % broker_epoch
        self._files.write_atomically(self.path / CLEAN_SHUTDOWN_FILE, mark)


class _HeldDirectories:
    """The real paths that brokers of this process hold.

    The one thing here that outlives a broker and is shared by all brokers of a process: what it mirrors, the process's
    record locks, is shared by them too, and asking the kernel can't tell (it grants a process what it already holds).
    """

    __slots__ = ("_lock", "_paths")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._paths: set[str] = set()

    def add(self, path: str) -> bool:
        with self._lock:
            if path in self._paths:
                return False
            self._paths.add(path)
            return True

    def discard(self, path: str) -> None:
        with self._lock:
            self._paths.discard(path)


_HELD: Final = _HeldDirectories()
