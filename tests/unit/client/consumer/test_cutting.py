"""Keys and values are the same whether they are cut out record by record or, where these are of one form, in runs."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kavka.client.consumer import cutting
from kavka.client.consumer.columns import RecordColumns
from kavka.client.consumer.decoding import Rules, decoded, survey
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.buffer_pool import BufferPool
from kavka.protocol.records.batch import Record, build_batch
from kavka.protocol.records.compression import Codec

BIRDS = TopicPartition("birds", 0)

sizes = st.none() | st.sampled_from([0, 1, 7, 130])
runs = st.lists(st.tuples(st.integers(1, 40), sizes, sizes), min_size=1, max_size=6)


def made(lengths: list[tuple[int, int | None, int | None]]) -> list[Record]:
    """Records whose bytes tell which they are."""
    found: list[Record] = []
    for count, key_size, value_size in lengths:
        for _ in range(count):
            fill = bytes([len(found) % 251])
            key = None if key_size is None else fill * key_size
            value = None if value_size is None else fill * value_size
            found.append(Record(timestamp_ms=len(found), key=key, value=value))
    return found


def columns(batches: list[list[Record]], codec: Codec, offset: int = 0) -> Iterator[RecordColumns]:
    data, first = b"", 0
    for batch in batches:
        data += build_batch(batch, base_offset=first, codec=codec)
        first += len(batch)
    rules = Rules(only_columns=True, pool=BufferPool(1 << 22))
    for stretch in decoded(BIRDS, memoryview(bytearray(data)), offset, (), rules, survey(memoryview(data)).records):
        yield stretch.columns(0, len(stretch))


@settings(deadline=None)
@given(st.lists(runs, min_size=1, max_size=3), st.sampled_from([Codec.NONE, Codec.LZ4]), st.integers(0, 50))
def test_whatever_the_forms_are_each_record_has_what_was_written(
    lengths: list[list[tuple[int, int | None, int | None]]], codec: Codec, offset: int
) -> None:
    batches = [made(each) for each in lengths]
    expected = [(record.key, record.value) for batch in batches for record in batch][offset:]
    if not expected:
        return
    found: list[tuple[bytes | None, bytes | None]] = []
    for part in columns(batches, codec, offset):
        keys, values = part.keys_and_values()
        assert (keys, values) == (part.keys(), part.values())
        found += zip(keys, values, strict=True)
    assert found == expected


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
@pytest.mark.parametrize(("key_size", "value_size"), [(7, 100), (None, 100), (7, None), (0, 0), (4, 5_000)])
def test_records_of_one_form_are_taken_apart_at_once(
    codec: Codec, key_size: int | None, value_size: int | None
) -> None:
    batches = [made([(50, key_size, value_size)]) for _ in range(5)]
    (part,) = columns(batches, codec)
    with mock.patch.object(cutting, "_slice", side_effect=AssertionError("cut one by one")):
        keys, values = part.part(3, 240).keys_and_values()
    expected = [(record.key, record.value) for batch in batches for record in batch]
    assert list(zip(keys, values, strict=True)) == expected[3:240]


def test_what_was_unpacked_stays_as_it_is_while_somebody_has_it() -> None:
    batches = [[Record(value=bytes([number]) * 300_000)] for number in range(20)]
    parts = list(columns(batches, Codec.LZ4))
    assert len(parts) > 2
    assert [value for part in parts for value in part.values()] == [batch[0].value for batch in batches]


@pytest.mark.parametrize("limit_bytes", [1_000, 100_000_000])
def test_what_an_lz4_frame_says_of_its_size_is_not_believed(limit_bytes: int) -> None:
    """The library allocates by it."""
    import lz4.frame

    from kavka.protocol.records.compression import decompress
    from kavka.protocol.records.errors import CorruptRecordsError

    honest = lz4.frame.compress(b"abc" * 100, store_size=True)
    assert decompress(Codec.LZ4, memoryview(honest), limit_bytes=limit_bytes) == b"abc" * 100
    for claimed in (299, 301, 2**40, 2**63):
        lying = honest[:6] + claimed.to_bytes(8, "little") + honest[14:]
        with pytest.raises(CorruptRecordsError):
            decompress(Codec.LZ4, lying, limit_bytes=limit_bytes)
    with pytest.raises(CorruptRecordsError):
        decompress(Codec.LZ4, honest + b"\0", limit_bytes=limit_bytes)
    with pytest.raises(CorruptRecordsError):
        decompress(Codec.LZ4, honest[:-5], limit_bytes=limit_bytes)
