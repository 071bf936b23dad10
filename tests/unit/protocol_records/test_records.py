"""Records inside a v2 batch: round trips, and lies of every kind."""

import tracemalloc
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka.protocol.records.batch import (
    HEADER_SIZE_BYTES,
    BatchHeader,
    Codec,
    Record,
    TimestampType,
    build_batch,
    iter_records,
    read_header,
    verify_crc,
)
from kavka.protocol.records.errors import CorruptRecordsError
from kavka.protocol.records.record import parse_records
from tests.support.examples import examples

FIELD = st.none() | st.binary(max_size=200)
HEADERS = st.lists(st.tuples(st.text(max_size=8), FIELD), max_size=4).map(tuple)
RECORDS = st.lists(
    st.builds(
        Record,
        offset=st.just(0),
        timestamp_ms=st.integers(-1, 2**62),
        key=FIELD,
        value=FIELD,
        headers=HEADERS,
    ),
    min_size=1,
    max_size=70,
)


def numbered(records: list[Record], base_offset: int) -> list[Record]:
    return [record._replace(offset=base_offset + index) for index, record in enumerate(records)]


def body_of(*records: Record) -> bytes:
    return build_batch(records)[HEADER_SIZE_BYTES:]


def header_for(count: int, **fields: int) -> BatchHeader:
    """A header for `count` records from offset and timestamp 0 on; `fields` may lie."""
    fields = {"last_offset_delta": max(count - 1, 0), **fields}
    return read_header(build_batch([Record(timestamp_ms=0)]))._replace(count=count, **fields)


def parse(body: bytes, count: int = 1, **fields: int) -> list[Record]:
    return list(parse_records(body, header_for(count, **fields)))


@examples(60)
@given(RECORDS, st.integers(0, 2**62), st.sampled_from(Codec))
def test_what_was_built_reads_back(records: list[Record], base_offset: int, codec: Codec) -> None:
    batch = build_batch(records, base_offset=base_offset, codec=codec)

    verify_crc(batch, 0, read_header(batch))
    assert list(iter_records(batch)) == numbered(records, base_offset)
    assert list(iter_records(memoryview(b"abc" + batch + b"def"), 3)) == numbered(records, base_offset)


@pytest.mark.parametrize("timestamps", [(0, 2**63 - 1), (2**63 - 1, -1), (-(2**63) + 5, 2**62)])
def test_timestamps_may_lie_as_far_apart_as_64_bits_allow(timestamps: tuple[int, int]) -> None:
    batch = build_batch([Record(timestamp_ms=timestamp) for timestamp in timestamps])
    assert tuple(record.timestamp_ms for record in iter_records(batch)) == timestamps


def test_a_header_key_that_is_not_utf8_survives() -> None:
    body = body_of(Record(headers=(("ab", b"c"),))).replace(b"ab", b"\xff\xfe")

    (record,) = parse(body)

    assert body_of(record) == body
    assert list(record.headers) == [("\udcff\udcfe", b"c")]


def test_headers_take_no_more_memory_than_their_bytes_until_somebody_looks() -> None:
    headers = (("", None),) * 100_000
    body = body_of(Record(value=b"v", headers=headers))

    tracemalloc.start()
    try:
        (record,) = parse(body)
        written = body_of(record)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert written == body
    assert peak_bytes < 8 * len(body)
    assert record.headers == headers
    assert len(record.headers) == len(headers)


def test_records_come_lazily_up_to_the_bad_one() -> None:
    good = build_batch([Record(value=b"a"), Record(value=b"b")])[HEADER_SIZE_BYTES:]
    records = parse_records(good + b"\x7f", header_for(3))

    assert [next(records).value, next(records).value] == [b"a", b"b"]
    with pytest.raises(CorruptRecordsError):
        next(records)


def test_a_body_cut_anywhere_is_corrupt() -> None:
    body = body_of(Record(0, 100, b"k" * 70, b"v" * 200, (("h", b"x" * 80), ("i", None))), Record(0, 2**40, b"a"))
    for cut in range(len(body)):
        with pytest.raises(CorruptRecordsError):
            parse(body[:cut], 2)


@pytest.mark.parametrize("count", [-(2**31), -1, 0, 1, 3, 2**31 - 1])
def test_a_count_that_lies_is_corrupt(count: int) -> None:
    with pytest.raises(CorruptRecordsError):
        parse(body_of(Record(value=b"a"), Record(value=b"b")), count, last_offset_delta=2**31 - 1)


