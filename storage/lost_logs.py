"""Partitions whose records this broker may have had on a disk that was replaced (KAFKA-14139).

The registry still counts such a broker among the replicas that have everything. If it led with the empty log that it
makes anew, the others would cut theirs to nothing. So a log that is made for what is lost is marked (`unproven_mark`);
this here is about those that are not made yet.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from kavka.storage import unproven_mark
from kavka.storage.files import Files
from kavka.storage.log_directories import LogDirectories
from kavka.storage.log_directory import LogDirectory
from kavka.storage.log_loading import KnownPartitions
from kavka.storage.log_table import LogTable
from kavka.storage.offset_checkpoint import TopicPartition
from kavka.storage.partition_metadata import NO_TOPIC_ID


class LostLogs:
    """What was there before this start and has no log, while a directory is new.

    A directory is new when nobody has claimed it before this start; where the broker is one among others it stays so
    over starts, until `forget`. Threads: `learn` belongs to the start; `includes` is any thread's; `disown` and
    `forget` are called one at a time.
    """

    __slots__ = ("_directories", "_known", "_missing", "_table")

    def __init__(self, directories: LogDirectories, table: LogTable) -> None:
        self._directories: Final = directories
        self._table: Final = table
        self._known: KnownPartitions | None = None
        self._missing: set[TopicPartition] = set()
        """Of this broker, without a log so far."""

    @property
    def may_exist(self) -> bool:
        """Whether a directory is new."""
        return self._known is not None

    def learn(self, known: KnownPartitions | None, own: Iterable[TopicPartition] = ()) -> None:
        """Which partitions there are in the registry at this start, and which of them this broker is to have."""
        if self._directories.has_new and known is not None:
            self._known = known
            self._missing = {key for key in own if self._table.get(key) is None}

    def mark_unmarked(self, directory: LogDirectory, folders: Iterable[Path], files: Files) -> None:
        """Mark logs that may have been made in place of lost ones when there were no marks. Raises OSError."""
        if self._directories.has_unmarked_logs(directory):
            for folder in folders:
                unproven_mark.put(folder, files)

    def includes(self, key: TopicPartition, topic_id: bytes) -> bool:
        """Whether the partition existed before this start, under this id, and has no log here."""
        known = self._known
        if known is None or self._table.get(key) is not None:
            return False
        former_id = known(*key)
        # Before topics had ids, the name is all there is.
        return former_id is not None and (former_id == topic_id or NO_TOPIC_ID in (former_id, topic_id))

    def disown(self, key: TopicPartition) -> None:
        """The partition is not this broker's any more."""
        self._missing.discard(key)

    def forget(self) -> bool:
        """No directory is new any more once all that this broker is to have has a log again, marked or not.

        False: something has none yet that would outlive a power cut, or a disk refused to note it.
        """
        self._missing = {key for key in self._missing if not self._is_here(key)}
        if self._missing or not self._directories.note_complete():
            return False
        self._known = None
        return True

    def _is_here(self, key: TopicPartition) -> bool:
        log = self._table.get(key)
        return log is not None and log.folder_saved
