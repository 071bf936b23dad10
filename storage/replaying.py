"""The batches of a log from an offset on, across segments: what producer state and epochs are rebuilt from."""

import contextlib
from collections.abc import Iterator, Sequence

from kavka.protocol.records.errors import CorruptRecordsError
from kavka.storage.batch_scan import ScannedBatch, scan_batches
from kavka.storage.files import Files
from kavka.storage.segment import Segment


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
    fd = segment.file.acquire()
    try:
        with contextlib.suppress(CorruptRecordsError):
            for batch in scan_batches(files, fd, position, segment.size_bytes):
                if batch.header.next_offset > offset:
                    yield batch
    finally:
        segment.file.release()
