"""Partitions whose records this broker may have had on a disk that was replaced (KAFKA-14139).

The registry still counts such a broker among the replicas that have everything. If it led with the empty log that it
makes anew, the others would cut theirs to nothing.
"""

from typing import Final

from kavka.storage.log_directories import LogDirectories
from kavka.storage.log_loading import KnownPartitions
from kavka.storage.log_table import LogTable
from kavka.storage.offset_checkpoint import TopicPartition
from kavka.storage.partition_metadata import NO_TOPIC_ID


class LostLogs:
    """What was there before this start and has no log, while a directory is new.

    A directory is new when nobody has claimed it before this start; where the broker is one among others it stays so
    over starts, until `forget`. Threads: `learn` belongs to the start; the rest is any thread's.
    """

    __slots__ = ("_directories", "_known", "_table")

    def __init__(self, directories: LogDirectories, table: LogTable) -> None:
        self._directories: Final = directories
        self._table: Final = table
        self._known: KnownPartitions | None = None

    @property
    def may_exist(self) -> bool:
        """Whether a directory is new."""
        return self._known is not None

    def learn(self, known: KnownPartitions | None) -> None:
        """Which partitions there are in the registry at this start."""
        self._known = known if self._directories.has_new else None

    def includes(self, key: TopicPartition, topic_id: bytes) -> bool:
        """Whether the partition existed before this start, under this id, and has no log here."""
        known = self._known
        if known is None or self._table.get(key) is not None:
            return False
        former_id = known(*key)
        # Before topics had ids, the name is all there is.
        return former_id is not None and (former_id == topic_id or NO_TOPIC_ID in (former_id, topic_id))

    def forget(self) -> bool:
        """What was lost is here again: no directory is new any more. False: a disk refused to note that."""
        if not self._directories.note_complete():
            return False
        self._known = None
        return True
