"""One of `log.dirs`: who holds it, whether it was closed cleanly, whether it still works.

    .lock                  locked while a broker runs
    .kafka_cleanshutdown   {"version":0,"brokerEpoch":n}; written last in a clean stop, deleted first at start

Two locks, since POSIX record locks belong to the process: the file's keeps other processes out (Kafka's own broker
takes the same one), and a set of real paths keeps a second broker of this process out, to which `lockf` would grant it.
The lock is lost when *any* descriptor of the file is closed in this process, so the file is opened once and the
descriptor lives as long as the lock.
"""

import errno
import fcntl
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from kavka.storage.checkpoints import (
    CLEANER_OFFSET_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_OFFSET_FILE,
    RECOVERY_POINT_FILE,
    OffsetCheckpoint,
    TopicPartition,
)
from kavka.storage.files import Files
from kavka.storage.partition_log import PartitionLog

LOCK_FILE: Final = ".lock"
CLEAN_SHUTDOWN_FILE: Final = ".kafka_cleanshutdown"

ListLogs: TypeAlias = Callable[[], Sequence[PartitionLog]]
"""The directory's logs as they are now. Called under the checkpoints' lock: else who looked first might write last."""


class DirectoryInUseError(Exception):
    """Another broker, in this process or another, holds the log directory."""


class LogDirectory:
    """One of `log.dirs`.

    Threads: `lock`, `take_clean_shutdown_mark`, `mark_clean` and `unlock` belong to the thread that starts and stops
    the broker. `failure` is set once, under the manager's lock, and read by any thread. `_checkpoint_lock` is held by
    whoever writes a checkpoint, and lists the logs for it.
    """

    __slots__ = (
        "_checkpoint_lock",
        "_descriptor",
        "_files",
        "_kept",
        "_real_path",
        "clean_offsets",
        "failure",
        "fsync_is_due",
        "high_watermarks",
        "log_start_offsets",
        "path",
        "recovery_points",
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
        self._checkpoint_lock = threading.Lock()
        self.recovery_points = OffsetCheckpoint(path / RECOVERY_POINT_FILE, files)
        self.log_start_offsets = OffsetCheckpoint(path / LOG_START_OFFSET_FILE, files)
        self.high_watermarks = OffsetCheckpoint(path / HIGH_WATERMARK_FILE, files)
        self.clean_offsets = OffsetCheckpoint(path / CLEANER_OFFSET_FILE, files)
        self.strangers: frozenset[TopicPartition] = frozenset()
        """Whose logs lie here and are left alone, for the registry does not know them; set at start."""
        self._kept: tuple[dict[TopicPartition, int], ...] = ({}, {}, {})
        """What is said of them in the checkpoints: log start offsets, high watermarks, clean offsets."""
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

    def write_recovery_points(self, list_logs: ListLogs) -> None:
        """Checkpoint what is on the disk for sure, and the first readable offsets. Raises OSError."""
        with self._checkpoint_lock:
            logs = list_logs()
            # A directory that fails loses its logs, but not what its checkpoints know of them.
            if self.online:
                self._write_recovery_points(logs)

    def write_log_start_offsets(self, list_logs: ListLogs) -> None:
        """Checkpoint the first readable offsets alone. Raises OSError."""
        with self._checkpoint_lock:
            logs = list_logs()
            if self.online:
                self._write_log_start_offsets(logs)

    def write_high_watermarks(self, list_logs: ListLogs) -> None:
        """Checkpoint the high watermarks. Raises OSError."""
        with self._checkpoint_lock:
            logs = list_logs()
            if self.online:
                self._write_high_watermarks(logs)

    def write_clean_offsets(self, list_logs: ListLogs) -> None:
        """Checkpoint where the dirty parts begin, of the logs that were ever compacted. Raises OSError."""
        with self._checkpoint_lock:
            logs = list_logs()
            if self.online:
                self._write_clean_offsets(logs)

    def keep_offsets(self, *stored: Mapping[TopicPartition, int]) -> None:
        """Keep what the checkpoints (log start offsets, high watermarks, clean offsets) say of the `strangers`.

        Their recovery points are not kept: whoever knows them later has them recovered, whichever way this start ends.
        """
        strangers = self.strangers
        self._kept = tuple({key: offset for key, offset in each.items() if key in strangers} for each in stored)

    def forget(self, key: TopicPartition, list_logs: ListLogs) -> None:
        """Have no checkpoint tell of a log of the partition that was deleted. Raises OSError: one may still do.

        A new log of this name would be opened with its offsets after a crash: cut off, or not looked at.
        """
        with self._checkpoint_lock:
            for kept in self._kept:
                kept.pop(key, None)
            checkpoints = (self.recovery_points, self.log_start_offsets, self.high_watermarks, self.clean_offsets)
            if any(checkpoint.has(key) for checkpoint in checkpoints):
                logs = list_logs()
                if not self.online:
                    raise OSError(errno.EIO, "the directory is offline", str(self.path))
                self._write_recovery_points(logs)
                self._write_high_watermarks(logs)
                self._write_clean_offsets(logs)

    def _write_recovery_points(self, logs: Sequence[PartitionLog]) -> None:
        self.recovery_points.write({(log.topic, log.partition): log.stored_recovery_point for log in logs})
        self._write_log_start_offsets(logs)

    def _write_log_start_offsets(self, logs: Sequence[PartitionLog]) -> None:
        self.log_start_offsets.write(
            {(log.topic, log.partition): log.log_start_offset for log in logs if log.log_start_offset > 0}
            | self._kept[0]
        )

    def _write_high_watermarks(self, logs: Sequence[PartitionLog]) -> None:
        self.high_watermarks.write({(log.topic, log.partition): log.high_watermark for log in logs} | self._kept[1])

    def _write_clean_offsets(self, logs: Sequence[PartitionLog]) -> None:
        offsets = {(log.topic, log.partition): clean for log in logs if (clean := log.clean_offset) is not None}
        offsets |= self._kept[2]
        if offsets or self.clean_offsets.exists:
            self.clean_offsets.write(offsets)

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
