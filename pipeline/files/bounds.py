"""Where a partition begins and ends, by its files: for when no broker is there to be asked (ListOffsets knows better).

The end is the high watermark that the broker wrote last, or where the files end, if that is less or it wrote none; and
for committed records the first open transaction, if that comes before. A broker that was killed may have written none
for five seconds: the records behind it are there when it has come back.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kavka.pipeline.files.errors import PartitionFilesError
from kavka.pipeline.files.folders import FILES, find_folder
from kavka.pipeline.files.isolation import READ_COMMITTED, check_isolation
from kavka.pipeline.files.outcomes import OpenTransactions, last_snapshot
from kavka.pipeline.files.segments import Listing, OpenSegment, list_segments
from kavka.storage.offset_checkpoint import (
    HIGH_WATERMARK_FILE,
    LOG_START_OFFSET_FILE,
    CorruptCheckpointError,
    OffsetCheckpoint,
)

_MOST_TRIES: Final = 1000
_ANY: Final = (1 << 63) - 1


def bounds(directories: Sequence[str], topic: str, partition: int, isolation: str) -> range:
    """The offsets that can be read now. Raises PartitionFilesError, CorruptInputError, OSError, ValueError."""
    check_isolation(isolation)
    for _ in range(_MOST_TRIES):
        folder = find_folder(directories, topic, partition)
        listing = list_segments(folder)
        if not listing.segments:
            raise PartitionFilesError(f"{folder} holds no segment")
        try:
            end, opened = _end(folder, listing)
        except FileNotFoundError:
            # A segment was replaced or deleted meanwhile.
            continue
        start = max(listing.segments[0].base_offset, _noted(folder, LOG_START_OFFSET_FILE, topic, partition) or 0)
        watermark = _noted(folder, HIGH_WATERMARK_FILE, topic, partition)
        end = end if watermark is None else min(end, watermark)
        if isolation == READ_COMMITTED:
            end = min([end, *opened])
        return range(start, max(start, end))
    raise PartitionFilesError(f"{directories} change faster than they can be read")


def _end(folder: Path, listing: Listing) -> tuple[int, list[int]]:
    """(behind the last batch, where open transactions begin)"""
    opened, offset = last_snapshot(folder, listing, _ANY)
    transactions = OpenTransactions(opened, offset)
    for name in listing.segments[max(0, listing.holding(offset)) :]:
        segment = OpenSegment(name)
        try:
            transactions.follow(segment)
        finally:
            segment.close()
    return max(listing.segments[-1].base_offset, transactions.next_offset), list(transactions.opened.values())


def _noted(folder: Path, file: str, topic: str, partition: int) -> int | None:
    """What the broker last wrote of the partition in one of its checkpoints; None where there is nothing to read."""
    try:
        return OffsetCheckpoint(folder.parent / file, FILES).read().get((topic, partition))
    except CorruptCheckpointError:
        return None
