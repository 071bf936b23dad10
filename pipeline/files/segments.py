"""A partition's segments as their folder has them, while a broker may roll, replace and delete them.

A cleaner puts a segment in the place of others by names: those are set aside as `.deleted`, and the new one, which lies
there whole as `.log.swap`, gets its name. In between, only that name has the records. A list of names is no snapshot:
it is taken until two in a row are equal.
"""

import os
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from kavka.pipeline.files.errors import PartitionFilesError, PartitionMissingError
from kavka.pipeline.files.folders import FILES
from kavka.pipeline.files.pieces import begins_batch
from kavka.storage.offset_index import ENTRY_BYTES
from kavka.storage.segment import INDEX_SUFFIX, LOG_SUFFIX
from kavka.storage.segment_files import SWAP_SUFFIX, base_offsets

_MOST_TRIES: Final = 1000
"""A folder that changes as often while it is listed is no log's."""
_NEVER: Final = (1 << 63) - 1


class SegmentName(NamedTuple):
    """A segment in a list."""

    base_offset: int
    path: str


class Listing(NamedTuple):
    """The segments, ascending, and all names in the folder."""

    segments: Sequence[SegmentName]
    names: frozenset[str]

    def holding(self, offset: int) -> int:
        """The number of the segment that holds the offset, if one does; -1 where all begin behind it."""
        return bisect_right(self.segments, offset, key=lambda segment: segment.base_offset) - 1


def list_segments(folder: Path) -> Listing:
    """The segments that are there. Raises OSError, PartitionFilesError."""
    before: frozenset[str] | None = None
    for _ in range(_MOST_TRIES):
        try:
            names = frozenset(FILES.listdir(folder))
        except FileNotFoundError:
            raise PartitionMissingError(f"{folder} is gone: the topic was deleted, or its log moved") from None
        if names == before:
            return Listing(_segments(folder, names), names)
        before = names
    raise PartitionFilesError(f"{folder} changes faster than it can be listed")


def _segments(folder: Path, names: frozenset[str]) -> list[SegmentName]:
    whole = base_offsets(names)
    swapped = base_offsets(name.removesuffix(SWAP_SUFFIX) for name in names if name.endswith(LOG_SUFFIX + SWAP_SUFFIX))
    found = {base: f"{folder}/{base:020d}{LOG_SUFFIX}{SWAP_SUFFIX}" for base in swapped}
    found |= {base: f"{folder}/{base:020d}{LOG_SUFFIX}" for base in whole}
    return [SegmentName(base, found[base]) for base in sorted(found)]


class OpenSegment:
    """A segment's file, open until `close`. One thread."""

    def __init__(self, name: SegmentName) -> None:
        """Raises OSError."""
        self.base_offset: Final = name.base_offset
        self.path: Final = name.path
        self.fd: Final = FILES.open(name.path, read_only=True)
        found = os.fstat(self.fd)
        self.identity: Final = (found.st_dev, found.st_ino)
        """Of the file: what has the name later may be another one."""

    def close(self) -> None:
        FILES.close(self.fd)

    def size(self) -> int:
        """In bytes, now. Raises OSError."""
        return FILES.descriptor_size(self.fd)

    def position_before(self, offset: int) -> int:
        """Where a batch begins at or before the offset, near to it where there is an index to tell. Raises OSError.

        The index may be that of another segment that had the name: so its word is not enough.
        """
        position = self._likely_position(offset)
        return position if position and begins_batch(self.fd, position, self.base_offset, offset) else 0

    def _likely_position(self, offset: int) -> int:
        try:
            fd = FILES.open(self.path.removesuffix(LOG_SUFFIX) + INDEX_SUFFIX, read_only=True)
        except FileNotFoundError:
            return 0
        try:
            count = FILES.descriptor_size(fd) // ENTRY_BYTES

            def last_offset(number: int) -> int:
                relative, position = _entry(fd, number)
                # Zeros: room that Kafka has kept for more.
                return self.base_offset + relative if position else _NEVER

            number = bisect_right(range(count), offset, key=last_offset)
            return _entry(fd, number - 1)[1] if number else 0
        finally:
            FILES.close(fd)


def _entry(fd: int, number: int) -> tuple[int, int]:
    """(relative offset, position)"""
    data = FILES.pread(fd, ENTRY_BYTES, number * ENTRY_BYTES)
    return int.from_bytes(data[:4], "big"), int.from_bytes(data[4:], "big")


def open_segment(folder: Path, offset: int) -> tuple[OpenSegment | None, Listing]:
    """(the segment that holds the offset, or None where all begin behind it; the list it is from).

    The caller closes it. Raises OSError, PartitionFilesError.
    """
    for _ in range(_MOST_TRIES):
        listing = list_segments(folder)
        number = listing.holding(offset)
        if number < 0:
            return None, listing
        try:
            return OpenSegment(listing.segments[number]), listing
        except FileNotFoundError:
            # Replaced or deleted since.
            continue
    raise PartitionFilesError(f"{folder} changes faster than its segments can be opened")
