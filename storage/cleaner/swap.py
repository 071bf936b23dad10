"""Putting a compacted segment in the place of those that it was made of, so that a crash at any point loses nothing.

    1  .cleaned -> .swap     lock held, if the log still has the segments    crash: all as before, or the swap is done
    2  fsync of the folder   no lock; the swap is certain now
    3  old -> .deleted       lock held; readers have the new segment         crash: .swap replaces what is left
    4  fsync of the folder   no lock; nothing of the old ones can come back
    5  .swap -> its name     lock held                                       crash: renamed at the next start
    6  fsync of the folder   no lock

A truncation between 1 and 3 takes the swap back, one from 3 on completes it first (`storage/swapping.py`). What the
disk refuses from 3 on is tried again before the log's next round. `flush_lock` is held all the time: a deletion waits.
Kafka renames in one go and trusts the file system to keep the order; its loader, and ours, know every state in between.
"""

import contextlib
import logging
from collections.abc import Sequence
from typing import Final

from kavka.storage.cleaner.jobs import CleanedGroup, cleaned_names
from kavka.storage.files import Files
from kavka.storage.log_file_names import is_log_file
from kavka.storage.log_state import LogState
from kavka.storage.segment import Segment
from kavka.storage.segment_files import CLEANED_SUFFIX, SWAP_SUFFIX
from kavka.storage.swapping import abandon_swap, finish_swap

_log: Final = logging.getLogger(__name__)


def swap_in(log: LogState, folder: str, group: CleanedGroup, token: str, truncations: int) -> bool:
    """Replace the group's segments; False where the log hasn't them any more: what was cleaned is of no use.

    `folder`, `truncations`: the log's when the round began. No lock held. Raises OSError, CorruptIndexError: the log is
    as it was before, or as it is after the swap, and then `finish_swap` has something left to do.
    """
    stem = f"{folder}/{group.replaced[0]:020d}"
    swaps = tuple(f"{stem}{suffix}{SWAP_SUFFIX}" for suffix in group.suffixes)
    with log.flush_lock:
        try:
            with log.lock:
                abandon_swap(log)
                replaced = _segments_of(log, folder, group, truncations)
                if replaced:
                    log.changes += 1
                    log.swapping = swaps
                    # The .log comes last: without it, the loader takes no notice of the others.
                    for name, swap in reversed(list(zip(cleaned_names(group, token), swaps, strict=True))):
                        log.files.rename(f"{folder}/{name}", swap)
            if not replaced:
                return False
            new = _opened(log, folder, group)
            log.files.fsync_directory(folder)
            with log.lock:
                if log.swapping != swaps or _segments_of(log, folder, group, truncations) != replaced:
                    new.offset_index.forget()
                    abandon_swap(log)
                    return False
                _publish(log, new, replaced)
        except BaseException as error:
            with log.lock:
                taken_back = log.swapping != swaps
                abandon_swap(log)
            if isinstance(error, FileNotFoundError) and taken_back:
                return False
            raise
        finish_swap(log)
    return True


def remove_cleaned(files: Files, folder: str) -> None:
    """Unlink what rounds left that ended early. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        for name in files.listdir(folder):
            if name.endswith(CLEANED_SUFFIX) and is_log_file(name):
                with contextlib.suppress(FileNotFoundError):
                    files.unlink(f"{folder}/{name}")


def _segments_of(log: LogState, folder: str, group: CleanedGroup, truncations: int) -> Sequence[Segment]:
    """The log's segments that the group replaces; none if it isn't the log that was cleaned. Lock held.

    After a truncation there may be segments with the same base offsets and other records.
    """
    if log.closed or log.deleting or log.is_moving or log.folder != folder or log.truncations != truncations:
        return ()
    sealed = log.published[2][:-1]
    found = tuple(segment for segment in sealed if group.replaced[0] <= segment.base_offset <= group.replaced[-1])
    return found if [segment.base_offset for segment in found] == group.replaced else ()


def _opened(log: LogState, folder: str, group: CleanedGroup) -> Segment:
    """The new segment under its temporary name, with what readers ask for in memory."""
    segment = Segment(folder, group.replaced[0], log.environment.pool, group.size_bytes)
    segment.file.moved_to(segment.file.path + SWAP_SUFFIX)
    for index in segment.indexes:
        index.path += SWAP_SUFFIX
    segment.govern(log.roll_rules, 0)
    segment.created_ms = log.environment.now_ms()
    segment.max_timestamp_ms = group.max_timestamp_ms
    segment.max_timestamp_offset = group.max_timestamp_offset
    segment.offset_index.count()
    segment.transaction_index.count()
    return segment


def _publish(log: LogState, new: Segment, replaced: Sequence[Segment]) -> None:
    """Give readers the new segment. Lock held."""
    end_offset, position, segments, _ = log.published
    gone = set(replaced)
    kept = [segment for segment in segments if segment not in gone]
    place = next(number for number, segment in enumerate(kept) if segment.base_offset > new.base_offset)
    log.publish(end_offset, position, [*kept[:place], new, *kept[place:]])
    log.swapping, log.swapped, log.replaced = (), new, list(replaced)
