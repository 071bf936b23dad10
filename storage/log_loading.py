"""Loading a log directory at start: which folders are there, and opening the logs in them.

After a clean stop a log opens with a few reads, and more threads would only fight for the interpreter: one a directory.
Otherwise, and where a log has no recovery point, each is recovered from it, by `num.recovery.threads.per.data.dir`
threads a directory (reads and checksums release the interpreter).
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from kavka.config.thread_names import thread_name
from kavka.storage import partition_metadata
from kavka.storage.files import Files
from kavka.storage.found_folders import FoundFolders
from kavka.storage.log_directories import LogDirectories
from kavka.storage.log_directory import LogDirectory
from kavka.storage.log_file_names import holds_log
from kavka.storage.move_settling import settle_futures, settle_moved
from kavka.storage.offset_checkpoint import CHECKPOINT_FILES, TopicPartition
from kavka.storage.partition_folders import FolderKind, parse_folder_name
from kavka.storage.partition_log import PartitionLog
from kavka.storage.partition_metadata import NO_TOPIC_ID
from kavka.storage.replaying import recall_batches
from kavka.storage.unused_folders import discard_unused

_log: Final = logging.getLogger(__name__)
_Item = TypeVar("_Item")
_KNOWN_FILES: Final = CHECKPOINT_FILES | {"meta.properties", ".lock", ".kafka_cleanshutdown"}
_OWN_PREFIX: Final = "kavka-"
"""What else a broker keeps at a directory's top is called so, as the embedded registry's files."""


OpenLog: TypeAlias = Callable[[Path, TopicPartition, bool, int, int], PartitionLog]
"""(folder, partition, clean, recovery point, log start offset) -> the log; raises OSError"""

KnownPartitions: TypeAlias = Callable[[str, int], bytes | None]
"""(topic, partition) -> the topic's id, NO_TOPIC_ID if it has none yet; None: there is no such partition."""


class DuplicatePartitionError(Exception):
    """A partition has a folder in two log directories; which one is right is for the operator to say."""


def find_folders(directory: Path, files: Files) -> FoundFolders:
    """The directory's partition folders: those with such a name and a log's files in them. Raises OSError.

    A link counts as what it leads to. An empty folder is none: `LogFactory.create` takes it where it needs the name.
    """
    found = FoundFolders({}, [], [], [], [])
    for name in sorted(files.listdir(directory)):
        folder = parse_folder_name(name)
        path = directory / name
        if folder is not None and folder.kind is FolderKind.FUTURE and holds_log(path, files):
            found.futures.append(((folder.topic, folder.partition), path))
        elif folder is None or folder.kind in {FolderKind.FUTURE, FolderKind.STRAY}:
            if name not in _KNOWN_FILES and not name.startswith(_OWN_PREFIX) and not name.endswith(".tmp"):
                found.others.append(name)
        elif folder.kind is FolderKind.DELETED and files.is_directory(path):
            found.deleted.append(path)
        elif folder.kind is FolderKind.LOG and holds_log(path, files):
            found.logs[folder.topic, folder.partition] = path
        else:
            found.no_logs.append(name)
    return found


def find_all_folders(
    directories: LogDirectories, files: Files, known: KnownPartitions | None = None
) -> dict[LogDirectory, FoundFolders]:
    """What each directory holds; one that can't be read goes offline. What is left alone is logged by name.

    A log that isn't `known` is left alone too (None: all are): retention under settings that aren't its own would
    delete its records, and it may be all that is left of a topic. Raises DuplicatePartitionError.
    """
    found: dict[LogDirectory, FoundFolders] = {}
    for directory in directories.online:
        with directories.any_error_is_final(directory):
            folders = find_folders(directory.path, files)
            if folders.no_logs:
                _leave_alone(directory, "no log's files in them", folders.no_logs)
            if folders.others:
                _log.info("left alone, for they are no logs: directory=%s names=%s", directory.path, folders.others)
            found[directory] = folders if known is None else _only_known(directory, folders, files, known)
    settle_moved(directories, found, files)
    discard_unused(found.values(), files)
    if known is not None:
        for directory, folders in found.items():
            with directories.any_error_is_final(directory):
                _leave_those_without_ids(directory, folders, found.values(), files, known)
    refuse_duplicates(found.values())
    settle_futures(directories, found, files)
    return found


