"""Files on a disk that is full while a fault says so: what would take room is refused with ENOSPC."""

import errno
import os
from typing import TYPE_CHECKING

from kavka.storage.files import AnyPath, Files

if TYPE_CHECKING:
    from kavka.broker.faults.fault import Fault


class FillableFiles(Files):
    """The real files, or those given, until `fill`. What is there stays readable, and may be deleted.

    The registry's own file (SQLite) and the worker that compacts logs write on. Threads: any.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._filled_by: tuple[Fault, ...] = ()
        for name in (
            *("pread", "ftruncate", "fsync", "close", "rename", "unlink", "rmdir", "exists", "is_directory"),
            *("is_link", "stat", "listdir", "descriptor_size", "set_modified", "fsync_directory", "sync_file_system"),
        ):
            setattr(self, name, getattr(files, name))
        self.pwrite = self._pwrite
        self.mkdir = self._mkdir

    def fill(self, fault: "Fault") -> None:
        """The disk is full until this fault is cleared, and those that filled it before."""
        self._filled_by = (*[each for each in self._filled_by if not each.is_cleared], fault)

    def open(self, path: AnyPath, *, create: bool = False, read_only: bool = False) -> int:
        """See Files."""
        if create and not self._files.exists(path):
            self._check(path)
        return self._files.open(path, create=create, read_only=read_only)

    def makedirs(self, path: AnyPath) -> None:
        """See Files."""
        if not self._files.exists(path):
            self._check(path)
        self._files.makedirs(path)

    def _pwrite(self, descriptor: int, data: bytes | bytearray | memoryview, position: int) -> int:
        self._check()
        return self._files.pwrite(descriptor, data, position)

    def _mkdir(self, path: AnyPath) -> None:
        self._check(path)
        self._files.mkdir(path)

    def _check(self, path: AnyPath = "") -> None:
        fault = next((each for each in self._filled_by if not each.is_cleared), None)
        if fault is not None:
            fault.note_hit()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.fspath(path))
