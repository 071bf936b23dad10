"""Equal rows of equal bytes: the kernel reads what the readers without it read, and refuses garbage as they do."""

import contextlib
import random
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kavka.pipeline.arrow.decoding import CorruptInputError, RangeDecoder
from kavka.pipeline.arrow.record_kernels import LARGEST_MS
from kavka.pipeline.arrow.rows import FIELDS
from kavka.protocol.errors import DecodeError
from kavka.protocol.records.batch import Record, TimestampType, build_batch, build_control_batch
from kavka.protocol.records.builder import ControlType
from kavka.protocol.records.compression import Codec
from kavka.protocol.records.header import iter_batch_headers, verify_crc, write_crc
from kavka.protocol.records.legacy import build_message_set, iter_records_of
from kavka.protocol.records.record_lengths import Integers

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
EVERY = [field.name for field in FIELDS]
ALL = range(2**62)
Row = tuple[object, ...]

nullable = st.none() | st.binary(max_size=300)
times = st.integers(-(2**62), 2**62) | st.integers(1_700_000_000_000, 1_700_000_100_000)
headers = st.lists(st.tuples(st.text(max_size=8), nullable), max_size=3).map(tuple)
records = st.builds(Record, timestamp_ms=times, key=nullable, value=nullable, headers=headers)
batches = st.builds(
    build_batch,
    st.lists(records, min_size=1, max_size=60),
    codec=st.sampled_from(list(Codec)),
    timestamp_type=st.sampled_from(list(TimestampType)),
    base_offset=st.just(0),
)
plain = st.builds(Record, timestamp_ms=st.integers(0, 2**40), key=nullable, value=nullable)
message_sets = st.builds(
    build_message_set,
    st.lists(plain, min_size=1, max_size=20),
    st.sampled_from([0, 1]),
    codec=st.sampled_from([Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4]),
)


def placed(made: Sequence[bytes]) -> bytes:
    """The batches and message sets one behind the other, with offsets as a log gives them."""
    log = bytearray()
    offset = 0
    for part in made:
        for position, header in iter_batch_headers(part):
            piece = part[position : position + header.size_bytes]
            if header.magic == 2:
                log += offset.to_bytes(8, "big") + piece[8:]
                offset += header.last_offset_delta + 1
            else:
                inner = len(list(iter_records_of(part, position, header)))
                offset += inner
                # Of a wrapper of magic 1 the offset is its last message's; of magic 0 the inner ones stand as they are.
                log += (offset - 1 if header.magic == 1 or not header.codec else inner - 1).to_bytes(8, "big") + piece[
                    8:
                ]
    return bytes(log)


def rows_without_kernel(data: bytes, offsets: range = ALL) -> list[Row]:
    """By the reader that takes one record after the other. Raises DecodeError."""
    found: list[Row] = []
    for position, header in iter_batch_headers(data):
        verify_crc(data, position, header)
        if header.is_control:
            continue
        kind = -1 if header.magic == 0 else int(header.timestamp_type)
        for record in iter_records_of(data, position, header):
            if record.offset in offsets:
                time_us = min(max(record.timestamp_ms, -LARGEST_MS), LARGEST_MS) * 1000
                pairs = [{"key": as_text(key), "value": value} for key, value in record.headers] or None
                found.append((record.key, record.value, "visits", 3, record.offset, time_us, kind, pairs))
    return found


def as_text(key: str) -> str:
    """Surrogates stand for what is no UTF-8, and Java has another sign for that."""
    return key.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def rows_of(
    data: bytes, offsets: range = ALL, *, piece_bytes: int = 1 << 30, aborted: Integers | None = None
) -> list[Row]:
    """By the kernel, in pieces of a file."""
    decoder = RangeDecoder("visits", 3, offsets, EVERY, None if aborted is None else lambda: aborted)
    found: list[Row] = []
    position, wanted = 0, piece_bytes
    while not decoder.is_done and position < len(data):
        piece = data[position : position + wanted]
        for batch in decoder.decode(piece, "00000000000000000000.log", position):
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            columns["timestamp"] = columns["timestamp"].cast(pa.int64())
            found += zip(*(column.to_pylist() for column in columns.values()), strict=True)
        if not decoder.used_bytes and position + wanted >= len(data):
            break
        wanted = piece_bytes if decoder.used_bytes else 2 * wanted
        position += decoder.used_bytes
    return found


@PATIENT
@given(st.lists(batches | message_sets, min_size=1, max_size=5), st.integers(100, 3000))
def test_every_format_reads_as_the_record_wise_reader_reads_it(made: list[bytes], piece_bytes: int) -> None:
    data = placed(made)
    assert rows_of(data, piece_bytes=piece_bytes) == rows_without_kernel(data)


