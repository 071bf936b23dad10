"""Producer state on disk (`<offset>.snapshot`): valid for a log that ends at the offset in the name.

    0..1   version  i16, big endian = 1
    2..5   crc      u32; CRC-32C of all that follows
    6..9   count    i32, then for each producer:
           producer id               i64
           epoch                     i16
           last sequence             i32; -1: no batch is remembered
           last offset               i64; -1: as above
           offset delta              i32; last minus first offset of the last batch
           timestamp                 i64
           coordinator epoch         i32
           current txn first offset  i64; -1: no open transaction

Only a producer's last batch is kept, as in Kafka; `replaying.recall_batches` finds those before it. Taken at a roll and
at a clean close; kept for each segment's base offset and for the latest offset. After a crash the newest good one is
read and the batches behind it are replayed.
"""

import struct
from collections.abc import Iterable
from typing import Final

from kavka.protocol.records.crc import crc32c
from kavka.storage.files import Files
from kavka.storage.producer_state import MAX_SEQUENCE, BatchPlaced, ProducerEntry

SUFFIX: Final = ".snapshot"
VERSION: Final = 1
MAX_FILE_BYTES: Final = 1 << 30

_HEAD: Final = struct.Struct(">hIi")
_ENTRY: Final = struct.Struct(">qhiqiqiq")
_CRC_END: Final = 6


class CorruptSnapshotError(Exception):
    """The file is torn or isn't a snapshot; an older one, or the log itself, says it better."""


def snapshot_name(offset: int) -> str:
    return f"{offset:020d}{SUFFIX}"


def encode(producers: Iterable[ProducerEntry]) -> bytes:
    entries = [_pack(entry) for entry in producers]
    body = len(entries).to_bytes(4, "big") + b"".join(entries)
    return VERSION.to_bytes(2, "big") + crc32c(body).to_bytes(4, "big") + body


def decode(data: bytes) -> list[ProducerEntry]:
    """Raises CorruptSnapshotError."""
    if len(data) < _HEAD.size:
        raise CorruptSnapshotError(f"{len(data)} bytes are too few")
    version, crc, count = _HEAD.unpack_from(data)
    if version != VERSION:
        raise CorruptSnapshotError(f"version {version}, known is {VERSION}")
    if crc != crc32c(memoryview(data)[_CRC_END:]):
        raise CorruptSnapshotError("the checksum doesn't fit")
    if len(data) != _HEAD.size + count * _ENTRY.size:
        raise CorruptSnapshotError(f"{count} producers don't take {len(data)} bytes")
    return [_unpack(fields) for fields in _ENTRY.iter_unpack(data[_HEAD.size :])]


class SnapshotFiles:
    """The snapshot files of one log. Changed under the log's lock.

    `unsynced`: the offsets of those that a power cut may take. The recovery point can't tell: one is taken just there.
    """

    __slots__ = ("_files", "_offsets", "directory", "unsynced")

    def __init__(self, directory: str, files: Files, names: Iterable[str]) -> None:
        self.directory = directory
        self.unsynced: set[int] = set()
        self._files = files
        self._offsets = sorted(offset for name in names if (offset := offset_of(name)) is not None)

    @property
    def offsets(self) -> list[int]:
        """Ascending."""
        return self._offsets

    def path(self, offset: int) -> str:
        return f"{self.directory}/{snapshot_name(offset)}"

    def take(self, producers: Iterable[ProducerEntry], offset: int) -> bool:
        """Write a snapshot for `offset`, without fsync (`flush` does it), unless there is one at or above it already.

        Whether one was written. Raises OSError.
        """
        if offset <= (self._offsets[-1] if self._offsets else 0):
            return False
        self._files.write_file(self.path(offset), encode(producers))
        self._offsets.append(offset)
        self.unsynced.add(offset)
        return True

    def doubt_from(self, offset: int) -> None:
        """Those at `offset` or above may never have been fsynced: the last stop wasn't clean."""
        self.unsynced.update(known for known in self._offsets if known >= offset)

    def load_latest(self, lowest: int, highest: int) -> tuple[list[ProducerEntry], int] | None:
        """The newest good snapshot for an offset above `lowest` up to `highest`; bad ones are removed on the way."""
        for offset in sorted(self._offsets, reverse=True):
            if lowest < offset <= highest:
                try:
                    return decode(self._files.read_bytes(self.path(offset), MAX_FILE_BYTES)), offset
                except (CorruptSnapshotError, FileNotFoundError):
                    self.remove(offset)
        return None

    def remove(self, offset: int) -> None:
        """Unlink one; harmless if it is gone. Raises OSError."""
        self._offsets.remove(offset)
        self.unsynced.discard(offset)
        path = self.path(offset)
        if self._files.exists(path):
            self._files.unlink(path)

    def remove_outside(self, lowest: int, highest: int) -> None:
        """Remove those at or below `lowest` and those above `highest`."""
        for offset in [offset for offset in self._offsets if offset > highest or offset <= lowest]:
            self.remove(offset)

    def remove_strays(self, segment_base_offsets: Iterable[int]) -> None:
        """Keep those at segments' base offsets, and the latest: older clean closes leave others behind."""
        kept = set(segment_base_offsets)
        for offset in [offset for offset in self._offsets[:-1] if offset not in kept]:
            self.remove(offset)

    def moved_to(self, directory: str) -> None:
        self.directory = directory


def offset_of(name: str) -> int | None:
    """The offset in a snapshot's file name; None for other files."""
    digits, dot, suffix = name.partition(".")
    if dot + suffix != SUFFIX or len(digits) != 20 or not digits.isdecimal():
        return None
    return int(digits)


def _pack(entry: ProducerEntry) -> bytes:
    last = entry.batches[-1] if entry.batches else None
    return _ENTRY.pack(
        entry.producer_id,
        entry.epoch,
        -1 if last is None else last.last_sequence,
        -1 if last is None else last.last_offset,
        0 if last is None else last.last_offset - last.first_offset,
        entry.last_timestamp_ms,
        entry.coordinator_epoch,
        entry.txn_first_offset,
    )


def _unpack(fields: tuple[int, ...]) -> ProducerEntry:
    producer_id, epoch, last_sequence, last_offset, delta, timestamp_ms, coordinator_epoch, txn_first_offset = fields
    entry = ProducerEntry(producer_id, epoch)
    if last_offset >= 0:
        first_sequence = (last_sequence - delta) & MAX_SEQUENCE if last_sequence >= 0 else -1
        entry.batches.append(BatchPlaced(first_sequence, last_sequence, last_offset - delta, last_offset, timestamp_ms))
    entry.last_timestamp_ms = timestamp_ms
    entry.coordinator_epoch = coordinator_epoch
    entry.txn_first_offset = txn_first_offset
    return entry
