"""A log manager with its directories, a clock that tests move, and a file layer that refuses what it is told to."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from kavka.config.broker_config import BrokerConfig
from kavka.config.sources import load_config
from kavka.protocol.errors import BrokerError
from kavka.protocol.records.batch import Record, iter_batch_headers, iter_records
from kavka.protocol.records.builder import build_batch
from kavka.storage.files import AnyPath, Files, final
from kavka.storage.log_manager import LogManager
from kavka.storage.partition_log import PartitionLog
from tests.support.tidy_files import TidyFiles

ID = bytes(range(1, 17))


def create_log(
    manager: LogManager, topic: str, partition: int, topic_id: bytes, *, is_new: bool = False
) -> PartitionLog:
    """One partition of `LogManager.create`. Raises its BrokerError."""
    key = (topic, partition)
    log = manager.create([(topic, partition, topic_id)], new={key} if is_new else ())[key]
    if isinstance(log, BrokerError):
        raise log
    return log


def delete_log(manager: LogManager, topic: str, partition: int) -> None:
    """One partition of `LogManager.delete`. Raises its BrokerError."""
    if error := manager.delete([(topic, partition)]).get((topic, partition)):
        raise error


class ManagerRig:
    """One broker's log manager over several starts. `failures`: (directory, partitions, directories left)."""

    def __init__(self, paths: list[Path], *settings: str, files: Files | None = None) -> None:
        self.paths = paths
        self.settings = settings
        self.files = files or Files()
        self.now_ms = 1_700_000_000_000
        self.overrides: dict[str, dict[str, str]] = {}
        self.failures: list[tuple[Path, list[tuple[str, int]], int]] = []
        self.failed: Callable[[], object] | None = None
        self.pauses = 0
        self.background: Callable[[Callable[[], None]], object] = _at_once
        self.manager: LogManager

    def make(self) -> LogManager:
        self.manager = LogManager(
            self.paths,
            self.broker_config(*self.settings),
            lambda topic: self.overrides.get(topic, {}),
            files=self.files,
            now_ms=lambda: self.now_ms,
            on_directory_failure=self._failed,
            pause=self._pause,
            run_in_background=self._in_background,
        )
        return self.manager

    def start(self) -> LogManager:
        manager = self.make()
        manager.lock_directories()
        manager.load()
        return manager

    def kill(self) -> None:
        """Leave everything as a process does that is killed: what was written stays, nothing is closed or marked."""
        self.manager.close(clean=False)

    def broker_config(self, *settings: str) -> BrokerConfig:
        return load_config(None, list(settings), {}).config

    def _in_background(self, job: Callable[[], None]) -> None:
        self.background(job)

    def _failed(self, path: Path, partitions: list[tuple[str, int]], left: int) -> None:
        self.failures.append((path, partitions, left))
        if self.failed is not None:
            self.failed()

    def _pause(self) -> None:
        self.pauses += 1


class FailingFiles(TidyFiles):
    """Real files, but operations that a test names fail on paths that hold a text. `calls` counts what was called."""

    def __init__(self) -> None:
        super().__init__()
        self._failures: list[tuple[str, str, int]] = []
        self.calls: dict[str, int] = {}
        self.refusals_are_final = True
        """Whether it is the fsync itself of a directory that fails, not opening the directory for it."""
        for name in ("pread", "pwrite", "ftruncate", "fsync"):
            setattr(self, name, self._on_descriptor(name, getattr(os, name)))
        for name in ("unlink", "mkdir", "rmdir", "stat"):
            setattr(self, name, self._on_path(name, getattr(os, name)))
        self.rename = self._on_path("rename", os.replace)  # type: ignore[assignment]  # a double of one instance

    def fail(self, operation: str, text: str, error: int) -> None:
        """From now on, `operation` raises `error` on a path that holds `text`; a line break is its end."""
        self._failures.append((operation, text, error))

    def heal(self) -> None:
        self._failures.clear()

    def open(self, path: AnyPath, *, create: bool = False, read_only: bool = False) -> int:
        self._check("open", str(path))
        return super().open(path, create=create, read_only=read_only)

    def close(self, fd: int) -> None:
        """Closes in any case, as Linux does."""
        path = self._paths.get(fd, "")
        super().close(fd)
        self._refuse("close", path)

    def listdir(self, path: AnyPath) -> list[str]:
        self._check("listdir", str(path))
        return super().listdir(path)

    def makedirs(self, path: AnyPath) -> None:
        self._check("makedirs", str(path))
        super().makedirs(path)

    def fsync_directory(self, path: AnyPath) -> None:
        with final() if self.refusals_are_final else contextlib.nullcontext():
            self._check("fsync_directory", str(path))
        super().fsync_directory(path)

    def sync_file_system(self, path: AnyPath, witness: int = -1) -> bool:
        with final():
            self._check("sync_file_system", str(path))
        return super().sync_file_system(path, witness)

    def write_atomically(self, path: AnyPath, data: bytes | bytearray) -> None:
        self._check("write_atomically", str(path))
        super().write_atomically(path, data)

    def _check(self, operation: str, path: str) -> None:
        self.calls[operation] = self.calls.get(operation, 0) + 1
        self._refuse(operation, path)

    def _refuse(self, operation: str, path: str) -> None:
        for failing, text, error in self._failures:
            if failing == operation and text in f"{path}\n":
                raise OSError(error, os.strerror(error), path)

    def _on_descriptor(self, name: str, function: Callable[..., object]) -> Callable[..., object]:
        def call(fd: int, *arguments: object) -> object:
            self._check(name, self._paths.get(fd, ""))
            return function(fd, *arguments)

        return call

    def _on_path(self, name: str, function: Callable[..., object]) -> Callable[..., object]:
        def call(path: AnyPath, *arguments: object) -> object:
            self._check(name, str(path))
            return function(path, *arguments)

        return call


def _at_once(job: Callable[[], None]) -> None:
    job()


def append(log: PartitionLog, *values: bytes, timestamp_ms: int = 1_700_000_000_000, leader_epoch: int = 0) -> int:
    """Append one batch of records with these values, and return its first offset."""
    batch = bytearray(build_batch([Record(0, timestamp_ms, None, value) for value in values]))
    return log.append_as_leader(batch, leader_epoch=leader_epoch, now_ms=timestamp_ms).first_offset


def read_values(log: PartitionLog) -> list[bytes | None]:
    """All values from the log's start to its end."""
    values: list[bytes | None] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = log.read(offset, 1 << 20, min_one=True, end_offset=log.log_end_offset).read_bytes()
        for position, header in iter_batch_headers(data, allow_truncated_tail=True):
            values += [record.value for record in iter_records(data, position) if record.offset >= offset]
            following = header.next_offset
        offset = following
    return values


@contextlib.contextmanager
def away(directory: Path) -> Iterator[None]:
    """The disk of that log directory, at a start."""
    directory.rename(directory.with_name("away"))
    directory.touch()
    yield
    directory.unlink()
    directory.with_name("away").rename(directory)
