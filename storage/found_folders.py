"""What lies in a log directory, by what its folders are called."""

from pathlib import Path
from typing import NamedTuple

from kavka.storage.offset_checkpoint import TopicPartition


class FoundFolders(NamedTuple):
    """The partition folders of one directory, as paths, and the names of what is none of ours."""

    logs: dict[TopicPartition, Path]
    deleted: list[Path]
    no_logs: list[str]
    """Called as a partition's folder, but without a log's files."""
    others: list[str]
    futures: list[tuple[TopicPartition, Path]]
    """Copies that move here from another directory."""
