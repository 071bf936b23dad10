"""Records read as columns are those that the record-wise reader finds, and hostile bytes are refused by both."""

import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kavka.protocol.errors import DecodeError
from kavka.protocol.records.batch import Record, TimestampType, build_batch, iter_records
from kavka.protocol.records.columns import Batches, ParseLimits, find_batches, parsed, with_headers
from kavka.protocol.records.compression import Codec, decompress
from kavka.protocol.records.errors import CorruptRecordsError
from kavka.protocol.records.header import HEADER_SIZE_BYTES, read_header, write_crc
from kavka.protocol.records.reading import RecordRow, read_rows
from kavka.protocol.records.record import PackedHeaders, RecordHeader

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
nullable = st.none() | st.binary(max_size=300)
records = st.builds(
    Record,
    offset=st.just(0),
    timestamp_ms=st.integers(-(2**62), 2**62) | st.integers(1_700_000_000_000, 1_700_000_100_000),
    key=nullable,
    value=nullable,
    headers=st.lists(st.tuples(st.text(max_size=8), nullable), max_size=3).map(tuple),
)
batches = st.builds(
    build_batch,
    st.lists(records, min_size=1, max_size=90),
    base_offset=st.integers(0, 2**40),
    codec=st.sampled_from(list(Codec)),
    timestamp_type=st.sampled_from(list(TimestampType)),
)


Read = tuple[int, int, bytes | None, bytes | None, tuple[RecordHeader, ...]]


def read_as_columns(data: bytes, limits: ParseLimits | None = None) -> list[Read]:
    positions, is_v2, end = find_batches(data, len(data))
    assert is_v2
    assert end == len(data)
    found = []
    for _, part in parsed(Batches(data, positions), limits or ParseLimits()):
        body = bytes(part.body)
        fields = (part.offsets, part.timestamps, part.key_starts, part.key_sizes, part.value_starts, part.value_sizes)
        places = (part.header_starts, part.ends, with_headers(part))
        for offset, timestamp_ms, key, key_size, value, value_size, headers, end, has_headers in zip(
            *(column.tolist() for column in (*fields, *places)), strict=True
        ):
            found.append(
                (
                    offset,
                    timestamp_ms,
                    None if key_size < 0 else body[key : key + key_size],
                    None if value_size < 0 else body[value : value + value_size],
                    tuple(PackedHeaders(body[headers:end])) if has_headers else (),
                )
            )
        assert part.has_value.tolist() == [size >= 0 for size in part.value_sizes.tolist()]
    return found


def read_one_by_one(data: bytes) -> list[Read]:
    positions, _, _ = find_batches(data, len(data))
    return [
        (record.offset, record.timestamp_ms, record.key, record.value, tuple(record.headers))
        for position in positions
        for record in iter_records(data, position)
    ]


def read_in_rows(data: bytes) -> list[Read]:
    rows: list[RecordRow] = []
    for position in find_batches(data, len(data))[0]:
        header = read_header(data, position)
        packed = memoryview(data)[position + HEADER_SIZE_BYTES : position + header.size_bytes]
        body = decompress(header.codec, packed)
        read_rows(rows, body, 0, len(body), header)
    return [(*row[:4], tuple(PackedHeaders(row[4]))) for row in rows]


@PATIENT
@given(st.lists(batches, min_size=1, max_size=4))
def test_columns_say_what_the_record_wise_reader_says(several: list[bytes]) -> None:
    data = b"".join(several)
    assert read_as_columns(data) == read_one_by_one(data)
    assert read_in_rows(data) == read_one_by_one(data)


def test_the_headers_of_many_records_are_checked_together() -> None:
    chance = random.Random(3)
    data = build_batch(
        [
            Record(value=b"v", headers=[("name" * chance.randrange(40), None), ("b", b"c")] * chance.randrange(4))
            for _ in range(500)
        ]
    )
    assert read_as_columns(data) == read_one_by_one(data)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