@PATIENT
@given(st.lists(batches, min_size=1, max_size=4), st.integers(0, 100), st.integers(0, 100))
def test_a_range_has_the_records_of_its_offsets_alone(made: list[bytes], start: int, count: int) -> None:
    data = placed(made)
    wanted = range(start, start + count)
    assert rows_of(data, wanted) == rows_without_kernel(data, wanted)


@PATIENT
@given(batches, st.randoms(use_true_random=False))
def test_bytes_that_a_producer_never_wrote_are_refused_or_read_alike(batch: bytes, chance: random.Random) -> None:
    """A right checksum says only that the bytes are what was sent."""
    broken = bytearray(batch)
    for _ in range(chance.randint(1, 3)):
        broken[chance.randrange(23, len(broken))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
    write_crc(broken, 0)
    data = bytes(broken)
    try:
        expected = rows_without_kernel(data)
    except DecodeError:
        with pytest.raises(CorruptInputError, match=r"0000\.log is corrupt at position 0: "):
            rows_of(data)
    else:
        assert rows_of(data) == expected


@PATIENT
@given(st.binary(max_size=400), st.integers(0, 2))
def test_garbage_is_refused_or_waits_for_more(garbage: bytes, magic: int) -> None:
    data = bytearray(garbage)
    if len(data) > 16:
        data[16] = magic
    with contextlib.suppress(CorruptInputError):
        # What is whole is a message of the old formats with a right checksum: hardly ever.
        assert len(rows_of(bytes(data))) < 2


@pytest.mark.parametrize("codec", list(Codec))
def test_a_wrong_checksum_names_the_file_and_the_position_and_keeps_what_came_before(codec: Codec) -> None:
    good = build_batch([Record(value=b"good", timestamp_ms=1)], codec=codec)
    data = bytearray(placed([good, good]))
    data[-1] ^= 1
    decoder = RangeDecoder("visits", 3, ALL, ["value"], None)
    found = decoder.decode(bytes(data), "x.log", 1000)
    assert next(found)["value"].to_pylist() == [b"good"]
    with pytest.raises(CorruptInputError, match=rf"^x\.log is corrupt at position {1000 + len(good)}: .*CRC"):
        next(found)


def test_batches_outside_the_range_are_not_looked_into() -> None:
    broken = bytearray(build_batch([Record(value=b"broken", timestamp_ms=1)]))
    broken[-1] ^= 1
    data = placed([bytes(broken), build_batch([Record(value=b"good", timestamp_ms=1)]), bytes(broken)])
    assert [row[1] for row in rows_of(data, range(1, 2))] == [b"good"]


def test_a_batch_that_claims_millions_of_records_costs_no_room_for_them() -> None:
    data = bytearray(build_batch([Record(value=b"v", timestamp_ms=1)]))
    data[57:61] = (2**31 - 1).to_bytes(4, "big")
    write_crc(data, 0)
    with pytest.raises(CorruptInputError, match="more records than it has bytes"):
        rows_of(bytes(data))


def test_a_batch_of_more_records_than_come_at_once_comes_in_parts() -> None:
    data = build_batch([Record(timestamp_ms=number) for number in range(150_000)], codec=Codec.ZSTD)
    decoder = RangeDecoder("visits", 3, ALL, ["offset"], None)
    parts = [batch["offset"] for batch in decoder.decode(data, "x.log", 0)]
    assert [len(part) for part in parts] == [65_536, 65_536, 18_928]
    assert pa.concat_arrays(parts).equals(pa.array(np.arange(150_000)))


def transactional(value: bytes, producer_id: int) -> bytes:
    return build_batch(
        [Record(value=value, timestamp_ms=1)], producer_id=producer_id, producer_epoch=0, transactional=True
    )


def marker(kind: ControlType, producer_id: int) -> bytes:
    return build_control_batch(kind, timestamp_ms=1, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0)


def test_records_of_aborted_transactions_are_left_out_and_markers_always() -> None:
    steps = [
        transactional(b"first aborted", 7),
        transactional(b"committed", 8),
        build_batch([Record(value=b"no transaction", timestamp_ms=1)]),
        marker(ControlType.ABORT, 7),
        marker(ControlType.COMMIT, 8),
        transactional(b"same producer later", 7),
        marker(ControlType.COMMIT, 7),
    ]
    data = placed(steps)
    aborted = np.array([[7, 0, 3]], np.int64)
    committed = [row[1] for row in rows_of(data, aborted=aborted)]
    assert committed == [b"committed", b"no transaction", b"same producer later"]
    assert [row[1] for row in rows_of(data)] == [b"first aborted", *committed]


def test_how_transactions_ended_is_asked_only_where_there_are_some() -> None:
    def outcomes() -> Integers:
        raise AssertionError("nobody wrote in a transaction")

    decoder = RangeDecoder("visits", 3, ALL, ["value"], outcomes)
    data = build_batch([Record(value=b"v", timestamp_ms=1)])
    assert [batch.num_rows for batch in decoder.decode(data, "x.log", 0)] == [1]
