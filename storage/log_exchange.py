"""The last step of a move between log directories: the copy's files become the log's, under all locks of both.

    1  what was appended since is copied, and is as durable as it was in the log
    2  `topic-3.X-future` gets the name `topic-3`; fsync of its directory       crash: two folders, one is marked
    3  `topic-3` in the log's directory gets the name `topic-3.X-delete`; fsync
    4  the two change their files: the log's object is the same as before, so that nobody who has it needs to be told

Nobody appends meanwhile, so that at each step both folders hold the same records. Appends wait for a tail of at most
`MAX_TAIL_BYTES` and a few fsyncs. Producers, epochs, watermarks and roles are the log's own, and stay.
"""

import errno
from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kavka.protocol.errors import BrokerError, DecodeError, ErrorCode
from kavka.storage import unproven_mark
from kavka.storage.flushing import flush_held
from kavka.storage.follower_append import append_copied
from kavka.storage.leader_epochs import LeaderEpochs
from kavka.storage.offset_index import CorruptIndexError
from kavka.storage.partition_folders import NameTakenError, deleted_folder_name, folder_name
from kavka.storage.partition_log import PartitionLog
from kavka.storage.trimming import advance_start

MAX_TAIL_BYTES: Final = 1 << 20
"""What is copied while appends wait; with more than that to copy, they don't."""

_TAKEN: Final = frozenset({errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.EISDIR})
"""What a disk that works says where something else has the log's name."""

_FILES: Final = (
    "changes",
    "directory",
    "durable_changes",
    "environment",
    "files",
    "folder",
    "folder_saved",
    "last_flush_ms",
    "newest_known",
    "owes_recovery_point",
    "published",
    "recovery_point",
    "replaced",
    "saved_epochs",
    "sealed",
    "snapshots",
    "swapped",
    "swapping",
    "topic_id_saved",
)
"""What a log knows of its files, and of nothing else."""


def share_epochs(current: PartitionLog, future: PartitionLog, truncations: int) -> bool:
    """Give the copy the log's epochs: of those without a record of their own, no batch tells. No lock held.

    False where the log was truncated since the copy was compared with it.
    """
    with current.lock, future.lock:
        if current.truncations != truncations:
            return False
        if future.log_end_offset == current.log_end_offset and future.epochs.entries != current.epochs.entries:
            future.epochs = LeaderEpochs(current.epochs.entries)
        future.clean_offset = current.clean_offset
        return True


def exchange(
    current: PartitionLog,
    future: PartitionLog,
    truncations: int,
    *,
    check: Callable[[], None],
    keep_current: Callable[[], None],
    on_moved: Callable[[], None],
) -> OSError | None:
    """Put the copy in the log's place; the copy holds the log's former files then, in a folder that is to be deleted.

    `check()` raises BrokerError where it is not to be moved any more. `keep_current()` durably says that the log stays
    where it is, `on_moved()` is told that it does not; all of it under the locks. Gives what the former directory's
    disk said against making it durable, if it did. No lock held.

    Raises MoreToCopyError, NameTakenError, or another BrokerError (FENCED_LEADER_EPOCH: the log was truncated since the
    copy was compared with it); the log is as it was then.
    """
    with current.flush_lock, future.flush_lock, current.lock, future.lock:
        current.check_open()
        future.check_open()
        check()
        if current.deleting or future.deleting or current.truncations != truncations:
            raise BrokerError(ErrorCode.FENCED_LEADER_EPOCH, f"{current!r} was truncated, or goes")
        _copy_tail(current, future)
        _make_as_durable(current, future)
        failure = _rename(current, future, keep_current)
        if future.log_start_offset > current.log_start_offset:
            advance_start(current, future.log_start_offset)
        for name in _FILES:
            former = getattr(current, name)
            setattr(current, name, getattr(future, name))
            setattr(future, name, former)
        current.is_moving, future.deleting = False, True
        on_moved()
        return failure


class MoreToCopyError(BrokerError):
    """More was appended than may be copied while appends wait."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.REQUEST_TIMED_OUT, "more is to be copied first")


def _copy_tail(current: PartitionLog, future: PartitionLog) -> None:
    end_offset, position, segments, bases = current.published
    next_offset = future.log_end_offset
    if next_offset == end_offset:
        return
    left_bytes = MAX_TAIL_BYTES
    try:
        for segment in segments[max(bisect_right(bases, next_offset) - 1, 0) :]:
            limit = position if segment is segments[-1] else segment.size_bytes
            place = segment.find(future.log_end_offset, limit)
            if place is not None:
                left_bytes -= limit - place.position
                if left_bytes < 0:
                    raise MoreToCopyError
                append_copied(future, segment.file.read(limit - place.position, place.position), None)
    except OSError as error:
        raise current.disk_failed("read failed", error) from error
    except (DecodeError, CorruptIndexError) as error:
        raise BrokerError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    if future.log_end_offset != end_offset:
        raise MoreToCopyError


def _make_as_durable(current: PartitionLog, future: PartitionLog) -> None:
    try:
        if future.epochs.entries != current.epochs.entries:
            future.epochs = LeaderEpochs(current.epochs.entries)
        if future.saved_epochs != future.epochs.entries:
            future.save_epochs()
            future.files.fsync_directory(future.folder)
        if future.is_unproven is not current.is_unproven:
            # Before the copy is the log by its name: that it may lack records must not be forgotten with the folder.
            (unproven_mark.put if current.is_unproven else unproven_mark.remove)(future.folder, future.files)
            future.is_unproven = current.is_unproven
    except OSError as error:
        raise future.disk_failed("its small files can't be saved", error) from error
    if future.recovery_point < current.recovery_point:
        flush_held(future)


def _rename(current: PartitionLog, future: PartitionLog, keep_current: Callable[[], None]) -> OSError | None:
    files, place, former = current.files, future.directory, current.directory
    target = place.parent / folder_name(current.topic, current.partition)
    aside = former.parent / deleted_folder_name(current.topic, current.partition)
    try:
        _move(future, target)
    except OSError as error:
        if error.errno in _TAKEN:
            raise NameTakenError(target) from error
        raise future.disk_failed("the copy's folder can't be renamed", error) from error
    try:
        files.fsync_directory(target.parent)
    except OSError as error:
        _take_back(current, future, place, keep_current)
        raise future.disk_failed("the copy's name can't be made durable", error) from error
    try:
        _move(current, aside)
    except OSError as error:
        _take_back(current, future, place, keep_current)
        raise current.disk_failed("the log's folder can't be renamed", error) from error
    try:
        files.fsync_directory(aside.parent)
    except OSError as error:
        return error
    return None


def _take_back(current: PartitionLog, future: PartitionLog, place: Path, keep_current: Callable[[], None]) -> None:
    """The log stays where it is; whatever the copy's disk remembers, the next start must know that."""
    try:
        keep_current()
        _move(future, place)
    except OSError as error:
        raise current.give_up("a move can't be taken back", error) from error


def _move(log: PartitionLog, directory: Path) -> None:
    log.files.rename(log.folder, directory)
    log.moved_to(directory)
