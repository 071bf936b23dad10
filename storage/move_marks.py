"""The mark of a move between log directories: which of two folders of a partition is its log.

    DIRECTORY/kavka-moved.TOPIC-PARTITION    text: when the log there took the other one's place, in nanoseconds

A move ends with two renames in two directories, so that a crash in between (or a disk that forgets the second one)
leaves two folders of the same name. The copy's directory is marked before, and the folder whose mark is the latest is
the log. Marks go when nothing is left to tell: after the move, or at the next start with all directories online.
"""

import contextlib
from pathlib import Path
from typing import Final

from kavka.storage.files import Files
from kavka.storage.partition_folders import folder_name

PREFIX: Final = "kavka-moved."
NO_MARK: Final = -1
_MAX_FILE_BYTES: Final = 64


def write_mark(directory: Path, topic: str, partition: int, number: int, files: Files) -> None:
    """Say that the folder in this directory is the partition's log from now on; durable. Raises OSError."""
    files.write_atomically(_path(directory, topic, partition), b"%d\n" % number)


def read_mark(directory: Path, topic: str, partition: int, files: Files) -> int:
    """The mark's number; NO_MARK if there is none, or none that can be read. Raises OSError."""
    try:
        return int(files.read_bytes(_path(directory, topic, partition), _MAX_FILE_BYTES))
    except (FileNotFoundError, ValueError):
        return NO_MARK


def remove_mark(directory: Path, topic: str, partition: int, files: Files) -> None:
    """Take it off; harmless if there is none. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        files.unlink(_path(directory, topic, partition))


def remove_marks(directory: Path, files: Files) -> None:
    """Take off all of a directory. Raises OSError."""
    for name in files.listdir(directory):
        if name.startswith(PREFIX):
            with contextlib.suppress(FileNotFoundError):
                files.unlink(directory / name)


def _path(directory: Path, topic: str, partition: int) -> Path:
    return directory / (PREFIX + folder_name(topic, partition))
