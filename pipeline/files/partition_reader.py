"""The records of a partition from its segment files: a range of offsets, as Arrow record batches.

The range is what ListOffsets said (or `bounds`, where no broker is there to ask); it ends where the log goes beyond it,
whether its last record is still there or was compacted away. Memory is bounded by a piece of a file, or by one batch.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kavka.pipeline.arrow.decoding import CorruptInputError, RangeDecoder
from kavka.pipeline.files.errors import LogEndsError, OffsetsGoneError, TopicChangedError
from kavka.pipeline.files.folders import FILES, find_folder
from kavka.pipeline.files.isolation import READ_UNCOMMITTED, check_isolation
from kavka.pipeline.files.outcomes import Outcomes
from kavka.pipeline.files.pieces import Pieces
from kavka.pipeline.files.segments import Listing, OpenSegment, open_segment
from kavka.storage.partition_metadata import read_topic_id


def read(
    directories: Sequence[str],
    topic: str,
    partition: int,
    start: int,
    end: int,
    isolation: str,
    wanted: Sequence[str],
) -> Iterator[Any]:
    """The records from offset `start` on, before `end`, as pyarrow.RecordBatches with the columns that are `wanted`.

    `directories` are log directories (`log.dirs`), of one broker or several. With `isolation` read_committed, `end` is
    the last stable offset at most: a transaction that began before it and is open in the files ends behind them.
    Raises when it comes to it: PartitionMissingError; OffsetsGoneError where retention was faster; LogEndsError where
    the files end before the range, or before a transaction in it; TopicChangedError; CorruptInputError; OSError;
    ValueError for a name that is none.
    """
    check_isolation(isolation)
    decoder = RangeDecoder(topic, partition, range(start, end), wanted, None)
    if decoder.is_done:
        return

    def find() -> Path:
        return find_folder(directories, topic, partition)

    if isolation == READ_UNCOMMITTED:
        yield from _records(find, decoder, end)
        return
    outcomes = Outcomes(find(), range(start, end))
    try:
        decoder = RangeDecoder(topic, partition, range(start, end), wanted, outcomes.aborted)
        yield from _records(find, decoder, end)
    finally:
        outcomes.close()


def _records(find: Callable[[], Path], decoder: RangeDecoder, end: int) -> Iterator[Any]:
    """Segment after segment. The last one stays open until the next one is: so no other file has its identity."""
    pieces = Pieces()
    topic_id = read_topic_id(find(), FILES)
    segment: OpenSegment | None = None
    offset = decoder.next_offset
    try:
        while not decoder.is_done and offset < end:
            # A log may move between directories.
            folder = find()
            following, listing = open_segment(folder, offset)
            try:
                _check_topic(folder, topic_id)
            except BaseException:
                if following is not None:
                    following.close()
                raise
            if following is None:
                left = listing.segments[0].base_offset if listing.segments else end
                raise OffsetsGoneError(str(folder), offset, left)
            if segment is not None:
                if following.identity == segment.identity:
                    following.close()
                    offset = _behind(segment, listing, pieces, offset, end)
                    continue
                segment.close()
            segment = following
            decoder.go_on()
            for piece in pieces.of(segment.fd, segment.path, segment.position_before(offset)):
                yield from decoder.decode(piece.data, segment.path, piece.position)
                pieces.used_bytes = decoder.used_bytes
                if decoder.is_done:
                    return
            offset = max(offset, decoder.next_offset)
    finally:
        if segment is not None:
            segment.close()


def _check_topic(folder: Path, topic_id: bytes) -> None:
    """After a segment was opened there: so it is the topic's. Raises TopicChangedError, OSError."""
    if read_topic_id(folder, FILES) != topic_id:
        raise TopicChangedError(f"{folder} is another topic's now: the one that was read was deleted")


def _behind(segment: OpenSegment, listing: Listing, pieces: Pieces, offset: int, end: int) -> int:
    """Where to go on, behind a segment that was read to its end. Raises LogEndsError, CorruptInputError."""
    number = listing.holding(offset) + 1
    if number < len(listing.segments):
        if pieces.rest_bytes:
            raise CorruptInputError(f"{segment.path} is corrupt at position {pieces.position}: it ends in a batch")
        return listing.segments[number].base_offset
    behind = f", with {pieces.rest_bytes} bytes that are no whole batch" if pieces.rest_bytes else ""
    raise LogEndsError(f"{segment.path} ends with offset {offset} at position {pieces.position}{behind}, before {end}")