def lies() -> Iterator[tuple[str, bytes]]:
    """A record is: length, attributes, timestamp delta, offset delta, key, value, header count; varints are zigzag."""
    yield "negative length", b"\x0b" + b"\0\0\0\1\1\0"
    yield "length beyond the end", b"\x10" + b"\0\0\0\1\1\0"
    yield "length within the fields", b"\x0a" + b"\0\0\0\1\1\0"
    yield "length of more than 32 bits", b"\xff\xff\xff\xff\x7f" + b"\0\0\0\1\1\0"
    yield "length that never ends", b"\xff" * 20
    yield "key beyond the record", b"\x0c" + b"\0\0\0\x0e\1\0"
    yield "key far beyond the record", b"\x14" + b"\0\0\0\xfe\xff\xff\xff\x0e\1\0"
    yield "value beyond the record", b"\x0c" + b"\0\0\0\1\x06\0"
    yield "no room for a header count", b"\x0a" + b"\0\0\0\1\1"
    yield "negative header count", b"\x0c" + b"\0\0\0\1\1\1"
    yield "more headers than bytes", b"\x0e" + b"\0\0\0\1\1\x7e\0"
    yield "header without a key", b"\x10" + b"\0\0\0\1\1\2\1\1"
    yield "header key beyond the record", b"\x10" + b"\0\0\0\1\1\2\x08\1"
    yield "header value beyond the record", b"\x12" + b"\0\0\0\1\1\2\0\4\0"
    yield "header without a value", b"\x0e" + b"\0\0\0\1\1\2\0"
    yield "offset delta below zero", b"\x0c" + b"\0\0\1\1\1\0"
    yield "offset delta beyond the last", b"\x0c" + b"\0\0\2\1\1\0"
    yield "bytes behind the headers", b"\x0e" + b"\0\0\0\1\1\0\0"
    yield "timestamp of more than 64 bits", b"\x1e" + b"\0" + b"\xff" * 9 + b"\x03" + b"\0\1\1\0\0"


@pytest.mark.parametrize("body", [pytest.param(body, id=name) for name, body in lies()])
def test_a_record_that_lies_is_corrupt(body: bytes) -> None:
    with pytest.raises(CorruptRecordsError):
        parse(body)


def test_the_honest_form_of_those_lies_reads() -> None:
    assert parse(b"\x0c" + b"\0\0\0\1\1\0") == [Record(0, 0)]


def test_a_timestamp_beyond_64_bits_wraps_as_in_java() -> None:
    body = body_of(Record(timestamp_ms=0), Record(timestamp_ms=10))
    _, wrapped = parse(body, 2, base_timestamp_ms=2**63 - 1)
    assert wrapped.timestamp_ms == -(2**63) + 9


@given(st.binary(max_size=80), st.integers(0, 5))
def test_random_bodies_are_read_or_refused(body: bytes, count: int) -> None:
    with suppress(CorruptRecordsError):
        assert len(parse(body, count, last_offset_delta=100)) == count


@given(st.data())
def test_a_batch_with_a_changed_byte_is_read_or_refused(data: st.DataObject) -> None:
    codec = data.draw(st.sampled_from(Codec))
    batch = bytearray(build_batch([Record(value=b"v" * 50, headers=(("h", b"x"),))] * 5, codec=codec))
    position = data.draw(st.integers(0, len(batch) - 1))
    batch[position] = data.draw(st.integers(0, 255))
    with suppress(CorruptRecordsError):
        list(iter_records(batch, limit_bytes=1 << 20))


def test_the_builder_keeps_offsets_and_the_end_that_compaction_left() -> None:
    kept = [Record(offset=12, value=b"a"), Record(offset=15, value=b"b")]

    batch = build_batch(kept, base_offset=10, keep_offsets=True, last_offset=19)

    header = read_header(batch)
    assert (header.base_offset, header.last_offset, header.count) == (10, 19, 2)
    assert list(iter_records(batch)) == kept


def test_a_batch_emptied_by_compaction_keeps_its_offsets() -> None:
    batch = build_batch([], base_offset=10, last_offset=19, codec=Codec.GZIP, producer_id=4, base_sequence=0)

    header = read_header(batch)
    verify_crc(batch, 0, header)
    assert (header.count, header.last_offset, header.codec, header.last_sequence) == (0, 19, Codec.NONE, 9)
    assert list(iter_records(batch)) == []


@pytest.mark.parametrize(
    ("offsets", "last_offset"),
    [([5, 5], None), ([6, 5], None), ([3], None), ([5, 9], 8), ([], None), ([], 4), ([2**40], None)],
)
def test_the_builder_refuses_offsets_that_do_not_fit(offsets: list[int], last_offset: int | None) -> None:
    with pytest.raises(ValueError, match="offset delta"):
        build_batch(
            [Record(offset=offset) for offset in offsets], base_offset=5, keep_offsets=True, last_offset=last_offset
        )


def test_a_delete_horizon_stands_in_the_base_timestamp() -> None:
    batch = build_batch([Record(timestamp_ms=50), Record(timestamp_ms=60)], delete_horizon_ms=1000)

    header = read_header(batch)
    assert (header.has_delete_horizon, header.base_timestamp_ms, header.max_timestamp_ms) == (True, 1000, 60)
    assert [record.timestamp_ms for record in iter_records(batch)] == [50, 60]


def test_a_log_append_batch_reads_with_its_max_timestamp() -> None:
    batch = build_batch([Record(timestamp_ms=60), Record(timestamp_ms=50)], timestamp_type=TimestampType.LOG_APPEND)
    assert [record.timestamp_ms for record in iter_records(batch)] == [60, 60]
