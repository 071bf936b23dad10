"""The seam between the log and the file system.

Everything in this room reads and writes through one `Files` object, so that tests can put a file layer underneath that
loses what was not fsynced, reorders renames, or runs out of space. Methods on the hot path are bound straight to the
functions of `os`: the seam costs an attribute look-up and nothing else.

Nothing is ever mapped: a store to a mapped file on a full disk is a SIGBUS that kills the process.
"""

import contextlib
import errno
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

from kavka.protocol.errors import BrokerError, ErrorCode

AnyPath: TypeAlias = str | os.PathLike[str]

TEMPORARY_SUFFIX: Final = ".tmp"
"""Of a file that is renamed when it is on the disk."""

_SMALL_FILE_BYTES: Final = 4096

NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Errors that refuse a write and pass by themselves: reads and retention go on."""

PASSING: Final = NO_SPACE | {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR, errno.EAGAIN}
"""Errors that say nothing about the disk: the operation fails, the log directory stays online."""


class FinalDiskError(OSError):
    """What failed can't be tried again, whatever the number says: the log directory goes offline.

    After an fsync that failed Linux drops the pages, or calls them clean, and reports the error once: a second fsync
    that succeeds says nothing of them (ENOSPC and EDQUOT come here too, where the file system allocates late).
    """


class Files:
    """The real file system. Stateless; any thread.

    A subclass in tests overrides the methods; callers must not reach around it to `os`. Every method raises OSError.
    """

    __slots__ = ()

    pread: Callable[[int, int, int], bytes] = staticmethod(os.pread)
    """pread(fd, size_bytes, position) -> bytes; fewer at the end of the file"""
    pwrite: Callable[[int, bytes | bytearray | memoryview, int], int] = staticmethod(os.pwrite)
    """pwrite(fd, data, position) -> bytes written, which may be fewer than given"""
    ftruncate: Callable[[int, int], None] = staticmethod(os.ftruncate)
    fsync: Callable[[int], None] = staticmethod(os.fsync)
    close: Callable[[int], None] = staticmethod(os.close)
    rename: Callable[[AnyPath, AnyPath], None] = staticmethod(os.replace)
    """rename(source, target): replaces the target; durable only after `fsync_directory` of the parent"""
    link: Callable[[AnyPath, AnyPath], None] = staticmethod(os.link)
    """link(source, target): a second name, durable as a rename is; FileExistsError where the target is there"""
    unlink: Callable[[AnyPath], None] = staticmethod(os.unlink)
    mkdir: Callable[[AnyPath], None] = staticmethod(os.mkdir)
    rmdir: Callable[[AnyPath], None] = staticmethod(os.rmdir)
    exists: Callable[[AnyPath], bool] = staticmethod(os.path.exists)
    is_directory: Callable[[AnyPath], bool] = staticmethod(os.path.isdir)
    is_link: Callable[[AnyPath], bool] = staticmethod(os.path.islink)
    stat: Callable[[AnyPath], os.stat_result] = staticmethod(os.stat)

    def open(self, path: AnyPath, *, create: bool = False, read_only: bool = False) -> int:
        """A descriptor for `path`; with `create` the file is made if it is not there, never truncated."""
        flags = os.O_RDONLY if read_only else os.O_RDWR
        if create:
            flags |= os.O_CREAT
        return os.open(path, flags | os.O_CLOEXEC, 0o644)

    def makedirs(self, path: AnyPath) -> None:
        """Make the directory and its parents; harmless if it is there."""
        Path(path).mkdir(parents=True, exist_ok=True)

    def listdir(self, path: AnyPath) -> list[str]:
        return os.listdir(path)  # noqa: PTH208 - names are wanted, not Path objects

    def descriptor_size(self, fd: int) -> int:
        """The size in bytes of an open file."""
        return os.fstat(fd).st_size

    def device(self, path: AnyPath) -> int:
        """The number of the file system that `path` lies in."""
        return self.stat(path).st_dev

    def size(self, path: AnyPath) -> int:
        """The file's size in bytes."""
        return self.stat(path).st_size

    def modified_ms(self, path: AnyPath) -> int:
        """When the file was last written, in milliseconds since the epoch."""
        return self.stat(path).st_mtime_ns // 1_000_000

    def set_modified(self, path: AnyPath, modified_ms: int) -> None:
        """Say when the file was last written."""
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def fsync_directory(self, path: AnyPath) -> None:
        """Make creations, renames and removals in `path` durable. Raises FinalDiskError where that failed."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with final():
                os.fsync(fd)
        finally:
            os.close(fd)

    def sync_file_system(self, path: AnyPath, witness: int = -1) -> bool:
        """Make everything durable that was written to the file system of the directory `path`, by whomever.

        `witness`: a descriptor there that was open before anything was written. Linux tells each descriptor of the
        errors since it was opened, but a new one only of those that nobody else has heard of (dpkg calls syncfs, too).
        False where the system has no such call, or one that hides errors: then the caller fsyncs file by file.
        """
        from kavka.storage.syncfs import syncfs

        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) if witness < 0 else witness
        try:
            with final():
                return syncfs(fd)
        finally:
            if fd != witness:
                os.close(fd)

    def read_bytes(self, path: AnyPath, limit_bytes: int = 1 << 30) -> bytes:
        """The whole file; OSError (EFBIG) when it is longer than `limit_bytes`."""
        fd = self.open(path, read_only=True)
        try:
            # Most files are small: one call then says what they hold and that this is all.
            data = self.pread(fd, _SMALL_FILE_BYTES, 0)
            if len(data) < _SMALL_FILE_BYTES and len(data) <= limit_bytes:
                return data
            size = self.descriptor_size(fd)
            if size > limit_bytes:
                raise OSError(errno.EFBIG, f"{size} bytes, at most {limit_bytes} expected", str(path))
            return read_fully(self, fd, size, 0)
        finally:
            self.close(fd)

    def write_file(self, path: AnyPath, data: bytes | bytearray) -> None:
        """Create or replace the file's content in place, without fsync.

        A new file is not cut to nothing: ext4 has whoever closes a file after that wait for its disk (auto_da_alloc),
        behind all that is being written there.
        """
        fd = self.open(path, create=True)
        try:
            if self.descriptor_size(fd):
                self.ftruncate(fd, 0)
            write_fully(self, fd, data, 0)
        finally:
            self.close(fd)

    def fsync_file(self, path: AnyPath) -> None:
        """Make the file's content durable. Raises FinalDiskError where that failed."""
        fd = self.open(path)
        try:
            with final():
                self.fsync(fd)
        finally:
            self.close(fd)

    def write_atomically(self, path: AnyPath, data: bytes | bytearray) -> None:
        """Replace `path` so that a crash leaves the old content or the new, and the new once this returned.

        Temporary name, fsync, rename, fsync of the directory. Callers serialise writes to one path.
        """
        self.replace(path, data)
        self.fsync_directory(Path(path).parent)

    def replace(self, path: AnyPath, data: bytes | bytearray) -> None:
        """As `write_atomically`, but the new content is only sure when the caller has fsynced the directory.

        An fsync that failed here may be tried again: all of the new content is written again then.
        """
        temporary = f"{path}{TEMPORARY_SUFFIX}"
        fd = self.open(temporary, create=True)
        try:
            self.ftruncate(fd, 0)
            write_fully(self, fd, data, 0)
            self.fsync(fd)
        finally:
            self.close(fd)
        self.rename(temporary, path)


