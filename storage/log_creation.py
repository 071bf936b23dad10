"""Making logs of new partitions: in which directory, and what becomes of a folder that was only half made.

A folder that could neither be finished nor removed (no descriptors, a disk that breaks meanwhile) is remembered. The
partition is made nowhere else while it is there: should the broker start without the other directory, the empty folder
would be taken for the log.

A directory that is offline may hold a former log of a partition that is new: the controller has moved the replica away
and back meanwhile. So what is made while one is has a mark by which it outdoes that (`move_marks`).
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Final

from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.storage.files import PASSING, FinalDiskError, storage_error
from kavka.storage.log_directories import LogDirectories
from kavka.storage.log_directory import LogDirectory
from kavka.storage.log_factory import LogFactory
from kavka.storage.log_table import LogTable
from kavka.storage.move_marks import NO_MARK
from kavka.storage.offset_checkpoint import TopicPartition
from kavka.storage.partition_log import PartitionLog

MOST_PREFERENCES: Final = 100_000


class LogCreation:
    """Makes logs, and remembers folders that were left.

    Bounded by the partitions that the controller assigned. Threads: the manager's change lock.
    """

    __slots__ = ("_directories", "_factory", "_left", "_now_ns", "_preferred", "_table")

    def __init__(
        self,
        directories: LogDirectories,
        table: LogTable,
        factory: LogFactory,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._directories: Final = directories
        self._table: Final = table
        self._factory: Final = factory
        self._now_ns: Final = now_ns
        self._left: dict[TopicPartition, LogDirectory] = {}
        self._preferred: dict[TopicPartition, LogDirectory] = {}
        """Where clients want logs of partitions that are not here yet, the latest `MOST_PREFERENCES`."""

    def prefer(self, key: TopicPartition, directory: LogDirectory) -> None:
        """Make the partition's log there, should it be made and the directory work then."""
        self._preferred.pop(key, None)
        self._preferred[key] = directory
        if len(self._preferred) > MOST_PREFERENCES:
            del self._preferred[next(iter(self._preferred))]

    def no_preference(self, key: TopicPartition) -> None:
        """It is made, or will not be."""
        self._preferred.pop(key, None)

    def create(self, key: TopicPartition, topic_id: bytes, *, is_new: bool, is_lost: bool) -> PartitionLog:
        """A new log in the directory that has the fewest, or in the next if that can't take it and keeps nothing.

        `is_lost`: the partition had one that went with its disk, so this one is marked (`unproven_mark`).

        Raises BrokerError KAFKA_STORAGE_ERROR. The table says whether the partition is offline now; if not, another
        attempt may succeed.
        """
        what = f"could not create {key[0]}-{key[1]}"
        if not is_new and not self._directories.are_all_online:
            raise self._lost(key, f"{what}: it may lie in a directory that is offline")
        self._refuse_strangers(key, topic_id)
        refusal: BrokerError | None = None
        for directory in self._candidates(key):
            if not directory.online:
                continue
            try:
                self.remove_rest(key)
                log = self._create_in(directory, key, topic_id, is_lost)
            except OSError as error:
                self._met(directory, what, error)
                if directory.online and refusal is None:
                    refusal = storage_error(what, error)
                if key in self._left:
                    break
            else:
                self._table.add(directory, {key: log})
                self.no_preference(key)
                return log
        left = self._left.get(key)
        if left is not None and not left.online:
            raise self._lost(key, f"{what}: it was begun in a directory that is offline")
        raise refusal or self._lost(key, f"{what}: no log directory is online")

    def _candidates(self, key: TopicPartition) -> list[LogDirectory]:
        left = self._left.get(key)
        if left is not None:
            return [left]
        preferred = self._preferred.get(key)
        return sorted(
            self._directories.online,
            key=lambda each: (each is not preferred, key in each.strangers, self._table.count_in(each)),
        )

    def _refuse_strangers(self, key: TopicPartition, topic_id: bytes) -> None:
        # By its name alone it would be the new partition's log at the next start, wherever that is made now.
        for directory in self._directories.online:
            if key in directory.strangers:
                if self._factory.has_folder(directory, key):
                    self._factory.refuse_namesake(directory, key, topic_id)
                else:
                    directory.strangers -= {key}

    def delete(self, key: TopicPartition) -> None:
        """Remove what is left of a partition that was never made. Raises BrokerError KAFKA_STORAGE_ERROR."""
        directory = self._left.get(key)
        if directory is None:
            return
        what = f"could not delete the rest of {key[0]}-{key[1]}"
        if not directory.online:
            raise self._lost(key, f"{what}: it lies in a directory that is offline")
        try:
            self.remove_rest(key)
        except OSError as error:
            self._met(directory, what, error)
            raise storage_error(what, error) from error

    def remove_rest(self, key: TopicPartition) -> None:
        """Have nothing of an attempt that failed. Raises OSError."""
        directory = self._left.get(key)
        if directory is not None:
            self._factory.remove(directory, key)
            del self._left[key]

    def _create_in(
        self, directory: LogDirectory, key: TopicPartition, topic_id: bytes, is_unproven: bool
    ) -> PartitionLog:
        self._factory.make_folder(directory, key)
        try:
            # Only now is the name ours: what lay there before and is refused keeps its offsets.
            directory.checkpoints.forget(key, partial(self._table.logs_in, directory))
            mark = NO_MARK if self._directories.are_all_online else self._now_ns()
            return self._factory.create(directory, key, topic_id, is_unproven=is_unproven, mark=mark)
        except OSError as error:
            self._left[key] = directory
            try:
                self.remove_rest(key)
                # Not now where it passes: it is tried for many partitions, and the next checkpoint does.
                directory.fsync_is_due = True
                if error.errno not in PASSING or isinstance(error, FinalDiskError):
                    # Nothing that a broken disk says of the removal counts before that.
                    directory.fsync()
            except OSError:
                self._left[key] = directory
            raise

    def _met(self, directory: LogDirectory, what: str, error: OSError) -> None:
        if error.errno in PASSING and not isinstance(error, FinalDiskError):
            # Somebody tries again, for many partitions and for as long as it takes: that is not said each time.
            self._directories.refused(directory, f"{what}: {error.strerror}")
        else:
            self._directories.met(directory, what, error)

    def _lost(self, key: TopicPartition, reason: str) -> BrokerError:
        self._table.mark_offline([key])
        return BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, reason)
