"""A stretch of a segment as columns: its batches' headers, and of their records what compaction asks for.

Batches are found one by one, and within them the records by their lengths; everything else works on all records of a
stretch at once. Compressed batches are unpacked behind the stretch's own bytes, so that one array holds all records.
Nothing here trusts a length: what doesn't fit raises CorruptRecordsError, as the record-wise reader does.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from kavka.protocol.records.compression import Codec, decompress
from kavka.protocol.records.crc import crc32c
from kavka.protocol.records.errors import CorruptRecordsError
from kavka.protocol.records.header import (
    ATTRIBUTES_POSITION,
    BATCH_HEADER,
    BATCH_LENGTH_POSITION,
    CODEC_MASK,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER_SIZE_BYTES,
    LEAST_LENGTH,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD_BYTES,
    MAGIC_POSITION,
    TRANSACTIONAL_BIT,
    BatchHeader,
)
from kavka.storage.cleaner.record_lengths import PADDING_BYTES, Bytes, Flags, Integers, find_records

BATCH_LIMIT_BYTES: Final = 256 << 20
"""What a batch may unpack to; beyond that it is corrupt."""

_HEADER: Final = np.dtype(
    [(name, f">{code}") for name, code in zip(BatchHeader._fields, BATCH_HEADER.format.lstrip(">"), strict=True)]
)
_LENGTH: Final = struct.Struct(">i")


class ParseLimits(NamedTuple):
    """How much is parsed at a time."""

    records: int = 1 << 17
    unpacked_bytes: int = 32 << 20


class Batches:
    """Whole v2 batches, back to back in `data`. The columns are in step with `positions`."""

    __slots__ = (
        "attributes",
        "base_offsets",
        "base_timestamps",
        "counts",
        "crcs",
        "data",
        "last_offsets",
        "max_timestamps",
        "positions",
        "producer_epochs",
        "producer_ids",
        "sizes",
    )

    def __init__(self, data: bytes, positions: Sequence[int]) -> None:
        """Raises CorruptRecordsError for counts and offsets that can't be."""
        self.data = data
        self.positions: Integers = np.array(positions, np.int64)
        rows = np.frombuffer(data, np.uint8)[self.positions[:, None] + np.arange(HEADER_SIZE_BYTES)]
        columns = np.ascontiguousarray(rows).view(_HEADER)[:, 0]

        def column(name: str) -> Integers:
            return columns[name].astype(np.int64)

        self.sizes: Integers = column("batch_length") + LOG_OVERHEAD_BYTES
        self.attributes: Integers = column("attributes")
        self.base_offsets: Integers = column("base_offset")
        deltas = column("last_offset_delta")
        self.last_offsets: Integers = self.base_offsets + deltas
        self.base_timestamps: Integers = column("base_timestamp_ms")
        self.max_timestamps: Integers = column("max_timestamp_ms")
        self.producer_ids: Integers = column("producer_id")
        self.producer_epochs: Integers = column("producer_epoch")
        self.counts: Integers = column("count")
        self.crcs: Integers = column("crc")
        if (self.counts < 0).any() or (deltas < 0).any() or (self.base_offsets < 0).any():
            raise CorruptRecordsError("a batch claims fewer than no records, or negative offsets")

    def __len__(self) -> int:
        return len(self.positions)

    def between(self, first: int, end: int) -> "Batches":
        """Some of the batches, with their own data."""
        if not first and end >= len(self):
            return self
        positions = self.positions[first:end]
        start = int(positions[0])
        data = self.data[start : int(positions[-1] + self.sizes[first:end][-1])]
        return Batches(data, (positions - start).tolist())

    @property
    def is_control(self) -> Flags:
        return self._has(CONTROL_BIT)

    @property
    def is_transactional(self) -> Flags:
        return self._has(TRANSACTIONAL_BIT)

    @property
    def has_delete_horizon(self) -> Flags:
        return self._has(DELETE_HORIZON_BIT)

    @property
    def is_log_append_time(self) -> Flags:
        return self._has(LOG_APPEND_TIME_BIT)

    @property
    def codecs(self) -> Integers:
        return self.attributes & CODEC_MASK

    def _has(self, bit: int) -> Flags:
        has: Flags = (self.attributes & bit) != 0
        return has

    def verify_crcs(self) -> None:
        """Raises CorruptRecordsError at the first batch whose checksum is another."""
        view = memoryview(self.data)
        starts = (self.positions + ATTRIBUTES_POSITION).tolist()
        ends = (self.positions + self.sizes).tolist()
        for number, (start, end, crc) in enumerate(zip(starts, ends, self.crcs.tolist(), strict=True)):
            if crc32c(view[start:end]) != crc:
                raise CorruptRecordsError(f"batch at offset {self.base_offsets[number]} has a wrong CRC")


class Records(NamedTuple):
    """The records of some batches, in order. Positions are into `body`."""

    body: bytes
    batch: Integers
    """Which batch each belongs to."""
    starts: Integers
    ends: Integers
    offsets: Integers
    timestamps: Integers
    key_starts: Integers
    key_sizes: Integers
    """-1: no key."""
    has_value: Flags


def find_batches(data: bytes, end: int) -> tuple[list[int], bool, int]:
    """(positions of the whole batches of one kind at the start of `data`, whether they are v2, where they end).

    The kind is that of the first one: messages of magic 0 and 1 are the other. Raises CorruptRecordsError.
    """
    positions: list[int] = []
    position = 0
    is_v2 = end > MAGIC_POSITION and data[MAGIC_POSITION] == 2
    length_at = _LENGTH.unpack_from
    while position + MAGIC_POSITION < end:
        magic = data[position + MAGIC_POSITION]
        (length,) = length_at(data, position + BATCH_LENGTH_POSITION)
        least = LEAST_LENGTH.get(magic)
        if least is None or length < least:
            raise CorruptRecordsError(f"no batch: magic {magic}, length {length}")
        following = position + LOG_OVERHEAD_BYTES + length
        if following > end or (magic == 2) != is_v2:
            break
        positions.append(position)
        position = following
    return positions, is_v2, position


