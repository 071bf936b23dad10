"""The files beside a `.log` as text: indexes and snapshots, in the words of Kafka's DumpLogSegments.

What is no such file, or a broken one, is told by what cannot be in an index: entries that do not ascend. Those before
are shown.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kavka.storage import producer_snapshots, transaction_index

_OFFSET_ENTRY: Final = struct.Struct(">ii")
_TIME_ENTRY: Final = struct.Struct(">qi")


def offset_index_lines(path: Path) -> Iterator[str]:
    """`.index`. Raises OSError, ValueError for a wrong name or content."""
    base_offset = base_offset_of(path)
    entries = _entries(_OFFSET_ENTRY, path.read_bytes())
    if not entries:
        yield f"{path} is empty."
    before = (0, 0)
    for number, (relative_offset, position) in enumerate(entries):
        before = _ascended(before, (relative_offset, position), number, "an offset index")
        yield f"offset: {base_offset + relative_offset} position: {position}"


def time_index_lines(path: Path) -> Iterator[str]:
    """`.timeindex`. Raises OSError, ValueError for a wrong name or content."""
    base_offset = base_offset_of(path)
    entries = _entries(_TIME_ENTRY, path.read_bytes())
    if not entries:
        yield f"{path} is empty."
    before = (-1, 0)
    for number, (timestamp_ms, relative_offset) in enumerate(entries):
        before = _ascended(before, (timestamp_ms, relative_offset), number, "a time index")
        yield f"timestamp: {timestamp_ms} offset: {base_offset + relative_offset}"


def transaction_index_lines(path: Path) -> Iterator[str]:
    """`.txnindex`. Raises OSError, ValueError for a wrong content."""
    data = path.read_bytes()
    whole = len(data) - len(data) % transaction_index.ENTRY.size
    for version, producer_id, first, last, last_stable in transaction_index.ENTRY.iter_unpack(data[:whole]):
        if version != 0 or not 0 <= first <= last:
            raise ValueError(f"not a transaction index, or a broken one: version {version}, offsets {first} to {last}")
        yield (
            f"version: {version} producerId: {producer_id} firstOffset: {first} lastOffset: {last}"
            f" lastStableOffset: {last_stable}"
        )
    if whole < len(data):
        raise ValueError(f"{len(data) - whole} bytes behind the last whole entry")


def snapshot_lines(path: Path) -> Iterator[str]:
    """`.snapshot`. Raises OSError, ValueError if it is torn."""
    try:
        entries = producer_snapshots.decode(path.read_bytes())
    except producer_snapshots.CorruptSnapshotError as error:
        raise ValueError(str(error)) from None
    for entry in entries:
        transaction = "OptionalLong.empty" if entry.txn_first_offset < 0 else f"OptionalLong[{entry.txn_first_offset}]"
        line = (
            f"producerId: {entry.producer_id} producerEpoch: {entry.epoch} coordinatorEpoch: {entry.coordinator_epoch}"
            f" currentTxnFirstOffset: {transaction} lastTimestamp: {entry.last_timestamp_ms} "
        )
        for batch in entry.batches:
            line += (
                f"firstSequence: {batch.first_sequence} lastSequence: {batch.last_sequence}"
                f" lastOffset: {batch.last_offset} offsetDelta: {batch.last_offset - batch.first_offset}"
                f" timestamp: {batch.timestamp_ms}"
            )
        yield line


def base_offset_of(path: Path) -> int:
    """The number that a segment's file is named by. Raises ValueError if it isn't."""
    digits = path.name.partition(".")[0]
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 20):
        raise ValueError("a segment's file is named by its base offset")
    return int(digits)


def _entries(layout: struct.Struct, data: bytes) -> list[tuple[int, ...]]:
    """Kafka's active index is as long as it may grow, and zeros behind its last entry: those end it."""
    whole = data[: len(data) - len(data) % layout.size]
    entries = list(layout.iter_unpack(whole))
    zeros = (0, 0)
    while entries and entries[-1] == zeros:
        entries.pop()
    return entries


def _ascended(before: tuple[int, int], entry: tuple[int, int], number: int, kind: str) -> tuple[int, int]:
    """The entry, if it may come after the one before. Raises ValueError."""
    if entry[0] < before[0] or entry[1] < before[1]:
        raise ValueError(f"not {kind}, or a broken one: entry {number} does not follow the one before it")
    return entry


BY_SUFFIX: Final = {
    ".index": offset_index_lines,
    ".timeindex": time_index_lines,
    ".txnindex": transaction_index_lines,
    ".snapshot": snapshot_lines,
}
