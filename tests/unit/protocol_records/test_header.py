"""Headers: reading, walking, checking and patching in place."""

import struct

import pytest

from kavka.protocol.records import header
from kavka.protocol.records.batch import (
    BATCH_HEADER,
    HEADER_SIZE_BYTES,
    BatchHeader,
    Codec,
    Record,
    TimestampType,
    build_batch,
    exchange_head,
    iter_batch_headers,
    iter_records,
    patch_offsets,
    read_header,
    restamped_head,
    verify_crc,
)
from kavka.protocol.records.errors import CorruptRecordsError, TruncatedBatchError
from kavka.protocol.records.legacy import build_message_set

THREE = [Record(timestamp_ms=1000 + index, key=b"k", value=b"v" * 30) for index in range(3)]


def header_with(**fields: int) -> BatchHeader:
    return read_header(build_batch(THREE))._replace(**fields)


def batch_with(**fields: int) -> bytes:
    """A batch whose header lies in `fields`."""
    batch = build_batch(THREE)
    return BATCH_HEADER.pack(*header_with(**fields)) + batch[HEADER_SIZE_BYTES:]


def test_the_header_is_61_bytes() -> None:
    assert BATCH_HEADER.size == HEADER_SIZE_BYTES == 61


def test_positions_are_those_of_the_headers_fields() -> None:
    fields = BATCH_HEADER.format.lstrip(">")
    position_of = {name: struct.calcsize(f">{fields[:index]}") for index, name in enumerate(BatchHeader._fields)}
    assert position_of == {
        "base_offset": 0,
        "batch_length": header.BATCH_LENGTH_POSITION,
        "partition_leader_epoch": header.LEADER_EPOCH_POSITION,
        "magic": header.MAGIC_POSITION,
        "crc": header.CRC_POSITION,
        "attributes": header.ATTRIBUTES_POSITION,
        "last_offset_delta": header.LAST_OFFSET_DELTA_POSITION,
        "base_timestamp_ms": header.BASE_TIMESTAMP_POSITION,
        "max_timestamp_ms": header.MAX_TIMESTAMP_POSITION,
        "producer_id": header.PRODUCER_POSITION,
        "producer_epoch": header.PRODUCER_POSITION + 8,
        "base_sequence": header.PRODUCER_POSITION + 10,
        "count": header.COUNT_POSITION,
    }
    assert header.ATTRIBUTE_BITS_POSITION == header.ATTRIBUTES_POSITION + 1


def test_a_header_says_what_the_builder_was_told() -> None:
    batch = build_batch(
        THREE,
        base_offset=2**40,
        codec=Codec.LZ4,
        producer_id=2**50,
        producer_epoch=7,
        base_sequence=40,
        transactional=True,
        control=True,
        leader_epoch=9,
    )

    header = read_header(b"junk" + batch, 4)

    assert header.size_bytes == len(batch)
    assert (header.base_offset, header.last_offset, header.next_offset) == (2**40, 2**40 + 2, 2**40 + 3)
    assert (header.magic, header.codec, header.count, header.partition_leader_epoch) == (2, Codec.LZ4, 3, 9)
    assert (header.producer_id, header.producer_epoch) == (2**50, 7)
    assert (header.base_sequence, header.last_sequence) == (40, 42)
    assert (header.base_timestamp_ms, header.max_timestamp_ms) == (1000, 1002)
    assert header.timestamp_type is TimestampType.CREATE
    assert (header.is_transactional, header.is_control, header.has_delete_horizon) == (True, True, False)


def test_a_transactions_batch_is_told_by_one_bit_of_a_whole_header_of_magic_2() -> None:
    batch = build_batch(THREE, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)

    assert header.is_transactional(batch)
    assert not header.is_transactional(build_batch(THREE))
    assert not any(header.is_transactional(batch[:size]) for size in range(HEADER_SIZE_BYTES))
    assert not header.is_transactional(b"\xff" * 2 * HEADER_SIZE_BYTES)
    assert not header.is_transactional(None)


@pytest.mark.parametrize(
    ("base_sequence", "delta", "last"), [(-1, 5, -1), (0, 0, 0), (2**31 - 1, 0, 2**31 - 1), (2**31 - 1, 2, 1)]
)
def test_sequences_wrap_to_zero(base_sequence: int, delta: int, last: int) -> None:
    assert header_with(base_sequence=base_sequence, last_offset_delta=delta).last_sequence == last


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 48])
def test_a_length_below_a_header_is_corrupt(length: int) -> None:
    with pytest.raises(CorruptRecordsError) as caught:
        read_header(batch_with(batch_length=length))
    assert not isinstance(caught.value, TruncatedBatchError)


