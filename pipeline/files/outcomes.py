"""How a partition's transactions ended, by what lies in its folder.

Of sealed segments `.txnindex` tells of all that were aborted in them. That of the active one may lack entries that its
broker has not written yet; there the markers themselves are looked for, batch header by batch header, from the last
snapshot of producers on: it tells who had a transaction open then. That is done only when somebody asks.
A transaction that is open after that, and began before the range's end, has its marker in what these files do not have
yet: nobody can say how it ended.

What is looked at is opened before the records are: so a cleaner that drops aborted records, and their entries after
them, leaves no record that nothing tells of.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import numpy as np

from kavka.pipeline.arrow.batch_kernels import find_steps
from kavka.pipeline.arrow.decoding import CorruptInputError
from kavka.pipeline.arrow.views import bytes_of
from kavka.pipeline.arrow.walking import (
    ABORTED,
    FULL,
    OFFSET,
    PRODUCER,
    REASONS,
    STEP,
    STEP_COLUMNS,
    WRITTEN,
)
from kavka.pipeline.files.errors import LogEndsError, PartitionFilesError
from kavka.pipeline.files.folders import FILES
from kavka.pipeline.files.pieces import Pieces
from kavka.pipeline.files.segments import Listing, OpenSegment, SegmentName, list_segments
from kavka.protocol.records.record_lengths import Integers
from kavka.storage.producer_snapshots import MAX_FILE_BYTES, CorruptSnapshotError, decode, offset_of, snapshot_name
from kavka.storage.segment import LOG_SUFFIX, TRANSACTION_INDEX_SUFFIX
from kavka.storage.segment_files import SWAP_SUFFIX
from kavka.storage.transaction_index import ENTRY, VERSION

_STEPS_AT_ONCE: Final = 1 << 14
_MOST_TRIES: Final = 1000
_MOST_OPEN: Final = 32
"""Segments. As a rule one or two are newer than the last snapshot."""
_NEVER: Final = (1 << 63) - 1

Stretch = tuple[int, int, int]
"""Producer id, first and last offset of an aborted transaction."""


class OpenTransactions:
    """Follows transactions over the batches of a log. One thread."""

    def __init__(self, opened: dict[int, int], offset: int) -> None:
        """`opened`: first offsets of transactions that are open at `offset`, by producer; nothing before it counts."""
        self._offset = offset
        self.opened: Final = opened
        self.aborted: Final[list[Stretch]] = []
        self.next_offset = -1
        """Behind the last batch; -1 before there was one."""
        self._steps = np.empty((_STEPS_AT_ONCE, STEP_COLUMNS), np.int64)

    def follow(self, segment: OpenSegment) -> None:
        """The batches of a segment. Raises OSError, CorruptInputError."""
        pieces = Pieces()
        for piece in pieces.of(segment.fd, segment.path, segment.position_before(self._offset)):
            view = bytes_of(piece.data)
            while True:
                count, end, why, following = find_steps(view, pieces.used_bytes, len(view), self._steps)
                self._note(self._steps[:count])
                self.next_offset = max(self.next_offset, following)
                pieces.used_bytes = end
                if why < 0:
                    where = piece.position + end
                    raise CorruptInputError(f"{segment.path} is corrupt at position {where}: {REASONS[-why]}")
                if why != FULL:
                    break

    def _note(self, steps: Integers) -> None:
        columns = (steps[:, column].tolist() for column in (PRODUCER, OFFSET, STEP))
        for producer_id, offset, step in zip(*columns, strict=True):
            if offset < self._offset:
                continue
            if step == WRITTEN:
                self.opened.setdefault(producer_id, offset)
                continue
            first = self.opened.pop(producer_id, None)
            if step == ABORTED and first is not None:
                self.aborted.append((producer_id, first, offset))


class Outcomes:
    """How transactions ended that wrote in a range of offsets. One thread; to be closed."""

    def __init__(self, folder: Path, offsets: range) -> None:
        """`offsets` end at the last stable one at most. Raises OSError, PartitionFilesError, CorruptInputError."""
        self._folder = folder
        self._offsets = offsets
        self._files = ExitStack()
        self._indexed: list[Stretch] = []
        self._opened: dict[int, int] = {}
        self._known_from = 0
        self._tail: list[OpenSegment] = []
        try:
            for _ in range(_MOST_TRIES):
                if self._is_read():
                    return
                self.close()
        except BaseException:
            self.close()
            raise
        raise PartitionFilesError(f"{folder} changes faster than it can be read")

    def close(self) -> None:
        self._files.close()
        self._tail.clear()
        self._indexed.clear()

    def aborted(self) -> Integers:
        """The aborted transactions, as `RangeDecoder` wants them.

        Raises LogEndsError where a transaction of the range has no end in these files; OSError, CorruptInputError.
        """
        transactions = OpenTransactions(dict(self._opened), self._known_from)
        for segment in self._tail:
            transactions.follow(segment)
        first, producer_id = min(((first, each) for each, first in transactions.opened.items()), default=(_NEVER, -1))
        if first < self._offsets.stop:
            end = max(transactions.next_offset, self._known_from)
            raise LogEndsError(
                f"{self._folder} ends with offset {end}, before the transaction did that producer "
                f"{producer_id} began at {first}: whether its records are committed is not known"
            )
        every = sorted({*self._indexed, *transactions.aborted})
        return np.array(every, np.int64).reshape(-1, 3)

    def _is_read(self) -> bool:
        listing = list_segments(self._folder)
        try:
            self._read(listing, self._offsets.start)
        except FileNotFoundError:
            return False
        # Else a cleaner may have swapped an index that was to be read next.
        return list_segments(self._folder) == listing

    def _read(self, listing: Listing, offset: int) -> None:
        segments = listing.segments
        for segment in segments[max(0, listing.holding(offset)) : -1]:
            self._indexed += read_aborted(segment)
        if not segments:
            return
        self._opened, self._known_from = last_snapshot(self._folder, listing, segments[-1].base_offset)
        base = segments[max(0, listing.holding(offset))].base_offset
        if base > self._known_from:
            # What began before and goes on has batches from here on, too, or does not matter.
            self._opened, self._known_from = {}, base
        tail = segments[max(0, listing.holding(self._known_from)) :]
        self._follow_now(tail[:-_MOST_OPEN])
        for segment in tail[-_MOST_OPEN:]:
            opened = OpenSegment(segment)
            self._files.callback(opened.close)
            self._tail.append(opened)

    def _follow_now(self, segments: Sequence[SegmentName]) -> None:
        """One by one, where there are more than can be held open until somebody asks.

        All are sealed: what was aborted in them is known.
        """
        transactions = OpenTransactions(self._opened, self._known_from)
        for name in segments:
            segment = OpenSegment(name)
            try:
                transactions.follow(segment)
            finally:
                segment.close()
            self._known_from = max(self._known_from, transactions.next_offset)


def last_snapshot(folder: Path, listing: Listing, most: int) -> tuple[dict[int, int], int]:
    """(first offsets of open transactions by producer, at which offset): by the last good snapshot up to `most`.

    Where there is none, it is said of the log's first offset that no transaction is open. Raises OSError.
    """
    offsets = sorted((offset for name in listing.names if (offset := offset_of(name)) is not None), reverse=True)
    for offset in offsets:
        if offset <= most:
            try:
                producers = decode(FILES.read_bytes(folder / snapshot_name(offset), MAX_FILE_BYTES))
            except (CorruptSnapshotError, FileNotFoundError):
                continue
            return {each.producer_id: each.txn_first_offset for each in producers if each.txn_first_offset >= 0}, offset
    return {}, listing.segments[0].base_offset if listing.segments else 0


def read_aborted(segment: SegmentName) -> list[Stretch]:
    """The aborted transactions of a sealed segment. Raises OSError, CorruptInputError."""
    is_swap = segment.path.endswith(SWAP_SUFFIX)
    stem = segment.path.removesuffix(SWAP_SUFFIX).removesuffix(LOG_SUFFIX) + TRANSACTION_INDEX_SUFFIX
    for path in [stem + SWAP_SUFFIX, stem] if is_swap else [stem]:
        try:
            data = FILES.read_bytes(path)
        except FileNotFoundError:
            continue
        whole = len(data) // ENTRY.size * ENTRY.size
        if whole < len(data):
            raise CorruptInputError(f"{path} is corrupt at position {whole}: it ends in an entry")
        found = []
        for number, (version, producer_id, first, last, _) in enumerate(ENTRY.iter_unpack(data)):
            if version != VERSION:
                raise CorruptInputError(f"{path} is corrupt at position {number * ENTRY.size}: version {version}")
            found.append((producer_id, first, last))
        return found
    return []
