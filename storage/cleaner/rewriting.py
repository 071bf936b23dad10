"""Writing what is kept of batches: most as the bytes that they are, some with fewer records, a few anew.

A batch that loses records keeps its base offset, last offset, base timestamp and codec, so that the records that stay
are copied as they are. Only a new delete horizon, which takes the base timestamp's place, has records encoded again.
"""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from kavka.protocol.records.batch import build_batch, iter_records, read_header
from kavka.protocol.records.columns import BATCH_LIMIT_BYTES, Batches, Records
from kavka.protocol.records.compression import Codec, compress
from kavka.protocol.records.crc import crc32c
from kavka.protocol.records.header import (
    ATTRIBUTE_BITS_POSITION,
    ATTRIBUTES_POSITION,
    BASE_TIMESTAMP_POSITION,
    BATCH_LENGTH_POSITION,
    CODEC_MASK,
    COUNT_POSITION,
    CRC_POSITION,
    DELETE_HORIZON_BIT,
    HEADER_SIZE_BYTES,
    LOG_OVERHEAD_BYTES,
    MAX_TIMESTAMP_POSITION,
    NO_TIMESTAMP,
)
from kavka.protocol.records.record_lengths import Flags, Integers
from kavka.storage.cleaner.kept_records import Kept


class KeptBatch(NamedTuple):
    """A batch as it goes into the new segment."""

    base_offset: int
    last_offset: int
    max_timestamp_ms: int
    data: bytes | bytearray | memoryview


def kept_batches(batches: Batches, records: Records, kept: Kept, horizon_ms: int) -> Iterator[KeptBatch]:
    """The batches of which something stays, in order. `horizon_ms`: for those that get a delete horizon now."""
    view = memoryview(batches.data)
    whole = (kept.counts == batches.counts) & ~kept.new_horizon & ((kept.counts > 0) | kept.headers)
    shortened = ~whole & ~kept.new_horizon & (kept.counts > 0)
    runs = _Runs(records, kept, shortened)
    newest = _newest(batches, records, kept, shortened)
    numbers = np.flatnonzero(whole | shortened | kept.headers | kept.new_horizon)
    for number, position, size, base_offset, last_offset, newest_ms in zip(
        numbers.tolist(),
        batches.positions[numbers].tolist(),
        batches.sizes[numbers].tolist(),
        batches.base_offsets[numbers].tolist(),
        batches.last_offsets[numbers].tolist(),
        newest[numbers].tolist(),
        strict=True,
    ):
        data: bytes | bytearray | memoryview
        if whole[number]:
            data = view[position : position + size]
        elif shortened[number]:
            data = _shortened(view, position, int(kept.counts[number]), newest_ms, runs.next_of(number))
        elif kept.new_horizon[number]:
            data, newest_ms = _with_horizon(batches, records, kept, number, horizon_ms)
        else:
            data = _emptied(view, position)
        yield KeptBatch(base_offset, last_offset, newest_ms, data)


class _Runs:
    """Stretches of records that stay, of the batches that lose some; to be asked for in order."""

    def __init__(self, records: Records, kept: Kept, shortened: Flags) -> None:
        self._body = memoryview(records.body)
        chosen = np.flatnonzero(kept.records & shortened[records.batch])
        starts, ends, batch = records.starts[chosen], records.ends[chosen], records.batch[chosen]
        begins = np.ones(len(chosen), np.bool_)
        begins[1:] = (starts[1:] != ends[:-1]) | (batch[1:] != batch[:-1])
        first = np.flatnonzero(begins)
        self._starts: list[int] = starts[first].tolist()
        self._ends: list[int] = ends[np.append(first[1:], len(chosen))[: len(first)] - 1].tolist()
        self._batch: list[int] = batch[first].tolist()
        self._done = 0

    def next_of(self, number: int) -> list[memoryview]:
        first = done = self._done
        batch = self._batch
        while done < len(batch) and batch[done] == number:
            done += 1
        self._done = done
        body = self._body
        return [body[self._starts[run] : self._ends[run]] for run in range(first, done)]


def _newest(batches: Batches, records: Records, kept: Kept, shortened: Flags) -> Integers:
    """The largest timestamp of each batch; of those that lose records, of what stays."""
    newest = batches.max_timestamps.copy()
    changing = shortened & ~batches.is_log_append_time
    chosen = np.flatnonzero(kept.records & changing[records.batch])
    if len(chosen):
        batch = records.batch[chosen]
        first = np.flatnonzero(np.append(True, batch[1:] != batch[:-1]))
        newest[batch[first]] = np.maximum(np.maximum.reduceat(records.timestamps[chosen], first), NO_TIMESTAMP)
    return newest


def _shortened(view: memoryview, position: int, count: int, newest_ms: int, runs: list[memoryview]) -> bytes:
    header = bytearray(view[position : position + HEADER_SIZE_BYTES])
    body = b"".join(runs)
    codec = header[ATTRIBUTE_BITS_POSITION] & CODEC_MASK
    if codec != Codec.NONE:
        body = compress(codec, body)
    _I64.pack_into(header, MAX_TIMESTAMP_POSITION, newest_ms)
    return _finished(header, body, count)


def _emptied(view: memoryview, position: int) -> bytes:
    """The header alone: offsets, producer and its sequence, leader epoch, timestamp type, transactional or control."""
    header = bytearray(view[position : position + HEADER_SIZE_BYTES])
    header[ATTRIBUTE_BITS_POSITION] &= ~(CODEC_MASK | DELETE_HORIZON_BIT)
    _I64.pack_into(header, BASE_TIMESTAMP_POSITION, NO_TIMESTAMP)
    return _finished(header, b"", 0)


def _finished(header: bytearray, body: bytes, count: int) -> bytes:
    _I32.pack_into(header, BATCH_LENGTH_POSITION, HEADER_SIZE_BYTES + len(body) - LOG_OVERHEAD_BYTES)
    _I32.pack_into(header, COUNT_POSITION, count)
    crc = crc32c(body, crc32c(memoryview(header)[ATTRIBUTES_POSITION:]))
    _U32.pack_into(header, CRC_POSITION, crc)
    return bytes(header) + body


def _with_horizon(batches: Batches, records: Records, kept: Kept, number: int, horizon_ms: int) -> tuple[bytes, int]:
    """(a batch built anew with a delete horizon, its largest timestamp). Raises DecodeError."""
    position = int(batches.positions[number])
    header = read_header(batches.data, position)
    first = int(np.searchsorted(records.batch, number))
    stays = kept.records[first : first + header.count].tolist()
    found = iter_records(batches.data, position, limit_bytes=BATCH_LIMIT_BYTES)
    data = build_batch(
        (record for record, stay in zip(found, stays, strict=True) if stay),
        base_offset=header.base_offset,
        codec=header.codec,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
        control=header.is_control,
        leader_epoch=header.partition_leader_epoch,
        timestamp_type=header.timestamp_type,
        keep_offsets=True,
        last_offset=header.last_offset,
        delete_horizon_ms=horizon_ms,
    )
    return data, read_header(data).max_timestamp_ms


_I32: Final = struct.Struct(">i")
_U32: Final = struct.Struct(">I")
_I64: Final = struct.Struct(">q")
