"""Logs of former topics that have the name of another one, which is to be made here.

Nobody told this broker of their end, or that their replica went elsewhere. They are kept, under names that no start
loads, for the operator to look at or to delete.
"""

import logging
import threading
from functools import partial
from pathlib import Path
from typing import Final

from kavka.protocol.errors import BrokerError
from kavka.storage.files import Files, storage_error
from kavka.storage.log_closing import quieten
from kavka.storage.log_directories import LogDirectories
from kavka.storage.log_factory import LogFactory
from kavka.storage.log_moves import LogMoves
from kavka.storage.log_table import LogTable
from kavka.storage.offset_checkpoint import TopicPartition
from kavka.storage.partition_folders import folder_name, stray_folder_name
from kavka.storage.partition_log import PartitionLog
from kavka.storage.partition_metadata import NO_TOPIC_ID, read_topic_id

_log: Final = logging.getLogger(__name__)


class StrayLogs:
    """Sets them aside.

    Threads: any. `locks` are the manager's, in their order: for membership, and for changes.
    """

    def __init__(
        self,
        directories: LogDirectories,
        table: LogTable,
        factory: LogFactory,
        moves: LogMoves,
        files: Files,
        locks: tuple[threading.Lock, threading.RLock],
    ) -> None:
        self._directories: Final = directories
        self._table: Final = table
        self._factory: Final = factory
        self._moves: Final = moves
        self._files: Final = files
        self._membership_lock, self._change_lock = locks

    def set_aside(self, key: TopicPartition, topic_id: bytes) -> None:
        """Have nothing under the partition's name that is another topic's for sure, by its id. Waits for the disks.

        Nobody may append to it any more. Raises BrokerError KAFKA_STORAGE_ERROR: it is still there.
        """
        with self._membership_lock:
            log = self._table.get(key)
            if log is not None:
                if log.topic_id not in (topic_id, NO_TOPIC_ID):
                    self._set_log_aside(key, log)
                return
            with self._change_lock:
                for directory in self._directories.online:
                    folder = directory.path / folder_name(*key)
                    try:
                        if self._files.exists(folder) and read_topic_id(folder, self._files) not in (
                            topic_id,
                            NO_TOPIC_ID,
                        ):
                            aside = directory.path / stray_folder_name(*key)
                            self._files.rename(folder, aside)
                            directory.strangers -= {key}
                            directory.fsync()
                            _tell(key, aside)
                    except OSError as error:
                        self._directories.met(directory, "could not set a former topic aside", error)
                        raise storage_error("could not set a former topic aside", error) from error

    def _set_log_aside(self, key: TopicPartition, log: PartitionLog) -> None:
        """Membership lock held."""
        if failure := self._moves.delete_all([key]).get(key):
            raise failure
        quieten([log])
        directory = self._table.directory_of(log)
        with self._change_lock:
            try:
                log.rename_directory(directory.path / stray_folder_name(*key))
            except BrokerError:
                log.cancel_deletion()
                raise
            self._table.remove(directory, key)
            self._factory.forget_topic(key[0])
            log.close(clean=False)
            self._table.let_go(log)
            with self._directories.tried_again(directory, "could not forget a former topic"):
                directory.checkpoints.forget(key, partial(self._table.logs_in, directory))
                directory.fsync()
        _tell(key, log.directory)


def _tell(key: TopicPartition, aside: Path) -> None:
    _log.warning(
        "%s-%d is another topic now; the former one's log is set aside, and nobody deletes it: %s", *key, aside
    )