def read_fully(files: Files, fd: int, size_bytes: int, position: int) -> bytes:
    """Up to `size_bytes` from `position`; shorter only at the end of the file (a pread is cut at 2 GiB)."""
    data = files.pread(fd, size_bytes, position)
    if len(data) == size_bytes or not data:
        return data
    parts = [data]
    got = len(data)
    while got < size_bytes:
        data = files.pread(fd, size_bytes - got, position + got)
        if not data:
            break
        parts.append(data)
        got += len(data)
    return b"".join(parts)


def write_fully(files: Files, fd: int, data: bytes | bytearray | memoryview, position: int) -> None:
    """Write all of `data` at `position`; an OSError where the system took only a part of it and then nothing."""
    view = memoryview(data)
    done = 0
    while done < len(view):
        written = files.pwrite(fd, view[done:], position + done)
        if written <= 0:
            raise OSError(errno.EIO, "the system wrote nothing")
        done += written


@contextlib.contextmanager
def final() -> Iterator[None]:
    """Whatever fails within can't be tried again."""
    try:
        yield
    except OSError as error:
        raise FinalDiskError(error.errno, error.strerror or str(error)) from error


def append_to_file(files: Files, path: AnyPath, data: bytes, position: int, *, cut: bool) -> bool:
    """Write `data` where the file ends, or with `cut`, where it is to end first; made if missing. No fsync.

    A file that is to be written whole and holds just that is left as it is: what is on the disk stays there. Whether
    anything was written. Raises OSError: a part may be there then, and the next call is to cut.
    """
    fd = files.open(path, create=True)
    try:
        if cut:
            size = files.descriptor_size(fd)
            if not position and size == len(data) and read_fully(files, fd, size, 0) == data:
                return False
            if size != position:
                # Not a new one: see `Files.write_file`.
                files.ftruncate(fd, position)
        write_fully(files, fd, data, position)
    finally:
        files.close(fd)
    return True


def cut_file(files: Files, path: AnyPath, size_bytes: int) -> None:
    """End the file there; made if missing. Raises OSError."""
    append_to_file(files, path, b"", size_bytes, cut=True)


def unlink_all(files: Files, paths: Iterable[AnyPath]) -> None:
    """Unlink the files, each although others can't be; those that are gone don't matter. Raises OSError."""
    failure: OSError | None = None
    for path in paths:
        try:
            files.unlink(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            failure = failure or error
    if failure is not None:
        raise failure


def storage_error(what: str, error: OSError) -> BrokerError:
    """The protocol's answer to a failed disk operation: retriable for clients."""
    return BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{what}: {error.strerror or error}")