@pytest.mark.parametrize("limits", [ParseLimits(records=7), ParseLimits(unpacked_bytes=100), ParseLimits()])
@pytest.mark.parametrize("count", [1, 30, 100])
def test_many_batches_are_walked_together_and_in_parts(count: int, limits: ParseLimits, codec: Codec) -> None:
    chance = random.Random(count)
    data = b"".join(
        build_batch(
            [
                Record(key=b"k%d" % number, value=chance.randbytes(chance.choice((3, 70, 70, 9000))))
                for number in range(chance.randrange(1, 20))
            ],
            base_offset=100 * each,
            codec=codec,
        )
        for each in range(count)
    )
    assert read_as_columns(data, limits) == read_one_by_one(data)


def test_runs_of_equal_sizes_are_found_at_once_and_end_where_they_do() -> None:
    sizes = [50] * 100 + [51] * 3 + [20_000] * 40 + [50] * 9
    data = build_batch([Record(key=b"k", value=bytes(size)) for size in sizes])
    assert read_as_columns(data) == read_one_by_one(data)


@PATIENT
@given(st.lists(batches, min_size=1, max_size=3), st.data())
def test_what_one_reader_refuses_the_other_does_not_take_for_something_else(
    several: list[bytes], data: st.DataObject
) -> None:
    """Bytes behind a header are changed and the CRC made to fit."""
    batch = bytearray(several[0])
    for _ in range(data.draw(st.integers(1, 3))):
        batch[data.draw(st.integers(61, len(batch) - 1))] = data.draw(st.integers(0, 255))
    write_crc(batch, 0)
    read = []
    for reader in (read_one_by_one, read_as_columns, read_in_rows):
        try:
            read.append(reader(bytes(batch)))
        except DecodeError:
            read.append([])
    assert read[0] == read[1] == read[2]


@pytest.mark.parametrize("position", [57, 60])
@pytest.mark.parametrize("value", [0xFF, 0x7F, 0x00])
def test_a_count_that_lies_is_refused(position: int, value: int) -> None:
    batch = bytearray(build_batch([Record(key=b"k", value=b"v")] * 3))
    batch[position] = value
    write_crc(batch, 0)
    if batch[57:61] == (3).to_bytes(4, "big"):
        return
    with pytest.raises(CorruptRecordsError):
        read_as_columns(bytes(batch))
    with pytest.raises(CorruptRecordsError):
        read_in_rows(bytes(batch))


@pytest.mark.parametrize("end", [b"\x80", b"\x02"])
def test_headers_that_end_too_late_are_refused(end: bytes) -> None:
    """A size that goes on beyond the record, and a header's value that does."""
    batch = bytearray(build_batch([Record(key=b"k", value=b"v", headers=(("a", b""),))]))
    batch[-1:] = end
    write_crc(batch, 0)
    for reader in (read_as_columns, read_in_rows):
        with pytest.raises(CorruptRecordsError):
            reader(bytes(batch))


def test_a_wrong_crc_is_refused() -> None:
    batch = bytearray(build_batch([Record(key=b"k", value=b"v")]))
    batch[-2] ^= 1
    with pytest.raises(CorruptRecordsError, match="CRC"):
        read_as_columns(bytes(batch))


@pytest.mark.parametrize("cut", [1, 20, 70, 100])
def test_a_batch_that_is_cut_off_is_left_for_the_next_stretch(cut: int) -> None:
    whole, other = build_batch([Record(key=b"k", value=bytes(60))]), build_batch([Record(key=b"l", value=bytes(60))])
    data = (whole + other)[:-cut]
    positions, _, end = find_batches(data, len(data))
    assert (positions, end) == ([0], len(whole))


@PATIENT
@given(st.binary(max_size=400))
def test_random_bytes_are_refused_or_left(data: bytes) -> None:
    try:
        positions, is_v2, _ = find_batches(data, len(data))
        if is_v2 and positions:
            for _, part in parsed(Batches(data, positions), ParseLimits()):
                assert isinstance(part.offsets, np.ndarray)
    except DecodeError:
        pass
