"""A stretch of batches as columns: their headers, and where the fields of their records lie.

Batches are found one by one, and within them the records by their lengths; everything else works on all records of a
stretch at once. Compressed batches are unpacked behind the stretch's own bytes, so that one array holds all records.
Nothing here trusts a length: what doesn't fit raises CorruptRecordsError, as the record-wise reader does. What is in
records' headers is left to who reads them. Compaction and the consumer read so; numpy is loaded with this module.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from kavka.protocol.buffer_pool import BufferPool
from kavka.protocol.records.column_varints import behind_lengths, require, sizes, varints, zigzag
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
from kavka.protocol.records.record import headers_end
from kavka.protocol.records.record_lengths import PADDING_BYTES, Flags, Integers, find_records

BATCH_LIMIT_BYTES: Final = 256 << 20
"""What a batch may unpack to; beyond that it is corrupt."""

_HEADER: Final = np.dtype(
    [(name, f">{code}") for name, code in zip(BatchHeader._fields, BATCH_HEADER.format.lstrip(">"), strict=True)]
)
_LENGTH: Final = struct.Struct(">i")
_FEW: Final = 40
"""Fewer records than that cost less one by one."""


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
        "leader_epochs",
        "max_timestamps",
        "positions",
        "producer_epochs",
        "producer_ids",
        "sizes",
    )

    def __init__(self, data: bytes | memoryview, positions: Sequence[int]) -> None:
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
        self.leader_epochs: Integers = column("partition_leader_epoch")
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
        part = object.__new__(Batches)
        for name in _COLUMNS:
            setattr(part, name, getattr(self, name)[first:end])
        part.data = self.data[start : int(positions[-1] + part.sizes[-1])]
        part.positions = positions - start
        return part

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


_COLUMNS: Final = tuple(name for name in Batches.__slots__ if name not in ("data", "positions"))


class Records(NamedTuple):
    """The records of some batches, in order. Positions are into `body`."""

    body: bytes | memoryview
    batch: Integers
    """Which batch each belongs to."""
    starts: Integers
    ends: Integers
    offsets: Integers
    timestamps: Integers
    key_starts: Integers
    key_sizes: Integers
    """-1: no key."""
    value_starts: Integers
    value_sizes: Integers
    """-1: no value."""
    header_starts: Integers
    """Where the number of headers stands."""

    @property
    def has_value(self) -> Flags:
        has: Flags = self.value_sizes >= 0
        return has


def find_batches(data: bytes | memoryview, end: int) -> tuple[list[int], bool, int]:
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


def parsed(
    batches: Batches,
    limits: ParseLimits,
    *,
    check_crcs: bool = True,
    padded: bool = True,
    pool: BufferPool | None = None,
) -> Iterator[tuple[Batches, Records]]:
    """All batches with their records, a part at a time as the limits ask.

    With `padded`, PADDING_BYTES follow the records in `body`; without, that is the data itself where nothing is packed,
    or a view of a buffer of `pool`, which is used again once nobody looks at it.
    Raises CorruptRecordsError, and what `decompress` raises.
    """
    done, expected = 0, len(batches)
    while done < len(batches):
        records = np.cumsum(batches.counts[done : done + expected])
        most = max(1, int(np.searchsorted(records, limits.records, side="right")))
        part, body, starts, ends = _unpacked(batches.between(done, done + most), limits, padded=padded, pool=pool)
        if check_crcs:
            part.verify_crcs()
        yield part, _parse(part, body, starts, ends)
        done += len(part)
        # Where unpacking cut a part short, the next one will hardly have more.
        expected = 2 * len(part)


def _unpacked(
    batches: Batches, limits: ParseLimits, *, padded: bool = True, pool: BufferPool | None = None
) -> tuple[Batches, bytes | memoryview, Integers, Integers]:
    """(the first batches, what holds their records unpacked; where each batch's records start and end in it)."""
    starts = batches.positions + HEADER_SIZE_BYTES
    ends = batches.positions + batches.sizes
    has_records = batches.counts > 0
    packed = np.flatnonzero((batches.codecs != Codec.NONE) & has_records)
    view = memoryview(batches.data)
    padding = bytes(PADDING_BYTES if padded else 0)
    if not len(packed):
        return batches, b"".join((view, padding)) if padded else batches.data, starts, ends
    if pool is not None and not padded and len(packed) == np.count_nonzero(has_records):
        return _unpacked_into(pool, batches, limits, packed, starts, ends)
    # What is not packed is there as well, in front.
    parts: list[bytes | memoryview] = [view] if len(packed) < np.count_nonzero(has_records) else []
    first = length = len(view) if parts else 0
    for number in packed.tolist():
        if length - first > limits.unpacked_bytes:
            # Another time: what was unpacked has no place for more.
            batches = batches.between(0, number)
            starts, ends = starts[:number], ends[:number]
            break
        stretch = view[int(starts[number]) : int(ends[number])]
        part = decompress(int(batches.attributes[number]) & CODEC_MASK, stretch, limit_bytes=BATCH_LIMIT_BYTES)
        starts[number], ends[number] = length, length + len(part)
        length += len(part)
        parts.append(part)
    parts.append(padding)
    return batches, b"".join(parts), starts, ends


def _unpacked_into(
    pool: BufferPool, batches: Batches, limits: ParseLimits, packed: Integers, starts: Integers, ends: Integers
) -> tuple[Batches, bytes | memoryview, Integers, Integers]:
    """As `_unpacked`, where no batch with records is as it was written, into a buffer that was used before.

    Neither that nor what libraries unpack to needs fresh pages then: these cost more than the unpacking itself.
    """
    view, room = memoryview(batches.data), limits.unpacked_bytes
    buffer = pool.take(room) or bytearray(room)
    body: bytes | memoryview = memoryview(buffer)
    places = [0]
    codecs = (batches.attributes[packed] & CODEC_MASK).tolist()
    for codec, start, end in zip(codecs, starts[packed].tolist(), ends[packed].tolist(), strict=True):
        part = decompress(codec, view[start:end], limit_bytes=BATCH_LIMIT_BYTES)
        position, after = places[-1], places[-1] + len(part)
        if after > room:
            if position == 0:
                body = part
                places.append(after)
            break
        buffer[position:after] = part
        places.append(after)
    if body is not part:
        pool.keep(buffer)
        body = body[: places[-1]]
    count = len(places) - 1
    if count < len(packed):
        batches = batches.between(0, int(packed[count]))
        starts, ends = starts[: len(batches)], ends[: len(batches)]
    starts[packed[:count]], ends[packed[:count]] = places[:-1], places[1:]
    return batches, body, starts, ends


def _parse(batches: Batches, body: bytes | memoryview, starts: Integers, ends: Integers) -> Records:
    record_starts = find_records(body, starts, ends, batches.counts)
    batch = np.repeat(np.arange(len(batches)), batches.counts)
    view = np.frombuffer(body, np.uint8)
    record_ends = np.empty_like(record_starts)
    record_ends[:-1] = record_starts[1:]
    last_of_batch = np.cumsum(batches.counts)[batches.counts > 0] - 1
    record_ends[last_of_batch] = ends[batches.counts > 0]
    position = behind_lengths(view, record_starts, record_ends)
    timestamp_delta, position = varints(view, position + 1, 10)
    offset_delta_code, position = varints(view, position, 5)
    key_size, key_start = sizes(view, position)
    value_size, value_start = sizes(view, key_start + np.maximum(key_size, 0))
    position = value_start + np.maximum(value_size, 0)
    headers = view.take(position, mode="clip")
    require(position < record_ends, "fields that go beyond it")
    require((headers != 0) | (position + 1 == record_ends), "bytes behind its fields")
    offset_delta = zigzag(offset_delta_code)
    offsets = batches.base_offsets[batch] + offset_delta
    require((offset_delta >= 0) & (offsets <= batches.last_offsets[batch]), "an offset outside its batch")
    stamped = batches.is_log_append_time[batch]
    timestamps = batches.base_timestamps[batch] + zigzag(timestamp_delta)
    if stamped.any():
        timestamps = np.where(stamped, batches.max_timestamps[batch], timestamps)
    keys_and_values = (key_start, key_size, value_start, value_size)
    return Records(body, batch, record_starts, record_ends, offsets, timestamps, *keys_and_values, position)


def with_headers(records: Records) -> Flags:
    """Which records have headers; these are checked, so that `PackedHeaders` can take them apart.

    Raises CorruptRecordsError.
    """
    view = np.frombuffer(records.body, np.uint8)
    has: Flags = view[records.header_starts] != 0
    some = np.flatnonzero(has)
    if not len(some):
        return has
    code, position = varints(view, records.header_starts[some], 5)
    left, ends = zigzag(code), records.ends[some]
    require((left >= 0) & (left <= ends - position), "a number of headers that can't be")
    while len(left):
        if len(left) < _FEW:
            for start, end in zip(records.header_starts[some].tolist(), ends.tolist(), strict=True):
                if _headers_size(bytes(records.body[start:end])) != end - start:
                    raise CorruptRecordsError("a record has bytes behind its headers")
            break
        size, position = sizes(view, position)
        require(size >= 0, "a header without a key")
        size, position = sizes(view, position + size)
        position = position + np.maximum(size, 0)
        require(position <= ends, "headers that go beyond it")
        left = left - 1
        require((left > 0) | (position == ends), "bytes behind its headers")
        more = left > 0
        some, position, left, ends = some[more], position[more], left[more], ends[more]
    return has


def _headers_size(packed: bytes) -> int:
    try:
        return headers_end(packed, 0, len(packed))
    except IndexError:
        raise CorruptRecordsError("a record ends in its headers") from None
