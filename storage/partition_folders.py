"""Names in a log directory: which folder is a partition's log, and which is one on its way in or out.

    page_visits-3                                   the log of partition 3
    page_visits-3.0f6c...e1-delete                  deleted; the files go after file.delete.delay.ms
    page_visits-3.0f6c...e1-future                  a copy that moves here from another directory
    page_visits-3.0f6c...e1-stray                   set aside: another topic has the name, or Kafka's registry none

What has another name is none of ours: it is left alone, and so is a folder without a log's files (`log_file_names`).
"""

import contextlib
import enum
import logging
import os
import re
from pathlib import Path
from typing import Final, NamedTuple

from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.storage.files import Files, unlink_all
from kavka.storage.log_file_names import is_log_file

_log: Final = logging.getLogger(__name__)
_MAX_FOLDER_NAME: Final = 255
_MAX_TOPIC_LENGTH: Final = 249
_MAX_PARTITION: Final = (1 << 31) - 1
_LEGAL: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


_UNIQUE: Final = re.compile(r"[0-9a-f]{32}")
"""A UUID without its dashes, as every Kafka and Kavka puts it there."""


class FolderKind(enum.Enum):
    """What is to be done with a partition's folder at start."""

    LOG = ""
    """Load it."""
    DELETED = "-delete"
    """Delete its files."""
    FUTURE = "-future"
    """Go on with the copy, if the log that it is one of lies in another directory; else leave it."""
    STRAY = "-stray"
    """Leave it to the operator."""


class PartitionFolder(NamedTuple):
    """What a folder's name says. The topic of a deleted one may be cut short."""

    topic: str
    partition: int
    kind: FolderKind


_SUFFIXES: Final = (FolderKind.DELETED, FolderKind.FUTURE, FolderKind.STRAY)


class NameTakenError(BrokerError):
    """Something that is not this partition's log has its name where it is to lie."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            ErrorCode.KAFKA_STORAGE_ERROR, f"{path} is there, and is not this partition's log: move it away"
        )


def parse_folder_name(name: str) -> PartitionFolder | None:
    """Read a folder's name; None if it isn't a partition's."""
    for kind in _SUFFIXES:
        if name.endswith(kind.value):
            stem, dot, unique = name[: -len(kind.value)].rpartition(".")
            if dot and _UNIQUE.fullmatch(unique):
                return _partition_of(stem, kind)
    return _partition_of(name, FolderKind.LOG)


def folder_name(topic: str, partition: int) -> str:
    """The name of a partition's folder."""
    return f"{topic}-{partition}"


def deleted_folder_name(topic: str, partition: int) -> str:
    """A name under which a deleted partition waits; unique, since the topic may be made and deleted again meanwhile."""
    return _aside(topic, partition, FolderKind.DELETED)


def stray_folder_name(topic: str, partition: int) -> str:
    """A name under which a partition waits for the operator, of a topic whose name another one has."""
    return _aside(topic, partition, FolderKind.STRAY)


def future_folder_name(topic: str, partition: int) -> str:
    """A name for a copy that moves here. Raises BrokerError INVALID_TOPIC_EXCEPTION: it would be too long."""
    name = f"{topic}-{partition}.{os.urandom(16).hex()}{FolderKind.FUTURE.value}"
    if len(name) > _MAX_FOLDER_NAME:
        raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"the name of {topic} is too long to be moved")
    return name


def is_future_folder(name: str) -> bool:
    """Whether a partition's folder of this name holds a copy that moves here."""
    return name.endswith(FolderKind.FUTURE.value)


def delete_folder(folder: Path, files: Files) -> None:
    """Delete a partition's folder with the log's files; harmless if it is gone, or goes meanwhile.

    What else lies in it stays, and the folder with it. Of a link only the link goes, as in Kafka: where the files lie
    is for whoever made it to say. What a crash leaves is deleted at the next start. Raises OSError.
    """
    with contextlib.suppress(FileNotFoundError):
        if files.is_link(folder):
            files.unlink(folder)
            return
        names = files.listdir(folder)
        # A delayed deletion of a segment may come first.
        unlink_all(files, [folder / name for name in names if is_log_file(name)])
        if others := sorted(name for name in names if not is_log_file(name)):
            _log.warning("a deleted partition's folder stays, for it holds more: folder=%s names=%s", folder, others)
            return
        files.rmdir(folder)


def _aside(topic: str, partition: int, kind: FolderKind) -> str:
    """The topic's name may be cut short."""
    suffix = f"-{partition}.{os.urandom(16).hex()}{kind.value}"
    return topic[: _MAX_FOLDER_NAME - len(suffix)] + suffix


def _partition_of(name: str, kind: FolderKind) -> PartitionFolder | None:
    topic, _, digits = name.rpartition("-")
    if not 0 < len(topic) <= _MAX_TOPIC_LENGTH or not _LEGAL.issuperset(topic) or topic in {".", ".."}:
        return None
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 10 or (digits[0] == "0" and digits != "0"):
        return None
    partition = int(digits)
    return PartitionFolder(topic, partition, kind) if partition <= _MAX_PARTITION else None