def parsed(batches: Batches, limits: ParseLimits) -> Iterator[tuple[Batches, Records]]:
    """All batches with their records, a part at a time as the limits ask. CRCs are checked.

    Raises CorruptRecordsError, and what `decompress` raises.
    """
    done = 0
    while done < len(batches):
        records = np.cumsum(batches.counts[done:])
        most = max(1, int(np.searchsorted(records, limits.records, side="right")))
        part = batches.between(done, done + most)
        part.verify_crcs()
        part, body, starts, ends = _unpacked(part, limits)
        yield part, _parse(part, body, starts, ends)
        done += len(part)


def _unpacked(batches: Batches, limits: ParseLimits) -> tuple[Batches, bytes, Integers, Integers]:
    """(the first batches, bytes that hold their records unpacked, padded; where each batch's records start and end)."""
    starts = batches.positions + HEADER_SIZE_BYTES
    ends = batches.positions + batches.sizes
    packed = np.flatnonzero((batches.codecs != Codec.NONE) & (batches.counts > 0))
    if not len(packed):
        return batches, batches.data + bytes(PADDING_BYTES), starts, ends
    view = memoryview(batches.data)
    parts: list[bytes | memoryview] = [view]
    length = len(view)
    for number in packed.tolist():
        if length - len(view) > limits.unpacked_bytes:
            # Another time: what was unpacked has no place for more.
            batches = batches.between(0, number)
            starts, ends = starts[:number], ends[:number]
            break
        stretch = view[int(starts[number]) : int(ends[number])]
        part = decompress(int(batches.codecs[number]), stretch, limit_bytes=BATCH_LIMIT_BYTES)
        starts[number], ends[number] = length, length + len(part)
        length += len(part)
        parts.append(part)
    parts.append(bytes(PADDING_BYTES))
    return batches, b"".join(parts), starts, ends


def _parse(batches: Batches, body: bytes, starts: Integers, ends: Integers) -> Records:
    record_starts = find_records(body, starts, ends, batches.counts)
    batch = np.repeat(np.arange(len(batches)), batches.counts)
    view = np.frombuffer(body, np.uint8)
    length, position = _varints(view, record_starts, 5)
    record_ends = position + _zigzag(length)
    following = np.empty_like(record_starts)
    following[:-1] = record_starts[1:]
    last_of_batch = np.cumsum(batches.counts)[batches.counts > 0] - 1
    following[last_of_batch] = ends[batches.counts > 0]
    _require(record_ends == following, "lengths that don't add up")
    timestamp_delta, position = _varints(view, position + 1, 10)
    offset_delta_code, position = _varints(view, position, 5)
    key_size, key_start = _sizes(view, position)
    value_size, value_start = _sizes(view, key_start + np.maximum(key_size, 0))
    position = value_start + np.maximum(value_size, 0)
    headers = view.take(position, mode="clip")
    _require(position < record_ends, "fields that go beyond it")
    _require((headers != 0) | (position + 1 == record_ends), "bytes behind its fields")
    offset_delta = _zigzag(offset_delta_code)
    offsets = batches.base_offsets[batch] + offset_delta
    _require((offset_delta >= 0) & (offsets <= batches.last_offsets[batch]), "an offset outside its batch")
    stamped = batches.is_log_append_time[batch]
    timestamps = batches.base_timestamps[batch] + _zigzag(timestamp_delta)
    if stamped.any():
        timestamps = np.where(stamped, batches.max_timestamps[batch], timestamps)
    return Records(body, batch, record_starts, record_ends, offsets, timestamps, key_start, key_size, value_size >= 0)


def _varints(view: Bytes, positions: Integers, most_bytes: int) -> tuple[npt.NDArray[np.uint64], Integers]:
    """(the unsigned values of the varints at `positions`, where they end)"""
    byte = view.take(positions, mode="clip")
    value = (byte & 0x7F).astype(np.uint64)
    position = positions + 1
    more = np.flatnonzero(byte & 0x80)
    shift = 7
    while len(more):
        if shift >= 7 * most_bytes:
            raise CorruptRecordsError("a varint is too long")
        # Mostly all of a kind, or hardly any.
        some = slice(None) if len(more) == len(value) else more
        byte = view.take(position[some], mode="clip")
        value[some] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
        position[some] += 1
        if most_bytes == 10 and shift == 63 and (byte > 1).any():
            raise CorruptRecordsError("a varint of more than 64 bits")
        more = more[byte >= 0x80]
        shift += 7
    if most_bytes == 5 and shift > 28 and (value > 0xFFFFFFFF).any():
        raise CorruptRecordsError("a varint of more than 32 bits")
    return value, position


def _zigzag(value: npt.NDArray[np.uint64]) -> Integers:
    return (value >> np.uint64(1)).view(np.int64) ^ -(value & np.uint64(1)).view(np.int64)


def _sizes(view: Bytes, positions: Integers) -> tuple[Integers, Integers]:
    """(sizes of nullable fields, -1 for null; where their bytes start)"""
    value, start = _varints(view, positions, 5)
    size = (value >> np.uint64(1)).view(np.int64)
    size[(value & np.uint64(1)) != 0] = -1
    return size, start


def _require(holds: Flags, what: str) -> None:
    if not holds.all():
        raise CorruptRecordsError(f"record {int(np.argmin(holds))} of a stretch has {what}")
