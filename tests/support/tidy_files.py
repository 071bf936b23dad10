"""Files that are closed when nobody can use them any more: a test need not close every log that it opens."""

import contextlib
import os
import weakref

from kavka.storage.files import AnyPath, Files
from kavka.storage.log_directory import LOCK_FILE


class TidyFiles(Files):
    """Real files. What is open still when the last log that uses this is forgotten is closed then.

    A broker's logs live as long as it does, and are closed by it. A suite's workers live for thousands of tests, of
    which many leave logs open, as a crash does: they would come to the system's limit, and beyond what select() takes.
    """

    def __init__(self) -> None:
        self._paths: dict[int, str] = {}
        weakref.finalize(self, _close_all, self._paths)

    def open(self, path: AnyPath, *, create: bool = False, read_only: bool = False) -> int:
        fd = super().open(path, create=create, read_only=read_only)
        self._paths[fd] = str(path)
        return fd

    def close(self, fd: int) -> None:
        # First: by the next moment it may be the number of another file, of other files' descriptors.
        self._paths.pop(fd, None)
        os.close(fd)


def _close_all(paths: dict[int, str]) -> None:
    for fd, path in paths.items():
        # Whoever locked that file after a crash would lose his lock: it goes when any descriptor of the file does.
        if not path.endswith(LOCK_FILE):
            with contextlib.suppress(OSError):
                os.close(fd)
