"""`kavka-moved` in a partition's folder: of several folders of the partition, this one may be its log.

    text: when it took the other one's place, in nanoseconds, or a number behind the one it is to outdo

A move ends with two renames in two directories, so that a crash in between (or a disk that forgets the second one)
leaves two folders of the same name. The copy's folder is marked before, and the one whose mark is the latest is the
log. So is a log that is made as a new one while a directory is offline, which may have a former one of that name. The
mark lies in the folder, and not beside it, so that it never speaks for another folder that has the name. Marks go
when nothing is left to tell: after the move, or at the next start with all directories online.
"""

import contextlib
from pathlib import Path
from typing import Final

from kavka.storage.files import AnyPath, Files

FILE_NAME: Final = "kavka-moved"
NO_MARK: Final = -1
_MAX_FILE_BYTES: Final = 64


def write_mark(folder: AnyPath, number: int, files: Files) -> None:
    """Say that the folder is the partition's log from now on, if it has the name; durable. Raises OSError."""
    files.write_atomically(Path(folder) / FILE_NAME, b"%d\n" % number)


def read_mark(folder: AnyPath, files: Files) -> int:
    """The mark's number; NO_MARK if there is none, or none that can be read. Raises OSError."""
    try:
        return int(files.read_bytes(Path(folder) / FILE_NAME, _MAX_FILE_BYTES))
    except (FileNotFoundError, ValueError):
        return NO_MARK


def remove_mark(folder: str, files: Files) -> None:
    """Take it off; harmless if there is none. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        files.unlink(f"{folder}/{FILE_NAME}")
