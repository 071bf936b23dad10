"""Descriptors of `.log` files: pinned while someone reads or sends, the rest in an LRU.

An answer pins its file until its last byte is sent, so that a descriptor's number is never reused under it; a segment
that is deleted meanwhile closes when the last pin goes.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from kavka.storage.files import Files, read_fully
from kavka.storage.offset_index import IndexCache

DEFAULT_OPEN_FILES: Final = 1024


class FilePool:
    """Open files that need not stay open, at most `capacity`; the one that was parked first closes first.

    A file stays in the pool while it is pinned for a moment: readers would otherwise take the pool's lock twice each.
    `_lock` guards `_idle`. It is taken while a file's own lock is held, never the other way round.
    """

    __slots__ = ("_capacity", "_idle", "_lock", "files", "index_cache", "on_close_failure")

    def __init__(
        self,
        files: Files,
        capacity: int = DEFAULT_OPEN_FILES,
        on_close_failure: Callable[[str, OSError], object] | None = None,
    ) -> None:
        """`on_close_failure(path, error)`: called by any thread, with a log's lock held maybe."""
        self.files = files
        self.on_close_failure = on_close_failure or _nobody_to_tell
        self.index_cache = IndexCache()
        self._capacity = capacity
        self._lock = threading.Lock()
        self._idle: OrderedDict[SegmentFile, None] = OrderedDict()

    def park(self, file: "SegmentFile") -> "SegmentFile | None":
        """Take in a file whose last pin went; returns the one to let go in its stead, if over capacity."""
        with self._lock:
            self._idle[file] = None
            if len(self._idle) <= self._capacity:
                return None
            oldest, _ = self._idle.popitem(last=False)
            return oldest

    def unpark(self, file: "SegmentFile") -> None:
        with self._lock:
            self._idle.pop(file, None)

    @property
    def idle_count(self) -> int:
        return len(self._idle)


class SegmentFile:
    """One `.log` file and its descriptor.

    `_lock` guards `_fd`, `_pins`, `_parked` (in the pool), `path` and `_gone`. Any thread may acquire and release.
    """

    __slots__ = ("_fd", "_gone", "_lock", "_parked", "_pins", "_pool", "path")

    def __init__(self, path: str, pool: FilePool) -> None:
        self.path = path
        self._pool = pool
        self._lock = threading.Lock()
        self._fd = -1
        self._pins = 0
        self._gone = False
        self._parked = False

    def acquire(self, *, create: bool = False) -> int:
        """Pin the file; its descriptor is valid until the matching `release`. Raises OSError if it can't be opened."""
        with self._lock:
            if self._fd < 0:
                self._fd = self._pool.files.open(self.path, create=create)
            self._pins += 1
            return self._fd

    def release(self) -> None:
        """Undo one `acquire`."""
        with self._lock:
            self._pins -= 1
            if self._pins:
                return
            if self._gone:
                self._close()
                return
            if self._parked:
                return
            self._parked = True
            evicted = self._pool.park(self)
        if evicted is not None:
            evicted.leave_pool()

    def read(self, size_bytes: int, position: int) -> bytes:
        """Up to `size_bytes` from `position`; fewer at the end of the file. Raises OSError."""
        fd = self.acquire()
        try:
            return read_fully(self._pool.files, fd, size_bytes, position)
        finally:
            self.release()

    def fileno(self) -> int:
        """The descriptor; meaningful only between `acquire` and `release`."""
        return self._fd

    def rename(self, path: str) -> None:
        with self._lock:
            self._pool.files.rename(self.path, path)
            self.path = path

    def moved_to(self, path: str) -> None:
        """The directory was renamed; the file is at `path` now."""
        with self._lock:
            self.path = path

    def retire(self) -> None:
        """The file is deleted or its log closed: close as soon as nobody has it pinned, and never park it again."""
        with self._lock:
            self._gone = True
            self._pool.unpark(self)
            self._parked = False
            if self._pins == 0 and self._fd >= 0:
                self._close()

    def leave_pool(self) -> None:
        """Close, or if it is pinned, come back with the last release."""
        with self._lock:
            self._parked = False
            if self._pins == 0 and self._fd >= 0:
                self._close()

    def _close(self) -> None:
        fd, self._fd = self._fd, -1
        try:
            self._pool.files.close(fd)
        except OSError as error:
            # Network file systems say only now what they could not write, and a later fsync won't say it again.
            self._pool.on_close_failure(self.path, error)

    def __repr__(self) -> str:
        return f"SegmentFile({self.path!r}, fd={self._fd}, pins={self._pins})"


def _nobody_to_tell(_path: str, _error: OSError) -> None:
    return
