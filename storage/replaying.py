"""The batches of a log from an offset on, across segments: what producer state and epochs are rebuilt from."""

import contextlib
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final

from kavka.protocol.records.errors import CorruptRecordsError
from kavka.storage.batch_scan import ScannedBatch, scan_batches
from kavka.storage.files import Files
from kavka.storage.offset_index import CorruptIndexError
from kavka.storage.producer_state import MAX_SEQUENCE, REMEMBERED_BATCHES, BatchPlaced, ProducerStates
from kavka.storage.segment import Segment

LOOKED_BACK_BYTES: Final = 4 << 20
"""What one producer's batches of the longest size that is usual take, without the last one."""


def batches_from(files: Files, segments: Sequence[Segment], offset: int) -> Iterator[tuple[Segment, ScannedBatch]]:
    """Each batch that ends at or behind `offset`, with its segment; a broken one ends its segment. Raises OSError."""
    for number, segment in enumerate(segments):
        if number + 1 < len(segments) and segments[number + 1].base_offset <= offset:
            continue
        for batch in batches_in(files, segment, offset):
            yield segment, batch


def batches_in(files: Files, segment: Segment, offset: int) -> Iterator[ScannedBatch]:
    """The batches of one segment that end at or behind `offset`. Raises OSError."""
    position = segment.offset_index.lookup(offset) if offset > segment.base_offset else 0
    for batch in _batches_at(files, segment, position):
        if batch.header.next_offset > offset:
            yield batch


def recall_batches(files: Files, segments: Sequence[Segment], producers: ProducerStates) -> None:
    """Have the producers that a snapshot has just told of know their last five batches: it names each one's last only.

    A client with five requests under way may have all of them in the log, unanswered, when brokers die, and sends them
    all again. Were the first refused for its sequence, since it isn't known, Java's producer would send all five in
    another epoch, and so double them; librdkafka's would fail for good. Only the log's last megabytes before the
    snapshot are looked at. Raises OSError.
    """
    entries = {each.producer_id: each for each in producers.entries() if 0 < len(each.batches) < REMEMBERED_BATCHES}
    if not entries:
        return
    found: dict[int, deque[BatchPlaced]] = {}
    for batch in _last_batches_before(files, segments, producers.map_end_offset):
        header = batch.header
        entry = entries.get(header.producer_id)
        if entry is None or header.is_control or header.base_sequence < 0 or header.producer_epoch != entry.epoch:
            continue
        if header.last_offset < entry.batches[0].first_offset:
            last_sequence = (header.base_sequence + header.last_offset - header.base_offset) & MAX_SEQUENCE
            known = found.setdefault(header.producer_id, deque(maxlen=REMEMBERED_BATCHES - len(entry.batches)))
            known.append(
                BatchPlaced(
                    header.base_sequence, last_sequence, header.base_offset, header.last_offset, header.max_timestamp_ms
                )
            )
    for producer_id, known in found.items():
        entries[producer_id].batches[:0] = known


def _last_batches_before(files: Files, segments: Sequence[Segment], offset: int) -> Iterator[ScannedBatch]:
    left = LOOKED_BACK_BYTES
    starts: list[tuple[Segment, int]] = []
    for segment in reversed([each for each in segments if each.base_offset < offset]):
        position = 0 if segment.size_bytes <= left else _batch_position(segment, segment.size_bytes - left)
        starts.append((segment, position))
        left -= segment.size_bytes
        if left <= 0:
            break
    for segment, position in reversed(starts):
        for batch in _batches_at(files, segment, position):
            if batch.header.base_offset >= offset:
                return
            yield batch


def _batch_position(segment: Segment, position: int) -> int:
    """Where the first batch that the index tells of begins at or behind a position; 0 if the index is lost."""
    index = segment.offset_index
    try:
        offset = index.offset_at_or_after(position)
        return index.last_entry()[1] if offset is None else index.lookup(offset)
    except (CorruptIndexError, FileNotFoundError):
        return 0


def _batches_at(files: Files, segment: Segment, position: int) -> Iterator[ScannedBatch]:
    """A broken one ends them."""
    fd = segment.file.acquire()
    try:
        with contextlib.suppress(CorruptRecordsError):
            yield from scan_batches(files, fd, position, segment.size_bytes)
    finally:
        segment.file.release()
