"""The `log.dirs` of a broker: held together, whose they are, and what becomes of one that fails.

A directory whose disk fails goes offline and stays so until the next start; the others go on. A full disk is no
failure: what was refused is tried again by whoever asked.
"""

import errno
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from kavka.storage import siblings
from kavka.storage.files import Files, FinalDiskError
from kavka.storage.log_directory import LogDirectory
from kavka.storage.meta_properties import MetaProperties, agree, read_meta_properties, write_meta_properties

_log: Final = logging.getLogger(__name__)

DISK_FAILED: Final = frozenset({errno.EIO, errno.EROFS})
"""Errors that don't pass: the directory goes offline."""

NEW_MARK: Final = ("kavka.new.directory", "logs-are-marked")
"""In meta.properties: this broker may have had logs on the disk that was here before. Those that were made here in
their place are marked (`unproven_mark`)."""

UNMARKED: Final = (NEW_MARK[0], "true")
"""The same before there were such marks: any log here may be one of them."""

REFUSAL_PAUSE_S: Final = 10.0


class NoLogDirectoryError(Exception):
    """None of `log.dirs` can be used; the message gives each one's reason."""


class LogDirectories:
    """All of `log.dirs`.

    Threads: `_lock` guards each directory's `failure`; `on_failure(directory)` runs outside of it, once a directory, in
    the thread that met the error. `note_complete` belongs to one background thread, the rest to the thread that starts
    and stops the broker.
    """

    __slots__ = ("_files", "_is_one_missed", "_lock", "_on_failure", "_owners", "all", "has_new")

    def __init__(self, paths: Sequence[Path], files: Files, on_failure: Callable[[LogDirectory], object]) -> None:
        self.all: Final = tuple(LogDirectory(path, files) for path in dict.fromkeys(paths))
        self._files = files
        self._on_failure = on_failure
        self._lock = threading.Lock()
        self._owners: dict[LogDirectory, MetaProperties | None] = {}
        self.has_new = False
        """Whether one of them had no owner before this start, or is marked as new since an earlier one. As long as
        another one is missed that was taken out of `log.dirs`, all are marked."""
        self._is_one_missed = False

    def __iter__(self) -> Iterator[LogDirectory]:
        return iter(self.all)

    @property
    def online(self) -> list[LogDirectory]:
        """Those that work, in the order of `log.dirs`."""
        return [directory for directory in self.all if directory.online]

    @property
    def are_all_online(self) -> bool:
        """Whether nothing can lie in a directory that is away."""
        return all(directory.online for directory in self.all)

    @property
    def _paths(self) -> list[Path]:
        return [directory.path for directory in self.all]

    @property
    def are_owned(self) -> bool:
        """Whether meta.properties says of one of them whose it is."""
        return any(self._owners.values())

    def lock(self) -> MetaProperties:
        """Hold every directory and learn whose they are.

        A directory that can't be read is offline from the start. Raises DirectoryInUseError, MetaPropertiesError
        (KRaftDirectoryError), NoLogDirectoryError; nothing is held then.
        """
        try:
            for directory in self.all:
                with self.any_error_is_final(directory):
                    directory.lock()
                    self._owners[directory] = read_meta_properties(directory.path, self._files)
            self.require_one()
            if missed := siblings.missing(self._owners.values(), self._paths):
                _log.warning("directories were taken out of log.dirs since the last start: %s", ", ".join(missed))
                self._is_one_missed = True
            is_one_new = any(owner is None or _is_new(owner) for owner in self._owners.values())
            self.has_new = self._is_one_missed or is_one_new
            return agree({directory.path: owner for directory, owner in self._owners.items()})
        except BaseException:
            self.unlock()
            raise

    def has_unmarked_logs(self, directory: LogDirectory) -> bool:
        """Whether logs that were made there in place of lost ones may have no mark. Until `claim`, which notes that
        all of them have one by then.
        """
        owner = self._owners.get(directory)
        return owner is not None and UNMARKED in owner.others

    def claim(self, broker_id: int, cluster_id: str, *, marks_new: bool = False) -> None:
        """Write into every directory whose it is, where that isn't there yet. Raises NoLogDirectoryError.

        `marks_new`: the broker is one among others. One without an owner counts as new at the next starts too, and
        where one was taken out all others do, until `note_complete`.
        """
        note = siblings.note(self._paths)
        for directory in self.online:
            before = self._owners.get(directory)
            others = tuple(NEW_MARK if each == UNMARKED else each for each in before.others) if before else ()
            if marks_new:
                others = tuple(each for each in others if each[0] != siblings.KEY) + note
                if (before is None or self._is_one_missed) and NEW_MARK not in others:
                    others = (NEW_MARK, *others)
            after = MetaProperties(broker_id, cluster_id, others)
            if after != before:
                with self.any_error_is_final(directory):
                    write_meta_properties(directory.path, self._files, after)
                    self._owners[directory] = after
        self.require_one()

    def note_complete(self) -> bool:
        """No directory is new any more. False: a disk refused to take the mark off, and one still is."""
        for directory in self.online:
            owner = self._owners.get(directory)
            if owner is not None and _is_new(owner):
                after = owner._replace(others=tuple(each for each in owner.others if each[0] != NEW_MARK[0]))
                try:
                    write_meta_properties(directory.path, self._files, after)
                except OSError as error:
                    _log.warning("%s stays marked as new: %s", directory.path, error)
                    return False
                self._owners[directory] = after
        self.has_new = False
        return True

    def unlock(self) -> None:
        """Let go of all of them, whatever happens with one. Raises OSError."""
        with ExitStack() as stack:
            for directory in self.all:
                stack.callback(directory.unlock)

    def fail(self, directory: LogDirectory, error: OSError) -> None:
        """Take a directory offline; harmless if it is."""
        with self._lock:
            if directory.failure is not None:
                return
            directory.failure = error
        _log.error("log directory goes offline: directory=%s error=%s", directory.path, error)
        self._on_failure(directory)

    def folder_failed(self, folder: Path, error: OSError) -> None:
        """The disk refused something of the log in that folder: take its directory offline."""
        for directory in self.all:
            if directory.path == folder.parent:
                self.fail(directory, error)

    def file_failed(self, path: str, error: OSError) -> None:
        """As `folder_failed`, of a file in a log's folder."""
        self.folder_failed(Path(path).parent, error)

    def lose_late(self, directory: LogDirectory) -> None:
        """A directory that is offline got another log while it failed: that is lost, too."""
        self._on_failure(directory)

    def refused(self, directory: LogDirectory, reason: str) -> None:
        """A log could not write and may try again: said once in a while, for clients try again all the time."""
        now_s = time.monotonic()
        if now_s - directory.refusal_told_s >= REFUSAL_PAUSE_S:
            directory.refusal_told_s = now_s
            _log.warning("a log directory refuses writes: directory=%s reason=%r", directory.path, reason)

    def met(self, directory: LogDirectory, what: str, error: OSError) -> None:
        """An error of the disk: take the directory offline, or, if the error may pass, log it."""
        if error.errno in DISK_FAILED or isinstance(error, FinalDiskError):
            self.fail(directory, error)
        else:
            _log.warning("%s: directory=%s error=%s", what, directory.path, error)

    @contextmanager
    def any_error_is_final(self, directory: LogDirectory) -> Iterator[None]:
        """At start nothing can be tried again: whatever the disk refuses takes the directory offline."""
        try:
            yield
        except OSError as error:
            self.fail(directory, error)

    @contextmanager
    def tried_again(self, directory: LogDirectory, what: str) -> Iterator[None]:
        """Work that the next pass repeats: a full disk is logged, a failing one goes offline."""
        try:
            yield
        except OSError as error:
            self.met(directory, what, error)

    def require_one(self) -> None:
        """Raises NoLogDirectoryError if none is online."""
        if not self.online:
            reasons = "; ".join(f"{directory.path}: {directory.failure}" for directory in self.all)
            raise NoLogDirectoryError(f"none of log.dirs can be used: {reasons}")


def _is_new(owner: MetaProperties) -> bool:
    return any(name == NEW_MARK[0] for name, _ in owner.others)