@pytest.mark.parametrize("magic", [-128, -1, 3, 127])
def test_an_unknown_magic_is_corrupt(magic: int) -> None:
    with pytest.raises(CorruptRecordsError, match="magic"):
        read_header(batch_with(magic=magic))


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_every_truncation_is_told_apart_from_corruption(magic: int) -> None:
    batch = build_batch(THREE) if magic == 2 else build_message_set(THREE[:1], magic)
    for cut in range(len(batch)):
        with pytest.raises(TruncatedBatchError):
            read_header(batch[:cut])
        with pytest.raises(TruncatedBatchError):
            read_header(b"before" + batch[:cut], 6)


def test_a_walk_meets_batches_of_all_magics_in_order() -> None:
    parts = [build_message_set(THREE, 0), build_batch(THREE, base_offset=3), build_message_set(THREE, 1, base_offset=6)]

    found = list(iter_batch_headers(b"".join(parts)))

    places = [(header.magic, header.base_offset) for _, header in found]
    assert places == [(0, 0), (0, 1), (0, 2), (2, 3), (1, 6), (1, 7), (1, 8)]
    assert [position for position, header in found if header.magic == 2] == [len(parts[0])]
    assert sum(header.size_bytes for _, header in found) == sum(map(len, parts))


def test_a_walk_over_a_fetched_slice_ends_before_the_batch_cut_off() -> None:
    whole = build_batch(THREE)
    for cut in range(1, len(whole)):
        data = whole + whole[:cut]
        assert [position for position, _ in iter_batch_headers(data, allow_truncated_tail=True)] == [0]
        with pytest.raises(TruncatedBatchError):
            list(iter_batch_headers(data))


def test_a_tolerant_walk_still_refuses_garbage() -> None:
    with pytest.raises(CorruptRecordsError):
        list(iter_batch_headers(build_batch(THREE) + batch_with(batch_length=3), allow_truncated_tail=True))


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_a_flipped_bit_anywhere_under_the_crc_is_found(magic: int) -> None:
    batch = bytearray(build_batch(THREE) if magic == 2 else build_message_set(THREE[:1], magic))
    header = read_header(batch)
    verify_crc(batch, 0, header)
    for position in range(17 if magic == 2 else 16, len(batch)):
        batch[position] ^= 0x10
        crc = struct.unpack_from(">I", batch, 17 if magic == 2 else 12)[0]
        with pytest.raises(CorruptRecordsError, match="CRC"):
            verify_crc(batch, 0, header._replace(crc=crc))
        batch[position] ^= 0x10


@pytest.mark.parametrize("kind", [bytearray, lambda data: memoryview(bytearray(data))])
def test_patched_offsets_leave_the_crc_right(kind: type[bytearray]) -> None:
    buffer = kind(b"xx" + build_batch(THREE))

    patch_offsets(buffer, 2, 2**45, 17)

    header = read_header(buffer, 2)
    verify_crc(buffer, 2, header)
    assert (header.base_offset, header.partition_leader_epoch) == (2**45, 17)
    assert [record.offset for record in iter_records(buffer, 2)] == [2**45, 2**45 + 1, 2**45 + 2]


@pytest.mark.parametrize("codec", Codec)
def test_log_append_time_counts_for_every_record(codec: Codec) -> None:
    buffer = memoryview(bytearray(build_batch(THREE, codec=codec, transactional=True)))

    exchange_head(buffer, restamped_head(buffer, TimestampType.LOG_APPEND, 5_000))

    header = read_header(buffer)
    verify_crc(buffer, 0, header)
    assert (header.timestamp_type, header.max_timestamp_ms) == (TimestampType.LOG_APPEND, 5_000)
    assert (header.codec, header.is_transactional) == (codec, True)
    assert {record.timestamp_ms for record in iter_records(buffer)} == {5_000}


def test_a_head_that_is_exchanged_comes_back() -> None:
    came = build_batch(THREE)
    buffer = bytearray(came)

    former = exchange_head(buffer, restamped_head(buffer, TimestampType.LOG_APPEND, 5_000))
    assert buffer != came
    exchange_head(buffer, former)

    assert buffer == came


def test_a_max_timestamp_put_right_leaves_the_records_alone() -> None:
    buffer = bytearray(build_batch(THREE))

    exchange_head(buffer, restamped_head(buffer, TimestampType.CREATE, 77))

    verify_crc(buffer, 0, read_header(buffer))
    assert read_header(buffer).max_timestamp_ms == 77
    assert [record.timestamp_ms for record in iter_records(buffer)] == [1000, 1001, 1002]
