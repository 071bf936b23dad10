"""Logs that move from one of `log.dirs` to another (KIP-113): a copy is made beside the log, and takes its place.

The copy lies in a folder `topic-partition.X-future`. Who copies (`broker/log_moves`) reads the log and appends to the
copy, as a follower would; all else is here. To flushes, checkpoints, retention, stops and its directory's `logs_in` a
copy is a log as others are, but it is no partition's: `LogManager.get` does not know it.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final

from kavka.protocol.errors import BrokerError, DecodeError, ErrorCode
from kavka.storage.deferred_jobs import DeferredJobs
from kavka.storage.files import Files, storage_error, unlink_all
from kavka.storage.log_closing import quieten
from kavka.storage.log_creation import LogCreation
from kavka.storage.log_directories import LogDirectories
from kavka.storage.log_directory import LogDirectory
from kavka.storage.log_exchange import exchange, share_epochs
from kavka.storage.log_factory import LogFactory
from kavka.storage.log_table import LogTable
from kavka.storage.move_marks import read_mark, remove_mark, write_mark
from kavka.storage.offset_checkpoint import TopicPartition
from kavka.storage.offset_index import CorruptIndexError
from kavka.storage.partition_folders import (
    NameTakenError,
    delete_folder,
    deleted_folder_name,
    future_folder_name,
    is_future_folder,
)
from kavka.storage.partition_log import PartitionLog
from kavka.storage.segment import DELETED_SUFFIX

_log: Final = logging.getLogger(__name__)


class LogMoves:
    """The copies of a broker, and where logs are to be made that it does not have yet.

    Threads: any. `locks` are the manager's, in their order: for membership, and for changes.
    """

    def __init__(
        self,
        directories: LogDirectories,
        table: LogTable,
        factory: LogFactory,
        creation: LogCreation,
        deferred: DeferredJobs,
        files: Files,
        locks: tuple[threading.Lock, threading.RLock],
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._directories: Final = directories
        self._table: Final = table
        self._factory: Final = factory
        self._creation: Final = creation
        self._deferred: Final = deferred
        self._files: Final = files
        self._membership_lock, self._change_lock = locks
        self._now_ns: Final = now_ns
        self.moving: Final = table.moving
        """By partition, as it is now: while there are any, a log's lock may be held over fsyncs."""

    def future(self, key: TopicPartition) -> PartitionLog | None:
        """The copy that is to take the log's place, if it moves. No lock."""
        return self._table.future(key)

    @property
    def futures(self) -> list[PartitionLog]:
        """All copies. No lock."""
        return self._table.futures

    def check_name(self, key: TopicPartition) -> None:
        """Raises BrokerError INVALID_TOPIC_EXCEPTION where a copy's folder would have too long a name."""
        future_folder_name(*key)

    def directory(self, path: str) -> LogDirectory:
        """The directory of that absolute path. Raises BrokerError LOG_DIR_NOT_FOUND, KAFKA_STORAGE_ERROR (offline)."""
        for directory in self._directories.all:
            if str(directory.path.absolute()) == path:
                if not directory.online:
                    raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"log directory {path} is offline")
                return directory
        raise BrokerError(ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is none of log.dirs")

    def prefer(self, key: TopicPartition, directory: LogDirectory) -> None:
        """Have the partition's log made there, should it be made; no more than that if log or copy lie there."""
        with self._membership_lock, self._change_lock:
            known = (self._table.get(key), self._table.future(key))
            if all(log is None or self._table.directory_of(log) is not directory for log in known):
                self._creation.prefer(key, directory)

    def begin(self, key: TopicPartition, directory: LogDirectory) -> PartitionLog | None:
        """Have the log move there: the copy, which is made unless it is there; None if that is where the log lies.

        A copy elsewhere is deleted. Raises BrokerError: REPLICA_NOT_AVAILABLE without a log here, KAFKA_STORAGE_ERROR,
        also while any directory is offline, which may hold a copy, and where something else has the log's name there;
        INVALID_TOPIC_EXCEPTION.
        """
        name = future_folder_name(*key)
        with self._membership_lock:
            current, future = self._table.get(key), self._table.future(key)
            if future is not None and self._table.directory_of(future) is not directory:
                self._delete(key, future)
                future = None
            if current is None:
                raise BrokerError(ErrorCode.REPLICA_NOT_AVAILABLE, f"{key[0]}-{key[1]} has no log here")
            if future is not None or self._table.directory_of(current) is directory:
                return future
            if not self._directories.are_all_online:
                raise BrokerError(
                    ErrorCode.KAFKA_STORAGE_ERROR, f"{key[0]}-{key[1]} can't move while a directory is offline"
                )
            with self._change_lock:
                future = self._create(directory, directory.path / name, key, current)
            # While nobody can give the move up again, which lets compaction go on.
            _pause_compaction(current)
        return future

    def delete(self, key: TopicPartition) -> None:
        """Give the move up, if there is one. Raises BrokerError KAFKA_STORAGE_ERROR: the copy is still there."""
        with self._membership_lock:
            future = self._table.future(key)
            if future is not None:
                self._delete(key, future)

    def delete_all(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, BrokerError]:
        """As `delete`, of logs that are about to be deleted: a copy whose log is gone would stay for good. The errors.

        Membership lock held.
        """
        errors: dict[TopicPartition, BrokerError] = {}
        for key in keys:
            self._creation.no_preference(key)
            future = self._table.future(key)
            try:
                if future is not None:
                    self._delete(key, future)
            except BrokerError as error:
                errors[key] = error
        return errors

    def complete(self, key: TopicPartition, future: PartitionLog, truncations: int) -> bool:
        """Put the copy in the log's place, if it has nearly all. False: the move is over, or to be gone on with.

        `truncations` is the log's from before the copy was compared with it. Waits for the disks.
        Where something else has the log's name the move is given up.

        Raises MoreToCopyError, BrokerError: nothing has changed.
        """
        current = self._table.get(key)
        if current is None or not share_epochs(current, future, truncations):
            return False
        source, target = self._table.directory_of(current), self._table.directory_of(future)
        future.flush()
        # A kill right behind the exchange must find what was found before it.
        in_target = partial(self._table.logs_in, target)
        number = self._next_mark(source, current)
        try:
            target.checkpoints.write_recovery_points(in_target)
            target.checkpoints.write_high_watermarks(in_target)
            target.checkpoints.write_clean_offsets(in_target)
            write_mark(future.folder, number, self._files)
        except OSError as error:
            self._directories.met(target, "could not prepare a move", error)
            raise storage_error("could not prepare a move", error) from error
        with self._membership_lock:
            if self._table.get(key) is not current or self._table.future(key) is not future:
                return False
            try:
                with self._change_lock:
                    failure = exchange(
                        current,
                        future,
                        truncations,
                        check=partial(_check_online, source, key),
                        keep_current=lambda: write_mark(current.folder, number + 1, self._files),
                        on_moved=lambda: self._moved(source, target, key, current),
                    )
            except BrokerError as error:
                # Under the log's name it has to keep it: nobody knows which of the two the next start finds.
                if is_future_folder(future.folder):
                    with self._directories.tried_again(target, "could not unmark a copy"):
                        remove_mark(future.folder, self._files)
                if isinstance(error, NameTakenError):
                    _log.error("a move is given up log=%s reason=%s", current, error)
                    self._delete(key, future)
                    return True
                raise
        _log.info("moved log=%s from=%s to=%s end=%d", current, source.path, target.path, current.log_end_offset)
        self._delete_later(current, future)
        if failure is not None:
            # The mark stays: the former folder may come back under its old name.
            self._directories.fail(source, failure)
            return True
        with self._directories.tried_again(source, "could not forget a log that has moved"):
            source.checkpoints.forget(key, partial(self._table.logs_in, source))
        if self._directories.are_all_online:
            # Else a former log may be away, that it has to outdo: the next start with all of them takes the mark off.
            with self._directories.tried_again(target, "could not unmark a log that has moved"):
                remove_mark(current.folder, self._files)
        return True

    def settle(self) -> None:
        """At start, when the logs are loaded: go on with the copies, and take off marks that tell nothing any more.

        Before anybody appends, for what a log forgot in a power cut and its copy did not must go from the copy first.
        """
        for future in self._table.futures:
            current = self._table.get((future.topic, future.partition))
            if current is not None:
                _pause_compaction(current)
                _cut_to_end(current, future)
        # Where there is one directory nothing moves, and a mark from other times has nobody to be compared with.
        if len(self._directories.all) > 1 and self._directories.are_all_online:
            for log in self._table.all():
                with self._directories.tried_again(self._table.directory_of(log), "could not unmark a log"):
                    remove_mark(log.folder, self._files)

    def _next_mark(self, source: LogDirectory, current: PartitionLog) -> int:
        """Raises BrokerError KAFKA_STORAGE_ERROR."""
        try:
            return max(self._now_ns(), read_mark(current.folder, self._files) + 1)
        except OSError as error:
            self._directories.met(source, "could not prepare a move", error)
            raise storage_error("could not prepare a move", error) from error

    def _moved(self, source: LogDirectory, target: LogDirectory, key: TopicPartition, current: PartitionLog) -> None:
        self._table.moved(source, target, key, current)
        if not target.online:
            # It failed during the exchange, and the log was not among those that it took along.
            self._directories.lose_late(target)

    def _create(
        self, directory: LogDirectory, folder: Path, key: TopicPartition, current: PartitionLog
    ) -> PartitionLog:
        what = f"could not begin to move {key[0]}-{key[1]}"
        try:
            self._factory.refuse_taken(directory, key)
            # What was there before under the partition's name must not count for the copy after a crash.
            directory.checkpoints.forget(key, partial(self._table.logs_in, directory))
            self._files.mkdir(folder)
            try:
                future = self._factory.create(directory, key, current.topic_id, folder)
            except OSError:
                delete_folder(folder, self._files)
                raise
        except OSError as error:
            self._directories.met(directory, what, error)
            raise storage_error(what, error) from error
        self._creation.no_preference(key)
        self._table.add_future(directory, key, future)
        with self._directories.tried_again(directory, "could not fsync"):
            directory.fsync()
            future.folder_saved = True
        if self._table.future(key) is not future:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{what}: the directory has failed")
        return future

    def _delete(self, key: TopicPartition, future: PartitionLog) -> None:
        """Membership lock held. Raises BrokerError KAFKA_STORAGE_ERROR."""
        directory = self._table.directory_of(future)
        quieten([future])
        with self._change_lock:
            try:
                future.rename_directory(directory.path / deleted_folder_name(*key))
            except BrokerError:
                future.cancel_deletion()
                raise
            self._table.remove_future(directory, key)
            if (current := self._table.get(key)) is not None:
                current.is_moving = False
            self._deferred.add(future.config.file_delete_delay_ms, partial(self._delete_files, future))
            with self._directories.tried_again(directory, "could not fsync"):
                directory.fsync()

    def _delete_files(self, log: PartitionLog) -> None:
        log.delete()
        self._table.let_go(log)

    def _delete_later(self, log: PartitionLog, former: PartitionLog) -> None:
        """The former files, and what the copy dropped: that was to be unlinked where its folder has another name."""
        delay_ms = log.config.file_delete_delay_ms
        self._deferred.add(delay_ms, partial(self._delete_files, former))
        with contextlib.suppress(OSError):
            dropped = [
                log.directory / name for name in self._files.listdir(log.folder) if name.endswith(DELETED_SUFFIX)
            ]
            self._deferred.add(delay_ms, partial(unlink_all, self._files, dropped))


def _check_online(source: LogDirectory, key: TopicPartition) -> None:
    """A log that was lost with its directory is nobody's to move: its partition is offline by now."""
    if not source.online:
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{key[0]}-{key[1]} is lost with {source.path}")


def _pause_compaction(log: PartitionLog) -> None:
    with log.lock:
        log.is_moving = True
        abort = log.abort_cleaning
    if abort is not None:
        log.environment.run_in_background(abort)


def _cut_to_end(current: PartitionLog, future: PartitionLog) -> None:
    """Take from the copy what the log lost: other records come to have those offsets, maybe in the same epoch."""
    end_offset = current.log_end_offset
    if future.log_end_offset <= end_offset:
        return
    _log.warning("cuts a copy to what its log has log=%s from=%d to=%d", future, future.log_end_offset, end_offset)
    try:
        if end_offset >= future.log_start_offset:
            with contextlib.suppress(DecodeError, CorruptIndexError):
                future.truncate_to(end_offset)
        if future.log_end_offset > end_offset:
            future.truncate_fully_and_start_at(current.log_start_offset)
    except BrokerError as error:
        # It was given up, and its directory with it: it is no copy any more.
        _log.warning("cannot cut a copy log=%s error=%s", future, error)
