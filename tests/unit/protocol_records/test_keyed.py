"""Keys and values read without their records are the records' keys and values."""

import random

import pytest

from kavka.protocol.records.batch import Codec, Record, build_batch, iter_records, patch_offsets, read_header
from kavka.protocol.records.errors import CorruptRecordsError
from kavka.protocol.records.keyed import keys_and_values
from kavka.protocol.records.legacy import build_message_set

SIZES = (None, 0, 1, 30, 63, 64, 65, 126, 127, 128, 8_000, 8_190, 8_192, 16_383, 16_384, 20_000)


def read(data: bytes) -> list[tuple[int, bytes | None, bytes | None]]:
    return list(keys_and_values(data, 0, read_header(data)))


def read_as_records(data: bytes) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.offset, record.key, record.value) for record in iter_records(data)]


def blob(size: int | None) -> bytes | None:
    return None if size is None else random.Random(size).randbytes(size)


@pytest.mark.parametrize("value_size", SIZES)
@pytest.mark.parametrize("key_size", SIZES)
def test_a_single_record_of_any_size_is_read(key_size: int | None, value_size: int | None) -> None:
    record = Record(timestamp_ms=5, key=blob(key_size), value=blob(value_size))
    data = bytearray(build_batch([record]))
    patch_offsets(data, 0, 77, 1)

    assert read(bytes(data)) == [(77, record.key, record.value)]
    assert read(bytes(data) + b"what follows") == [(77, record.key, record.value)]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_batches_of_all_forms_are_read(codec: int) -> None:
    records = [
        Record(timestamp_ms=n, key=b"k%d" % n, value=None if n % 2 else b"v", headers=(("h", b""),)) for n in range(5)
    ]
    forms = [build_batch(records, codec=codec), build_batch(records[:1], codec=codec), build_batch([], last_offset=3)]
    forms += [build_message_set(records[:1], magic, codec=codec) for magic in (0, 1)]

    for data in forms:
        assert read(data) == read_as_records(data)


def test_damage_is_found_as_records_find_it() -> None:
    dice = random.Random(3)
    good = build_batch([Record(timestamp_ms=5, key=b"key", value=b"v" * 100)])
    for _ in range(5_000):
        data = bytearray(good)
        data[dice.randrange(61, len(data))] = dice.randrange(256)
        try:
            expected = read_as_records(bytes(data))
        except CorruptRecordsError:
            with pytest.raises(CorruptRecordsError):
                read(bytes(data))
        else:
            assert read(bytes(data)) == expected


@pytest.mark.parametrize("odd", [None, 0, 63, 64, 100, 199])
def test_a_long_batch_may_hold_a_record_that_is_not_plain(odd: int | None) -> None:
    records = [
        Record(timestamp_ms=n, key=b"k%d" % n, value=b"v" * n, headers=(("h", b"x"),) if n == odd else ())
        for n in range(200)
    ]
    data = build_batch(records)

    assert read(data) == read_as_records(data)


@pytest.mark.parametrize("change", [1, -1])
def test_a_batch_whose_count_lies_is_refused(change: int) -> None:
    data = bytearray(build_batch([Record(timestamp_ms=0, key=b"k", value=b"v")] * 70))
    data[57:61] = (70 + change).to_bytes(4, "big")

    with pytest.raises(CorruptRecordsError):
        read(bytes(data))
