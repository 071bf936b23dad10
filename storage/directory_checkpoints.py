"""The four checkpoints of a log directory: what is noted of its logs while they run, and read at the next start.

    high watermarks      every `replica.high.watermark.checkpoint.interval.ms`
    recovery points      every `log.flush.offset.checkpoint.interval.ms`
    log start offsets    with them, and every `log.flush.start.offset.checkpoint.interval.ms`
    clean offsets        after a compaction, and where one has to look again

All but the last also in a clean stop. The files and their text are in `offset_checkpoint.py`; the passes over all
directories are `LogManager.checkpoint_high_watermarks` and those beside it.
"""

import errno
import logging
import threading
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from kavka.storage.files import Files
from kavka.storage.offset_checkpoint import (
    CLEANER_OFFSET_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_OFFSET_FILE,
    RECOVERY_POINT_FILE,
    CorruptCheckpointError,
    OffsetCheckpoint,
    TopicPartition,
)
from kavka.storage.partition_log import PartitionLog

_log: Final = logging.getLogger(__name__)

ListLogs: TypeAlias = Callable[[], Sequence[PartitionLog]]
"""The directory's logs as they are now. Called under the checkpoints' lock: else who looked first might write last."""


class StoredOffsets(NamedTuple):
    """What a directory's checkpoints say."""

    recovery_points: Mapping[TopicPartition, int]
    log_start_offsets: Mapping[TopicPartition, int]
    high_watermarks: Mapping[TopicPartition, int]
    clean_offsets: Mapping[TopicPartition, int]


class DirectoryCheckpoints:
    """The checkpoints of one log directory.

    Threads: `read` and `keep` at start. `_lock` is held by whoever writes, and lists the logs for it. A directory that
    fails loses its logs, but not what its checkpoints know of them: nothing is written then.
    """

    __slots__ = (
        "_clean_offsets",
        "_high_watermarks",
        "_is_online",
        "_kept",
        "_lock",
        "_log_start_offsets",
        "_path",
        "_recovery_points",
    )

    def __init__(self, path: Path, files: Files, is_online: Callable[[], bool]) -> None:
        self._path = path
        self._is_online = is_online
        self._lock = threading.Lock()
        self._recovery_points = OffsetCheckpoint(path / RECOVERY_POINT_FILE, files)
        self._log_start_offsets = OffsetCheckpoint(path / LOG_START_OFFSET_FILE, files)
        self._high_watermarks = OffsetCheckpoint(path / HIGH_WATERMARK_FILE, files)
        self._clean_offsets = OffsetCheckpoint(path / CLEANER_OFFSET_FILE, files)
        self._kept: tuple[dict[TopicPartition, int], ...] = ({}, {}, {})
        """What is said of logs that are left alone: log start offsets, high watermarks, clean offsets."""

    def read(self) -> StoredOffsets:
        """What they say; a corrupt one counts as empty, and recovery does without it. Raises OSError."""
        return StoredOffsets(
            _read_or_empty(self._recovery_points),
            _read_or_empty(self._log_start_offsets),
            _read_or_empty(self._high_watermarks),
            _read_or_empty(self._clean_offsets),
        )

    def keep(self, partitions: Set[TopicPartition], stored: StoredOffsets) -> None:
        """Keep what the checkpoints say of logs that are left alone.

        Their recovery points are not kept: whoever knows them later has them recovered, whichever way this start ends.
        """
        self._kept = tuple(
            {key: offset for key, offset in each.items() if key in partitions}
            for each in (stored.log_start_offsets, stored.high_watermarks, stored.clean_offsets)
        )

    def write_high_watermarks(self, list_logs: ListLogs) -> None:
        """Checkpoint the high watermarks. Raises OSError."""
        self._write(list_logs, self._write_high_watermarks)

    def write_recovery_points(self, list_logs: ListLogs) -> None:
        """Checkpoint what is on the disk for sure, and the first readable offsets. Raises OSError."""
        self._write(list_logs, self._write_recovery_points)

    def write_log_start_offsets(self, list_logs: ListLogs) -> None:
        """Checkpoint the first readable offsets alone. Raises OSError."""
        self._write(list_logs, self._write_log_start_offsets)

    def write_clean_offsets(self, list_logs: ListLogs) -> None:
        """Checkpoint where the dirty parts begin, of the logs that were ever compacted. Raises OSError."""
        self._write(list_logs, self._write_clean_offsets)

    def forget(self, key: TopicPartition, list_logs: ListLogs) -> None:
        """Have no checkpoint tell of a log of the partition that was deleted. Raises OSError: one may still do.

        A new log of this name would be opened with its offsets after a crash: cut off, or not looked at.
        """
        with self._lock:
            for kept in self._kept:
                kept.pop(key, None)
            checkpoints = (self._recovery_points, self._log_start_offsets, self._high_watermarks, self._clean_offsets)
            if any(checkpoint.has(key) for checkpoint in checkpoints):
                logs = list_logs()
                if not self._is_online():
                    raise OSError(errno.EIO, "the directory is offline", str(self._path))
                self._write_recovery_points(logs)
                self._write_high_watermarks(logs)
                self._write_clean_offsets(logs)

    def _write(self, list_logs: ListLogs, write: Callable[[Sequence[PartitionLog]], None]) -> None:
        with self._lock:
            logs = list_logs()
            if self._is_online():
                write(logs)

    def _write_recovery_points(self, logs: Sequence[PartitionLog]) -> None:
        self._recovery_points.write({(log.topic, log.partition): log.stored_recovery_point for log in logs})
        self._write_log_start_offsets(logs)

    def _write_log_start_offsets(self, logs: Sequence[PartitionLog]) -> None:
        self._log_start_offsets.write(
            {(log.topic, log.partition): log.log_start_offset for log in logs if log.log_start_offset > 0}
            | self._kept[0]
        )

    def _write_high_watermarks(self, logs: Sequence[PartitionLog]) -> None:
        self._high_watermarks.write({(log.topic, log.partition): log.high_watermark for log in logs} | self._kept[1])

    def _write_clean_offsets(self, logs: Sequence[PartitionLog]) -> None:
        offsets = {(log.topic, log.partition): clean for log in logs if (clean := log.clean_offset) is not None}
        offsets |= self._kept[2]
        if offsets or self._clean_offsets.exists:
            self._clean_offsets.write(offsets)


def _read_or_empty(checkpoint: OffsetCheckpoint) -> dict[TopicPartition, int]:
    try:
        return checkpoint.read()
    except CorruptCheckpointError as error:
        _log.warning("going on without a corrupt checkpoint: %s", error)
        return {}
