"""The files beside a `.log` as text: indexes, snapshots, checkpoints, in the words of Kafka's DumpLogSegments."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kavka.storage import producer_snapshots

_OFFSET_ENTRY: Final = struct.Struct(">ii")
_TIME_ENTRY: Final = struct.Struct(">qi")
_TRANSACTION_ENTRY: Final = struct.Struct(">hqqqq")


def offset_index_lines(path: Path) -> Iterator[str]:
    """`.index`. Raises OSError, ValueError for a wrong name."""
    base_offset = base_offset_of(path)
    entries = _entries(_OFFSET_ENTRY, path.read_bytes())
    if not entries:
        yield f"{path} is empty."
    for relative_offset, position in entries:
        yield f"offset: {base_offset + relative_offset} position: {position}"


def time_index_lines(path: Path) -> Iterator[str]:
    """`.timeindex`. Raises OSError, ValueError for a wrong name."""
    base_offset = base_offset_of(path)
    entries = _entries(_TIME_ENTRY, path.read_bytes())
    if not entries:
        yield f"{path} is empty."
    for timestamp_ms, relative_offset in entries:
        yield f"timestamp: {timestamp_ms} offset: {base_offset + relative_offset}"


def transaction_index_lines(path: Path) -> Iterator[str]:
    """`.txnindex`. Raises OSError."""
    data = path.read_bytes()
    whole = len(data) - len(data) % _TRANSACTION_ENTRY.size
    for version, producer_id, first, last, last_stable in _TRANSACTION_ENTRY.iter_unpack(data[:whole]):
        yield (
            f"version: {version} producerId: {producer_id} firstOffset: {first} lastOffset: {last}"
            f" lastStableOffset: {last_stable}"
        )


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


def plain_lines(path: Path) -> Iterator[str]:
    """Checkpoints and `partition.metadata`, which are text. Raises OSError, UnicodeDecodeError."""
    yield from path.read_text("ascii").splitlines()


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


BY_SUFFIX: Final = {
    ".index": offset_index_lines,
    ".timeindex": time_index_lines,
    ".txnindex": transaction_index_lines,
    ".snapshot": snapshot_lines,
}
