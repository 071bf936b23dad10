"""All partition logs of a broker, in its `log.dirs`.

A start: `lock_directories` (whose are they?), then, once the topics' configurations are known, `load`, then
`claim(broker_id, cluster_id)`. A stop: `close`, with the clean-shutdown mark last. In between the broker's scheduler
calls the passes (`flush_due`, `checkpoint_recovery_points`, ...), each a plain method that any thread may call.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from kavka.config.broker_config import BrokerConfig
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.storage import log_passes
from kavka.storage.deferred_jobs import DeferredJobs
from kavka.storage.directory_checkpoints import ListLogs
from kavka.storage.environment import LogEnvironment, at_once
from kavka.storage.files import Files
from kavka.storage.found_folders import FoundFolders
from kavka.storage.log_closing import close_all, close_cleanly, hold_all, quieten
from kavka.storage.log_creation import LogCreation
from kavka.storage.log_directories import LogDirectories
from kavka.storage.log_directory import LogDirectory
from kavka.storage.log_factory import LogFactory
from kavka.storage.log_loading import KnownPartitions, find_all_folders, load_logs, run_all
from kavka.storage.log_moves import LogMoves
from kavka.storage.log_table import LogTable
from kavka.storage.lost_logs import LostLogs
from kavka.storage.meta_properties import MetaProperties
from kavka.storage.offset_checkpoint import TopicPartition
from kavka.storage.partition_folders import delete_folder, deleted_folder_name
from kavka.storage.partition_log import PartitionLog
from kavka.storage.segment_file import FilePool
from kavka.storage.stray_logs import StrayLogs

_log: Final = logging.getLogger(__name__)
_Keys: TypeAlias = Collection[TopicPartition]


class LogManager:
    """The logs by topic and partition, and the directories they lie in.

    Threads: `get` and `all_logs` take no lock. `_change_lock` puts creation, deletion, configuration and close one
    after another, and file work happens under it. `_membership_lock`, taken before it, orders creation, deletion and
    close: a deletion waits under it, and not under the other, until a log's flush has ended.
    `on_directory_failure(path, partitions, directories left)` is called by the thread that met the error, maybe with a
    log's lock held: it may post an event and no more. With none left the broker must stop.
    """

    def __init__(
        self,
        directories: Sequence[Path],
        config: BrokerConfig,
        topic_overrides: Callable[[str], Mapping[str, str]],
        *,
        files: Files,
        now_ms: Callable[[], int],
        run_in_background: Callable[[Callable[[], None]], object] | None = None,
        on_directory_failure: Callable[[Path, list[TopicPartition], int], object] | None = None,
        pause: Callable[[], object] | None = None,
        pool: FilePool | None = None,
    ) -> None:
        self.directories: Final = LogDirectories(directories, files, self._directory_failed)
        self.deferred: Final = DeferredJobs(now_ms)
        self._config = config
        self._files = files
        self._now_ms = now_ms
        self._on_directory_failure = on_directory_failure
        self._pause = pause or log_passes.yield_interpreter
        self._pool = pool if pool is not None else FilePool(files, on_close_failure=self.directories.file_failed)
        self._in_background = run_in_background or at_once
        self._membership_lock = threading.Lock()
        self._change_lock = threading.RLock()
        self._table = LogTable(self.directories.all)
        self.lost: Final = LostLogs(self.directories, self._table)
        self._loaded = False
        self._unsaved_deletions: dict[TopicPartition, LogDirectory] = {}
        """Of logs that are gone, but whose directory could not be fsynced: bounded by the partitions there were."""
        self._environments = {directory: self._environment(directory) for directory in self.directories.all}
        self._factory = LogFactory(config, topic_overrides, files, self._environments)
        self.forget_topic_config: Final = self._factory.forget_topic
        """What is remembered of that name's configuration was another topic's: logs to come have it anew. No lock."""
        self._creation = LogCreation(self.directories, self._table, self._factory)
        locks = (self._membership_lock, self._change_lock)
        parts = self.directories, self._table, self._factory
        self.moves: Final = LogMoves(*parts, self._creation, self.deferred, files, locks)
        self.strays: Final = StrayLogs(*parts, self.moves, files, locks)

    # Lookup

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        """The partition's log; None if there is none here, or its directory is offline."""
        return self._table.get((topic, partition))

    def all_logs(self) -> list[PartitionLog]:
        """Every log that is online."""
        return self._table.all()

    def directory_of(self, log: PartitionLog) -> LogDirectory:
        """Where the log lies, or lay until its directory failed."""
        return self._table.directory_of(log)

    def logs_in(self, directory: LogDirectory) -> list[PartitionLog]:
        """The logs that lie in one directory."""
        return self._table.logs_in(directory)

    def is_offline(self, topic: str, partition: int) -> bool:
        """Whether the partition's log was here until its directory failed."""
        return self._table.is_offline((topic, partition))

    def highest_producer_id(self) -> int:
        """Of the producers that the logs know; -1 if none. New ids must be above, also after adopting a directory."""
        return max((entry.producer_id for log in self.all_logs() for entry in log.producers.entries()), default=-1)

    # Start

    def lock_directories(self) -> MetaProperties:
        """Hold every directory and learn whose they are; see `LogDirectories.lock` for what it raises."""
        return self.directories.lock()

    def claim(self, broker_id: int, cluster_id: str, *, is_replicated: bool = False) -> None:
        """Write into every directory whose it is; see `LogDirectories.claim`. Raises NoLogDirectoryError."""
        self.directories.claim(broker_id, cluster_id, marks_new=is_replicated)

    def load(self, known: KnownPartitions | None = None, own: Iterable[TopicPartition] = ()) -> None:
        """Open every log that is there, and `known`; after an unclean stop, recover them, several at once.

        Others are left alone. `own`: what this broker is to have. Raises DuplicatePartitionError, NoLogDirectoryError.
        """
        found = find_all_folders(self.directories, self._files, known)
        run_all(lambda directory: self._load_directory(directory, found[directory]), list(found), len(found))
        self.directories.require_one()
        self.lost.learn(known, own)
        self.moves.settle()
        self._loaded = True

    # Partitions come and go

    def create(
        self, partitions: Iterable[tuple[str, int, bytes]], *, new: _Keys = frozenset(), lost: _Keys = frozenset()
    ) -> dict[TopicPartition, PartitionLog | BrokerError]:
        """The logs of (topic, partition, topic id), missing ones made in the directory that has the fewest.

        `new` are those that the controller made just now: a log that isn't among them and isn't found may lie in a
        directory that is offline, and is KAFKA_STORAGE_ERROR while there is one. INCONSISTENT_TOPIC_ID: the log here
        belongs to another topic of the same name. Directories are fsynced once for all. What is `lost` is unproven.
        """
        results: dict[TopicPartition, PartitionLog | BrokerError] = {}
        made: list[PartitionLog] = []
        with self._membership_lock, self._change_lock:
            for topic, partition, topic_id in partitions:
                key = (topic, partition)
                log = self._table.get(key)
                try:
                    if log is None:
                        log = self._creation.create(key, topic_id, is_new=key in new, is_lost=key in lost)
                        made.append(log)
                        self._unsaved_deletions.pop(key, None)
                    else:
                        self._factory.adopt(log, topic_id)
                    results[key] = log
                except BrokerError as error:
                    results[key] = error
            fsynced = {each for each in {self._table.directory_of(log) for log in made} if self._fsync(each)}
            for log in [log for log in made if self._table.directory_of(log) in fsynced]:
                log.folder_saved = True
            # A directory that has failed by now has taken its logs along.
            for key in [key for key, log in results.items() if self._table.get(key) is not log]:
                if isinstance(results[key], PartitionLog):
                    results[key] = BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{key[0]}-{key[1]} is lost again")
        if made:
            self._in_background(partial(self._fsync_topic_ids, made))
        return results

    def delete(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, BrokerError]:
        """Make the partitions' logs go away: renamed now, files unlinked after `file.delete.delay.ms`.

        First their flushes and compactions end, so that nothing meets a folder that is gone (KAFKA-15391). Returns the
        errors (KAFKA_STORAGE_ERROR, also where the directory is offline); a partition without a log is no error.
        """
        with self._membership_lock:
            wanted = list(partitions)
            copies = self.moves.delete_all(wanted)
            leaving = {key: log for key in wanted if key not in copies and (log := self._table.get(key))}
            quieten(leaving.values())
            with self._change_lock:
                return (
                    self._delete(leaving)
                    | self._save_deletions(wanted)
                    | self._delete_rests(wanted)
                    | {
                        key: BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{key[0]}-{key[1]} is in an offline directory")
                        for key in wanted
                        if self._table.is_offline(key)
                    }
                    | copies
                )

    def _delete(self, leaving: Mapping[TopicPartition, PartitionLog]) -> dict[TopicPartition, BrokerError]:
        errors: dict[TopicPartition, BrokerError] = {}
        for key, log in leaving.items():
            directory = self._table.directory_of(log)
            if not directory.online:
                continue
            try:
                log.rename_directory(directory.path / deleted_folder_name(*key))
            except BrokerError as error:
                errors[key] = error
                log.cancel_deletion()
                continue
            self._table.remove(directory, key)
            self._unsaved_deletions[key] = directory
            self._factory.forget_topic(key[0])
            self.deferred.add(log.config.file_delete_delay_ms, partial(self._delete_files, log))
        return errors

    def _save_deletions(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, BrokerError]:
        unsaved = {key: directory for key in keys if (directory := self._unsaved_deletions.get(key)) is not None}
        fsynced = {each for each in set(unsaved.values()) if each.online and self._fsync(each)}
        for key in [key for key, directory in unsaved.items() if directory in fsynced]:
            del self._unsaved_deletions[key], unsaved[key]
        self._table.mark_offline([key for key, directory in unsaved.items() if not directory.online])
        what = "the deletion could not be made durable"
        return {key: BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{key[0]}-{key[1]}: {what}") for key in unsaved}

    def _delete_rests(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, BrokerError]:
        errors: dict[TopicPartition, BrokerError] = {}
        for key in keys:
            try:
                self._creation.delete(key)
            except BrokerError as error:
                errors[key] = error
        return errors

    def _delete_files(self, log: PartitionLog) -> None:
        log.delete()
        self._table.let_go(log)

    def update_topic_config(self, topic: str, overrides: Mapping[str, str]) -> None:
        """A topic's configuration has changed."""
        with self._change_lock:
            self._factory.update_topic(topic, overrides, self._table.all_with_futures())

    def update_broker_config(self, config: BrokerConfig) -> None:
        """The broker's settings have changed: its defaults for topics, and how long silent producers are known."""
        with self._change_lock:
            self._config = config
            for environment in self._environments.values():
                environment.producer_id_expiration_ms = config.producer_id_expiration_ms
            self._factory.update_broker(config, self._table.all_with_futures())

    # Passes: each is called by the broker's scheduler at its own interval

    def flush_due(self, directory: LogDirectory | None = None) -> int:
        """fsync the logs, all or those there, whose `flush.ms` or `flush.messages` says so; returns how many."""
        return log_passes.flush_due(self._table.all_with_futures(directory), self._now_ms(), self._pause)

    def retention_pass(self, directory: LogDirectory | None = None) -> int:
        """Delete segments that are too old, too many, or below the log start offset, as above; returns how many."""
        return log_passes.delete_old_segments(self._table.all_with_futures(directory), self._now_ms(), self._pause)

    def expire_producers(self) -> int:
        """Forget producer ids that were silent for `producer.id.expiration.ms`; returns how many."""
        return log_passes.remove_expired_producers(self._table.all_with_futures(), self._now_ms(), self._pause)

    def delete_pending(self) -> int:
        """Unlink the files whose `file.delete.delay.ms` is over; returns the number of jobs done."""
        return self.deferred.run_due()

    def checkpoint_recovery_points(self) -> None:
        """Write recovery points and log start offsets of every directory, where they changed."""
        for directory in self.directories.online:
            self._checkpoint(directory, directory.checkpoints.write_recovery_points)

    def checkpoint_log_start_offsets(self) -> None:
        """Write the log start offsets of every directory, where they changed."""
        for directory in self.directories.online:
            self._checkpoint(directory, directory.checkpoints.write_log_start_offsets)

    def checkpoint_high_watermarks(self) -> None:
        """Write the high watermarks of every directory, where they changed."""
        for directory in self.directories.online:
            self._checkpoint(directory, directory.checkpoints.write_high_watermarks)

    def checkpoint_clean_offsets(self, directory: LogDirectory) -> None:
        """Write where the dirty parts of the directory's compacted logs begin, if that changed."""
        if directory.online:
            self._checkpoint(directory, directory.checkpoints.write_clean_offsets)

    # Stop

    def close(self, *, clean: bool = True, broker_epoch: int = -1) -> None:
        """Close every log and let go of the directories. Nothing may append any more.

        Clean: logs are flushed and their snapshots taken, then the checkpoints, then the mark of a clean stop, which a
        directory gets only if all before it worked. Else descriptors are closed and no more: the next start recovers.
        Pending deletions are left to the next start. Nothing is closed where a disk that answers nothing holds this up.
        """
        with ExitStack() as held:
            if not hold_all(held, (self._membership_lock, self._change_lock)):
                return
            clean = clean and self._loaded
            directories = self.directories.all
            try:
                run_all(lambda each: self._close_directory(each, clean, broker_epoch), directories, len(directories))
            finally:
                # Whatever failed, and however: a later start in this process must find them free.
                self._loaded = False
                for log in self._table.clear():
                    with contextlib.suppress(OSError, BrokerError):
                        log.close(clean=False)
                self.directories.unlock()

    def _close_directory(self, directory: LogDirectory, clean: bool, broker_epoch: int) -> None:
        logs = self.logs_in(directory)
        try:
            if not clean or not directory.online:
                close_all(logs)
                return
            threads = self._config.num_recovery_threads_per_data_dir
            close_cleanly(directory.path, logs, self._files, threads, directory.witness)
            if directory.online:
                directory.checkpoints.write_recovery_points(lambda: logs)
                directory.checkpoints.write_high_watermarks(lambda: logs)
            if directory.online:
                directory.mark_clean(broker_epoch)
        except (OSError, BrokerError) as error:
            _log.warning("no clean stop, the next start recovers: directory=%s error=%s", directory.path, error)

    # Directories

    def _directory_failed(self, directory: LogDirectory) -> None:
        lost = self._table.lose(directory)
        if self._on_directory_failure is not None:
            self._on_directory_failure(directory.path, lost, len(self.directories.online))

    def _fsync_topic_ids(self, logs: Sequence[PartitionLog]) -> None:
        for log in logs:
            with self.directories.tried_again(self._table.directory_of(log), "could not fsync"):
                self._factory.fsync_topic_id(log)

    def _fsync(self, directory: LogDirectory) -> bool:
        with self.directories.tried_again(directory, "could not fsync"):
            directory.fsync()
            return True
        return False

    def _checkpoint(self, directory: LogDirectory, write: Callable[[ListLogs], None]) -> None:
        if directory.fsync_is_due:
            self._fsync(directory)
        with self.directories.tried_again(directory, "could not write a checkpoint"):
            write(partial(self.logs_in, directory))

    # Opening

    def _load_directory(self, directory: LogDirectory, found: FoundFolders) -> None:
        for folder in found.deleted:
            self.deferred.add(0, partial(delete_folder, folder, self._files))
        started = time.perf_counter()
        try:
            self.lost.mark_unmarked(directory, found.logs.values(), self._files)
            logs = load_logs(
                directory,
                found.logs | dict(found.futures),
                partial(self._factory.open, directory),
                self._config.num_recovery_threads_per_data_dir,
            )
        except OSError as error:
            self._table.mark_offline(found.logs)
            self.directories.fail(directory, error)
            return
        self._table.add_loaded(directory, logs)
        _log.info(
            "logs loaded: directory=%s logs=%d seconds=%.3f", directory.path, len(logs), time.perf_counter() - started
        )

    def _environment(self, directory: LogDirectory) -> LogEnvironment:
        return LogEnvironment(
            files=self._files,
            now_ms=self._now_ms,
            pool=self._pool,
            run_in_background=self._in_background,
            run_later=self.deferred.add,
            on_io_failure=self.directories.folder_failed,
            on_refused=lambda _path, reason: self.directories.refused(directory, reason),
            on_clean_offset_lowered=lambda: self._in_background(partial(self.checkpoint_clean_offsets, directory)),
            on_recovery_point_lowered=lambda: self._in_background(
                partial(self._checkpoint, directory, directory.checkpoints.write_recovery_points)
            ),
            store_recovery_points=lambda: directory.checkpoints.write_recovery_points(partial(self.logs_in, directory)),
            producer_id_expiration_ms=self._config.producer_id_expiration_ms,
            validate_all_records=self._config.kavka_validate_records == "all",
        )
