"""Which logs a broker has, in which of its directories, and which it lost with one."""

import threading
from collections.abc import Iterable, Mapping

from kavka.storage.log_directory import LogDirectory
from kavka.storage.offset_checkpoint import TopicPartition
from kavka.storage.partition_folders import is_future_folder
from kavka.storage.partition_log import PartitionLog


class LogTable:
    """The logs by topic and partition, and by directory.

    Threads: look-ups take no lock. `_lock` guards changes of everything; nothing is called while it is held, so a log
    may report its disk's failure from under its own lock.
    """

    __slots__ = ("_futures", "_leaving", "_lock", "_logs", "_logs_in", "_lost", "_offline", "moving")

    def __init__(self, directories: Iterable[LogDirectory]) -> None:
        self._lock = threading.Lock()
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._futures: dict[TopicPartition, PartitionLog] = {}
        """Copies that are to take the places of logs in other directories."""
        self.moving: Mapping[TopicPartition, PartitionLog] = self._futures
        """The same, to be read."""
        self._logs_in: dict[LogDirectory, dict[TopicPartition, PartitionLog]] = {
            directory: {} for directory in directories
        }
        self._offline: set[TopicPartition] = set()
        self._lost: list[PartitionLog] = []
        self._leaving: dict[PartitionLog, None] = {}
        """Deleted, but still open: their folders go after a delay."""

    def get(self, key: TopicPartition) -> PartitionLog | None:
        return self._logs.get(key)

    def all(self) -> list[PartitionLog]:
        """Every log that is online."""
        return list(self._logs.values())

    def all_with_futures(self, directory: LogDirectory | None = None) -> list[PartitionLog]:
        """Those and the copies that are to take their places; with `directory`, of those as `logs_in`."""
        if directory is not None:
            return self.logs_in(directory)
        return [*self._logs.values(), *self._futures.values()]

    def future(self, key: TopicPartition) -> PartitionLog | None:
        """The copy that is to take the log's place."""
        return self._futures.get(key)

    @property
    def futures(self) -> list[PartitionLog]:
        return list(self._futures.values())

    def logs_in(self, directory: LogDirectory) -> list[PartitionLog]:
        """Also the copies there of logs that lie elsewhere."""
        return list(self._logs_in[directory].values())

    def count_in(self, directory: LogDirectory) -> int:
        return len(self._logs_in[directory])

    def directory_of(self, log: PartitionLog) -> LogDirectory:
        """Where the log lies, or lay until its directory failed."""
        parent = log.directory.parent
        return next(directory for directory in self._logs_in if directory.path == parent)

    def is_offline(self, key: TopicPartition) -> bool:
        """Whether the partition's log was here until its directory failed."""
        return key in self._offline

    def add(self, directory: LogDirectory, logs: Mapping[TopicPartition, PartitionLog]) -> None:
        """Take in the logs; if their directory failed meanwhile, they are lost at once."""
        with self._lock:
            if directory.online:
                self._logs.update(logs)
                self._offline.difference_update(logs)
                self._logs_in[directory].update(logs)
            else:
                self._offline.update(logs)
                self._lost += logs.values()

    def add_loaded(self, directory: LogDirectory, logs: Iterable[PartitionLog]) -> None:
        """Take in what was found there, logs and copies."""
        found: dict[TopicPartition, PartitionLog] = {}
        for log in logs:
            key = (log.topic, log.partition)
            if is_future_folder(log.folder):
                self.add_future(directory, key, log)
            else:
                found[key] = log
        self.add(directory, found)

    def add_future(self, directory: LogDirectory, key: TopicPartition, log: PartitionLog) -> None:
        """Take in a copy; if its directory failed meanwhile, it is lost at once."""
        with self._lock:
            if directory.online:
                self._futures[key] = self._logs_in[directory][key] = log
            else:
                self._lost.append(log)

    def remove(self, directory: LogDirectory, key: TopicPartition) -> None:
        """The log is deleted; `let_go` says when its files are. Harmless if it isn't there."""
        with self._lock:
            log = self._logs.pop(key, None)
            self._leave(directory, key, log)

    def remove_future(self, directory: LogDirectory, key: TopicPartition) -> None:
        """As `remove`, of a copy."""
        with self._lock:
            self._leave(directory, key, self._futures.pop(key, None))

    def moved(self, source: LogDirectory, target: LogDirectory, key: TopicPartition, log: PartitionLog) -> None:
        """The log has the copy's files, and what was the copy holds those that are deleted now.

        If the source failed while they were exchanged, the log was lost with it then, and is not any more.
        """
        with self._lock:
            self._logs_in[source].pop(key, None)
            self._logs[key] = self._logs_in[target][key] = log
            self._offline.discard(key)
            if log in self._lost:
                self._lost.remove(log)
            if (former := self._futures.pop(key, None)) is not None:
                self._leaving[former] = None

    def let_go(self, log: PartitionLog) -> None:
        """A deleted log's files are gone, and it is closed."""
        with self._lock:
            self._leaving.pop(log, None)

    def mark_offline(self, keys: Iterable[TopicPartition]) -> None:
        """The partitions' logs are in a directory that could not be loaded."""
        with self._lock:
            self._offline.update(keys)

    def lose(self, directory: LogDirectory) -> list[TopicPartition]:
        """The directory failed: its logs are offline now. Which they are."""
        with self._lock:
            lost = self._logs_in[directory]
            self._logs_in[directory] = {}
            self._lost += lost.values()
            for key, log in list(lost.items()):
                if self._futures.get(key) is log:
                    del self._futures[key], lost[key]
                    if (current := self._logs.get(key)) is not None:
                        current.is_moving = False
                else:
                    del self._logs[key]
            self._offline.update(lost)
        return list(lost)

    def clear(self) -> list[PartitionLog]:
        """Forget the logs. Those that were lost or deleted before, whose descriptors nobody has closed."""
        with self._lock:
            lost, self._lost = [*self._lost, *self._leaving], []
            self._leaving.clear()
            self._logs.clear()
            self._futures.clear()
            for directory in self._logs_in:
                self._logs_in[directory] = {}
        return lost

    def _leave(self, directory: LogDirectory, key: TopicPartition, log: PartitionLog | None) -> None:
        """`_lock` held."""
        if log is not None and self._logs_in[directory].get(key) is log:
            del self._logs_in[directory][key]
        if log is not None:
            self._leaving[log] = None
