"""A batch written record by record is the batch that the builder makes of the same records."""

from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka.protocol.records.appending import BatchWriter, record_size_bound, varint
from kavka.protocol.records.batch import Codec, Record, build_batch, iter_records, read_header, verify_crc

CAPACITY_BYTES = 16_384

texts = st.none() | st.binary(max_size=300)
headers = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3).map(tuple)
records = st.builds(Record, timestamp_ms=st.integers(0, 2**62), key=texts, value=texts, headers=st.just(()) | headers)


def written(some: list[Record], codec: int = Codec.NONE, **stamp: Any) -> bytes:
    writer = BatchWriter(BytesIO(), 2**30)
    for record in some:
        assert writer.append(record.timestamp_ms, record.key, record.value, record.headers)
    writer.seal(codec)
    writer.stamp(**stamp)
    return bytes(writer.data)


@given(st.lists(records, min_size=1, max_size=20))
def test_the_bytes_are_the_builders(some: list[Record]) -> None:
    assert written(some) == build_batch(some)


@pytest.mark.parametrize("codec", list(Codec))
def test_each_codec_is_read_back(codec: Codec) -> None:
    some = [Record(number, 1000 + number, b"%d" % number, b"value" * 30) for number in range(300)]
    batch = written(some, codec, producer_id=7, producer_epoch=2, base_sequence=40)
    header = read_header(batch)
    verify_crc(batch, 0, header)
    assert header.codec == codec
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, 40)
    assert list(iter_records(batch)) == some


def test_what_a_codec_makes_larger_goes_as_it_is() -> None:
    some = [Record(0, 5, None, b"\x01\x9f\x33")]
    batch = written(some, Codec.GZIP)
    assert read_header(batch).codec == Codec.NONE
    assert list(iter_records(batch)) == some


@pytest.mark.parametrize("size", [63, 64, 8190, 8191, 8192, 70_000, 3_000_000])
def test_long_records_are_read_back(size: int) -> None:
    some = [Record(0, 9, b"k" * size, b"v" * size), Record(1, 9 + 10**9, None, b"v" * size), Record(2, 1, b"", None)]
    batch = written(some)
    assert list(iter_records(batch)) == some
    assert read_header(batch).max_timestamp_ms == 9 + 10**9


def test_many_records_are_counted_beyond_the_table() -> None:
    some = [Record(number, 5, None, b"") for number in range(9000)]
    assert list(iter_records(written(some))) == some


@given(records)
def test_a_record_alone_is_within_its_bound(record: Record) -> None:
    assert len(written([record])) <= record_size_bound(record.key, record.value, record.headers)


def test_a_record_without_room_changes_nothing() -> None:
    writer = BatchWriter(BytesIO(), 200)
    assert writer.append(5, None, b"x" * 100)
    assert not writer.append(900, None, b"x" * 100)
    writer.seal()
    writer.stamp()
    assert list(iter_records(writer.data)) == [Record(0, 5, None, b"x" * 100)]


def test_the_first_record_is_taken_whatever_its_size() -> None:
    assert BatchWriter(BytesIO(), 100).append(5, None, b"x" * 1000)


def test_another_producer_may_be_stamped_on_it() -> None:
    writer = BatchWriter(BytesIO(), CAPACITY_BYTES)
    writer.append(5, b"k", b"v")
    writer.seal(Codec.LZ4)
    for epoch in range(3):
        writer.stamp(9, epoch, 0, transactional=True)
        header = read_header(writer.data)
        verify_crc(writer.data, 0, header)
        assert (header.producer_epoch, header.is_transactional) == (epoch, True)


def test_memory_is_used_again_when_nobody_looks_at_it() -> None:
    stream = BytesIO()
    first = BatchWriter(stream, CAPACITY_BYTES)
    first.append(5, None, b"first" * 100)
    first.seal()
    first.stamp()
    in_flight = first.data[:]
    first.release()
    with pytest.raises(BufferError):
        BatchWriter(stream, CAPACITY_BYTES)
    in_flight.release()
    second = BatchWriter(stream, CAPACITY_BYTES)
    second.append(6, None, b"second")
    second.seal()
    second.stamp()
    assert list(iter_records(second.data)) == [Record(0, 6, None, b"second")]


@pytest.mark.parametrize(("value", "encoded"), [(0, b"\0"), (-1, b"\1"), (63, b"~"), (64, b"\x80\1"), (-65, b"\x81\1")])
def test_varints_are_zigzag(value: int, encoded: bytes) -> None:
    assert varint(value) == encoded
