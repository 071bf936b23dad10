"""A clean stop's work on the logs of one directory: everything saved, made durable and closed; and a deletion's first.

fsyncs cost the disk some milliseconds each, and a log has about five files that may have changed. Many logs are saved
first and then made durable by one syncfs of the file system they lie in; few are fsynced one by one, because syncfs
also waits for what others write there. Logs that did not change since they were loaded or flushed cost nothing.
"""

import logging
from collections.abc import Collection, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Protocol

from kavka.storage.files import Files
from kavka.storage.log_loading import run_all
from kavka.storage.partition_log import PartitionLog

CLOSE_PATIENCE_S: Final = 30.0
SYNC_AT_ONCE_FROM: Final = 16

_log: Final = logging.getLogger(__name__)


class Lock(Protocol):
    """One of `threading`."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...

    def release(self) -> None: ...


def close_cleanly(directory: Path, logs: Sequence[PartitionLog], files: Files, threads: int, witness: int = -1) -> None:
    """Save, make durable and close the logs; up to `threads` of them fsync at a time. Nobody appends any more.

    Raises OSError, AppendError where that failed; the logs are closed even so.
    """
    try:
        changed = [log for log in logs if log.save()]
        if len(changed) >= SYNC_AT_ONCE_FROM:
            changed = _sync_at_once(directory, changed, files, witness)
        run_all(PartitionLog.fsync_saved, changed, threads)
    finally:
        close_all(logs)


def close_all(logs: Sequence[PartitionLog]) -> None:
    """Close descriptors and no more; the next start recovers what was not made durable."""
    for log in logs:
        log.close(clean=False)


def hold_all(held: ExitStack, locks: Iterable[Lock]) -> bool:
    """Hold the locks in their order. False, logged: one is held over a disk that answers nothing."""
    for lock in locks:
        if not lock.acquire(timeout=CLOSE_PATIENCE_S):
            _log.error("no clean stop, the next start recovers: a disk has answered nothing for %d s", CLOSE_PATIENCE_S)
            return False
        held.callback(lock.release)
    return True


def quieten(logs: Collection[PartitionLog]) -> None:
    """Have flushes and compactions of logs that are to be deleted end, and wait until they have."""
    for log in logs:
        log.begin_deletion()
    for log in logs:
        log.await_quiet()


def _sync_at_once(directory: Path, logs: Sequence[PartitionLog], files: Files, witness: int) -> list[PartitionLog]:
    """Make the logs durable as far as they lie in the directory's own file system; those that are left."""
    device = files.device(directory)
    inside: list[PartitionLog] = []
    outside: list[PartitionLog] = []
    for log in logs:
        (inside if files.device(log.folder) == device else outside).append(log)
    # An epoch file is replaced by renaming a new one, which must be on the disk before, so that there are two rounds.
    for log in inside:
        log.stage_epochs()
    if not files.sync_file_system(directory, witness):
        return list(logs)
    renamed = [log.install_epochs() for log in inside]
    if any(renamed) and not files.sync_file_system(directory, witness):
        return list(logs)
    for log in inside:
        log.note_durable()
    return outside
