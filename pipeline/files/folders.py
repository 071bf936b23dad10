"""Which folder of some log directories holds a partition."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from kavka.client.topic_partition import TopicPartition
from kavka.pipeline.files.errors import PartitionMissingError
from kavka.storage.files import Files
from kavka.storage.log_file_names import holds_log
from kavka.storage.move_marks import read_mark
from kavka.storage.partition_folders import FolderKind, folder_name, parse_folder_name
from kavka.storage.segment_files import base_offsets

FILES: Final = Files()


def partitions(directories: Iterable[str]) -> list[TopicPartition]:
    """The partitions whose logs lie in these log directories, in order. Raises OSError."""
    found = set()
    for directory in directories:
        for name in FILES.listdir(directory):
            folder = parse_folder_name(name)
            if folder is not None and folder.kind is FolderKind.LOG and holds_log(Path(directory) / name, FILES):
                found.add(TopicPartition(folder.topic, folder.partition))
    return sorted(found)


def find_folder(directories: Sequence[str], topic: str, partition: int) -> Path:
    """The folder of the partition's log. Raises PartitionMissingError, OSError.

    There may be several, after a move between directories or where the directories are those of several brokers: then
    the one whose mark is the latest, or else the one that goes furthest.
    """
    name = folder_name(topic, partition)
    folders = [folder for each in directories if holds_log(folder := Path(each) / name, FILES)]
    if not folders:
        raise PartitionMissingError(
            f"{name} is in none of {', '.join(map(str, directories))} here: every machine that reads must see that path"
        )
    return max(folders, key=_preference) if len(folders) > 1 else folders[0]


def _preference(folder: Path) -> tuple[int, int, int]:
    bases = base_offsets(FILES.listdir(folder))
    size = FILES.size(folder / f"{bases[-1]:020d}.log") if bases else 0
    return read_mark(folder, FILES), bases[-1] if bases else -1, size