def _only_known(directory: LogDirectory, found: FoundFolders, files: Files, known: KnownPartitions) -> FoundFolders:
    logs, strangers, namesakes = {}, {}, []
    for key, folder in found.logs.items():
        topic_id = known(*key)
        if topic_id is None:
            strangers[key] = folder.name
        elif (
            NO_TOPIC_ID not in (topic_id, own_id := partition_metadata.read_topic_id(folder, files))
            and own_id != topic_id
        ):
            namesakes.append(folder.name)
        else:
            logs[key] = folder
    if strangers:
        reason = "of partitions that are not known here; kavka storage adopt enters topics that are not"
        _leave_alone(directory, reason, list(strangers.values()))
        directory.strangers = frozenset(strangers)
    if namesakes:
        _leave_alone(directory, "of other topics of the same names, by their ids", namesakes)
    return found._replace(logs=logs)


def _leave_those_without_ids(
    directory: LogDirectory,
    folders: FoundFolders,
    found: Collection[FoundFolders],
    files: Files,
    known: KnownPartitions,
) -> None:
    """Leave alone what has no topic id where another directory's folder has the right one. Raises OSError."""
    for key, folder in list(folders.logs.items()):
        others = [each.logs[key] for each in found if each is not folders and key in each.logs]
        # Nearly always there are none, and no file is read.
        if (
            others
            and (topic_id := known(*key)) != NO_TOPIC_ID
            and partition_metadata.read_topic_id(folder, files) == NO_TOPIC_ID
            and any(partition_metadata.read_topic_id(each, files) == topic_id for each in others)
        ):
            _leave_alone(directory, "without a topic id, where another directory has the topic's log", [folder.name])
            del folders.logs[key]
            directory.strangers |= {key}


def _leave_alone(directory: LogDirectory, reason: str, names: Sequence[str]) -> None:
    # One line for all, for lines beyond a hundred a minute are only counted.
    _log.warning("folders left alone: directory=%s reason=%r names=%s", directory.path, reason, list(names))


def load_logs(
    directory: LogDirectory,
    folders: Mapping[TopicPartition, Path],
    open_log: OpenLog,
    recovery_threads: int,
) -> list[PartitionLog]:
    """Open the directory's logs, and recover them unless it was closed cleanly.

    One without a recovery point was no part of that: it was left alone then, or brought here since, and is recovered.
    The mark of the clean stop is gone afterwards. Raises OSError; the logs that were open by then are closed.
    """
    stored = directory.checkpoints.read()
    directory.checkpoints.keep(directory.strangers, stored)
    clean = directory.take_clean_shutdown_mark()
    logs: list[PartitionLog] = []

    def load(key: TopicPartition) -> None:
        recovery_point = stored.recovery_points.get(key)
        log_start_offset = stored.log_start_offsets.get(key, 0)
        log = open_log(folders[key], key, clean and recovery_point is not None, recovery_point or 0, log_start_offset)
        logs.append(log)
        log.clean_offset = stored.clean_offsets.get(key)
        if (high_watermark := stored.high_watermarks.get(key)) is not None:
            log.set_high_watermark(high_watermark)
            if clean and log.high_watermark < log.log_end_offset:
                # Who waits for the rest has been told nothing, and sends it again.
                recall_batches(log.files, log.published[2], log.producers)

    try:
        all_clean = clean and folders.keys() <= stored.recovery_points.keys()
        run_all(load, list(folders), 1 if all_clean else recovery_threads)
    except BaseException:
        for log in logs:
            log.close(clean=False)
        raise
    return logs


def refuse_duplicates(found: Iterable[FoundFolders]) -> None:
    """Raises DuplicatePartitionError if two directories hold a log of the same partition."""
    paths: dict[TopicPartition, Path] = {}
    for folders in found:
        for partition, path in folders.logs.items():
            other = paths.setdefault(partition, path)
            if other != path:
                raise DuplicatePartitionError(f"a partition lies in two log.dirs: {other} and {path}; move one away")


def run_all(work: Callable[[_Item], object], items: Sequence[_Item], threads: int) -> None:
    """Do the work on every item by up to `threads` threads, and raise what one of them raised once all are done."""
    if threads <= 1 or len(items) <= 1:
        for item in items:
            work(item)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(threads, len(items)), thread_name_prefix=thread_name("kavka-logs")) as executor:
        for future in [executor.submit(work, item) for item in items]:
            future.result()
