"""A partition's folder in which nothing was ever written, beside another one in another log directory.

A directory broke while a log was made in it, what was undone there never reached the disk, and the log was made
elsewhere. Only one of the two can be the log: the empty one goes, where everything else that lies twice is for the
operator to say (`DuplicatePartitionError`).
"""

import logging
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kavka.storage import partition_metadata, unproven_mark
from kavka.storage.files import Files
from kavka.storage.offset_checkpoint import TopicPartition
from kavka.storage.partition_folders import deleted_folder_name

if TYPE_CHECKING:
    from kavka.storage.found_folders import FoundFolders

_log: Final = logging.getLogger(__name__)

_FIRST_SEGMENT: Final = f"{0:020}"
_OF_A_NEW_LOG: Final = frozenset(
    {partition_metadata.FILE_NAME, "leader-epoch-checkpoint", unproven_mark.FILE_NAME}
    | {_FIRST_SEGMENT + suffix for suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot")}
)


def discard_unused(found: "Collection[FoundFolders]", files: Files) -> None:
    """Rename unused folders of partitions that lie elsewhere, too, and have them deleted.

    A folder that can't be read or renamed stays where it is, for the operator.
    """
    by_partition: dict[TopicPartition, list[FoundFolders]] = {}
    for folders in found:
        for partition in folders.logs:
            by_partition.setdefault(partition, []).append(folders)
    for partition, holders in by_partition.items():
        if len(holders) > 1:
            try:
                _discard_unused(partition, holders, files)
            except OSError as error:
                _log.warning("can't tell which folder is the log: %s-%d error=%s", *partition, error)


def _discard_unused(partition: TopicPartition, holders: "Collection[FoundFolders]", files: Files) -> None:
    used = [each for each in holders if not _is_unused(each.logs[partition], files)]
    if len(used) > 1:
        return
    ids = {id(each): partition_metadata.read_topic_id(each.logs[partition], files) for each in holders}

    def weight(holder: "FoundFolders") -> tuple[bool, bool]:
        is_marked = files.exists(holder.logs[partition] / unproven_mark.FILE_NAME)
        return is_marked, ids[id(holder)] != partition_metadata.NO_TOPIC_ID

    # Of several that are empty one that may lack records: none of them has any. Else one with a topic id.
    log = used[0] if used else max(holders, key=weight)
    known_ids = (partition_metadata.NO_TOPIC_ID, ids[id(log)])
    for holder in holders:
        path = holder.logs[partition]
        if holder is log or ids[id(holder)] not in known_ids:
            continue
        aside = path.with_name(deleted_folder_name(*partition))
        files.rename(path, aside)
        del holder.logs[partition]
        holder.deleted.append(aside)
        _log.warning(
            "nothing was ever written here, the log is elsewhere: %s is deleted, %s is the log",
            path,
            log.logs[partition],
        )


def _is_unused(folder: Path, files: Files) -> bool:
    names = files.listdir(folder)
    return _OF_A_NEW_LOG.issuperset(names) and all(
        files.size(folder / name) == 0 for name in names if name.endswith(".log")
    )
