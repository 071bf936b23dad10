"""What a stop in the middle of a move between log directories has left, put right at the next start.

two folders of one name, one marked    the move was at its last step, or the controller made the replica anew while the
                                       other one's disk was away: the one with the latest mark is the log, the other
                                       is deleted
`-future` beside a marked log          that log was made so: the copy, of the former one, is deleted
`-future`, its log elsewhere           the move goes on
`-future`, no such log                 left alone, and named: a directory may be missing that has it
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kavka.storage import partition_metadata
from kavka.storage.files import Files
from kavka.storage.log_directories import LogDirectories
from kavka.storage.log_directory import LogDirectory
from kavka.storage.move_marks import NO_MARK, read_mark
from kavka.storage.offset_checkpoint import TopicPartition
from kavka.storage.partition_folders import deleted_folder_name
from kavka.storage.partition_metadata import NO_TOPIC_ID

if TYPE_CHECKING:
    from kavka.storage.found_folders import FoundFolders

_log: Final = logging.getLogger(__name__)


def settle_moved(directories: LogDirectories, found: "Mapping[LogDirectory, FoundFolders]", files: Files) -> None:
    """Of each partition with several folders keep the one that was moved to, and set the others aside to be deleted.

    Where none is marked, nothing is decided here. A directory whose disk refuses goes offline.
    """
    holders: dict[TopicPartition, list[LogDirectory]] = {}
    for directory, folders in found.items():
        for key in folders.logs:
            holders.setdefault(key, []).append(directory)
    for key, several in holders.items():
        if len(several) < 2:
            continue
        marks: dict[LogDirectory, int] = {}
        for directory in several:
            with directories.any_error_is_final(directory):
                marks[directory] = read_mark(found[directory].logs[key], files)
        log = max(marks, key=lambda each: marks[each], default=None)
        if log is None or marks[log] == NO_MARK or list(marks.values()).count(marks[log]) > 1:
            continue
        for directory in several:
            if directory is not log:
                with directories.any_error_is_final(directory):
                    _set_aside(directory, found[directory].logs.pop(key), key, found[directory], files)


def settle_futures(directories: LogDirectories, found: "Mapping[LogDirectory, FoundFolders]", files: Files) -> None:
    """Keep of `futures` those that go on, one a partition; a second one is deleted, and the others are left alone."""
    going_on: set[TopicPartition] = set()
    for directory, folders in found.items():
        for key, path in list(folders.futures):
            with directories.any_error_is_final(directory):
                log = folders.logs.get(key)
                if log is not None and read_mark(log, files) != NO_MARK:
                    folders.futures.remove((key, path))
                    _set_aside(directory, path, key, folders, files)
                elif not _has_log_elsewhere(directory, key, path, found, files):
                    folders.futures.remove((key, path))
                    _log.warning("left alone, for its log is not here: %s", path)
                elif key in going_on:
                    folders.futures.remove((key, path))
                    _set_aside(directory, path, key, folders, files)
                else:
                    going_on.add(key)


def _has_log_elsewhere(
    directory: LogDirectory,
    key: TopicPartition,
    path: Path,
    found: "Mapping[LogDirectory, FoundFolders]",
    files: Files,
) -> bool:
    if key in found[directory].logs:
        return False
    for folders in found.values():
        log = folders.logs.get(key)
        if log is not None:
            ids = {partition_metadata.read_topic_id(each, files) for each in (log, path)}
            return len(ids - {NO_TOPIC_ID}) < 2
    return False


def _set_aside(directory: LogDirectory, path: Path, key: TopicPartition, folders: "FoundFolders", files: Files) -> None:
    aside = directory.path / deleted_folder_name(*key)
    files.rename(path, aside)
    files.fsync_directory(directory.path)
    folders.deleted.append(aside)
    _log.warning("a move between log directories is ended: %s is deleted", path)
