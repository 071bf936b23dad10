"""A compacted segment that is on its way into the log: taken back, or brought to the end of its way.

`cleaner/swap.py` tells the steps. Before readers see the segment (`LogState.swapping`) a truncation takes it back; from
then on (`LogState.swapped`) the steps that are left must be done, however often the disk refuses them: the next round
looks for the segment's files under their names, and a segment that was replaced must not come back, and holds space. So
the retention pass tries them again, too, whether the log is due for a round or not.
"""

from kavka.storage.log_state import LogState
from kavka.storage.segment import DELETED_SUFFIX, SUFFIXES, Segment
from kavka.storage.segment_files import SWAP_SUFFIX


def abandon_swap(log: LogState) -> None:
    """Unlink the files of a segment that readers don't see yet. Lock held.

    Raises OSError, and then it is still to be done.
    """
    for path in log.swapping:
        if log.files.exists(path):
            log.files.unlink(path)
    if log.swapping:
        # Else a crash might put back what is cut now.
        log.files.fsync_directory(log.folder)
    log.swapping = ()


def settle_swap(log: LogState) -> None:
    """Before anything is cut: what was compacted holds what is cut. Lock held. Raises OSError."""
    abandon_swap(log)
    if log.swapped is not None:
        _drop_replaced(log, log.swapped)
        log.files.fsync_directory(log.folder)
        take_names(log, log.swapped)


def finish_swap(log: LogState) -> None:
    """The steps that are left once readers see the segment; none where there is no such. `flush_lock` held.

    Raises OSError: the next call goes on where this one ended.
    """
    with log.lock:
        new = log.swapped
        if new is None or log.deleting or log.closed:
            return
        _drop_replaced(log, new)
    log.files.fsync_directory(log.folder)
    with log.lock:
        if log.swapped is new:
            take_names(log, new)
    log.files.fsync_directory(log.folder)


def _drop_replaced(log: LogState, new: Segment) -> None:
    """Rename the files of those that `swapped` has replaced, have them unlinked later. Lock held. Raises OSError."""
    while log.replaced:
        segment = log.replaced[0]
        path = segment.file.path
        renamed = [path] if path.endswith(DELETED_SUFFIX) else log.set_aside(segment)
        for index in segment.paths()[1:]:
            # It would be taken for the new segment's.
            if log.files.exists(index):
                log.files.unlink(index)
        del log.replaced[0]
        log.let_go(segment, renamed, snapshot_stays=segment.base_offset == new.base_offset)


def take_names(log: LogState, new: Segment) -> None:
    """Drop the suffix of the files of `swapped`. Lock held. Raises OSError, and then it is still to be done.

    A refusal half way leaves each file known by the name that it has: readers and retention go on.
    """
    # Retention may have been faster.
    if new in log.published[2]:
        paths = [f"{log.folder}/{new.base_offset:020d}{suffix}" for suffix in SUFFIXES]
        indexes = new.indexes
        try:
            # The .log comes last: without it, the loader takes no notice of the others.
            for index, path in reversed(list(zip(indexes, paths[1:], strict=True))):
                if log.files.exists(path + SWAP_SUFFIX):
                    log.files.rename(path + SWAP_SUFFIX, path)
                index.path = path
            if new.file.path != paths[0]:
                new.file.rename(paths[0])
        finally:
            # Another tuple: a reader that just missed a file knows that it should look again.
            end_offset, position, segments, _ = log.published
            log.publish(end_offset, position, list(segments))
    log.swapped = None
