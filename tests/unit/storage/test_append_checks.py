"""What a leader refuses, and with which code."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka.protocol.errors import ErrorCode
from kavka.protocol.records.batch import (
    Codec,
    Record,
    build_batch,
    build_control_batch,
    exchange_head,
    read_header,
    verify_crc,
)
from kavka.protocol.records.builder import ControlType
from kavka.protocol.records.header import BATCH_HEADER, TimestampType, write_crc
from kavka.storage.append_result import AppendError, Origin
from kavka.storage.log_validator import AppendRules, check_batch, unpacked_limit_bytes
from kavka.storage.rewrite import fit, records_ahead
from tests.support.partition_logs import START_MS, batch_of, topic_config

FIELDS = (
    "base_offset",
    "length",
    "leader_epoch",
    "magic",
    "crc",
    "attributes",
    "last_offset_delta",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "count",
)


def rules(**overrides: object) -> AppendRules:
    return AppendRules(topic_config(**overrides), validate_all_records=False)


def with_fields(batch: bytearray, **fields: int) -> bytearray:
    """The batch with header fields that lie, and a CRC that fits them."""
    values = dict(zip(FIELDS, BATCH_HEADER.unpack_from(batch), strict=True))
    BATCH_HEADER.pack_into(batch, 0, *(values | fields).values())
    if "crc" not in fields and "length" not in fields:
        write_crc(batch, 0)
    return batch


def refusal(
    batch: bytearray, *, zstd_allowed: bool = True, origin: Origin = Origin.CLIENT, **overrides: Any
) -> ErrorCode:
    with pytest.raises(AppendError) as caught:
        check_batch(batch, rules(**overrides), START_MS, origin, zstd_allowed)
    return caught.value.code


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"magic": 1}, ErrorCode.INVALID_RECORD),
        ({"magic": 3}, ErrorCode.CORRUPT_MESSAGE),
        ({"length": 10_000}, ErrorCode.INVALID_RECORD),
        ({"length": -1}, ErrorCode.CORRUPT_MESSAGE),
        ({"length": 49}, ErrorCode.INVALID_RECORD),
        ({"crc": 1}, ErrorCode.CORRUPT_MESSAGE),
        ({"attributes": 5}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"attributes": 0x20}, ErrorCode.INVALID_RECORD),
        ({"attributes": 0x10}, ErrorCode.INVALID_RECORD),
        ({"count": 0}, ErrorCode.INVALID_RECORD),
        ({"count": -1}, ErrorCode.INVALID_RECORD),
        ({"count": 3}, ErrorCode.INVALID_RECORD),
        ({"last_offset_delta": -1, "count": 0}, ErrorCode.INVALID_RECORD),
        ({"base_offset": 5}, ErrorCode.INVALID_RECORD),
        ({"producer_id": 5}, ErrorCode.INVALID_RECORD),
        ({"producer_id": 5, "producer_epoch": 0}, ErrorCode.INVALID_RECORD),
        ({"producer_id": 5, "base_sequence": 0}, ErrorCode.INVALID_RECORD),
    ],
)
def test_a_header_that_lies_is_refused(fields: dict[str, int], code: ErrorCode) -> None:
    assert refusal(with_fields(batch_of(b"a", b"b"), **fields)) == code


@pytest.mark.parametrize("size", [0, 1, 12, 60])
def test_too_few_bytes_are_refused(size: int) -> None:
    assert refusal(batch_of(b"a")[:size]) == ErrorCode.INVALID_RECORD


def test_two_batches_are_refused() -> None:
    assert refusal(batch_of(b"a") + batch_of(b"b")) == ErrorCode.INVALID_RECORD


def test_zstd_is_refused_where_the_request_is_too_old_for_it() -> None:
    assert refusal(batch_of(b"a", codec=Codec.ZSTD), zstd_allowed=False) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert check_batch(batch_of(b"a", codec=Codec.ZSTD), rules(), START_MS, Origin.CLIENT, True)


def test_sizes_are_bounded_by_topic_and_segment() -> None:
    assert refusal(batch_of(b"x" * 1000), max_message_bytes=500) == ErrorCode.MESSAGE_TOO_LARGE
    assert refusal(batch_of(b"x" * 1000), segment_bytes=500) == ErrorCode.RECORD_LIST_TOO_LARGE


def test_only_the_coordinator_writes_markers() -> None:
    marker = bytearray(
        build_control_batch(
            ControlType.COMMIT, timestamp_ms=START_MS, producer_id=5, producer_epoch=0, coordinator_epoch=0
        )
    )
    assert refusal(marker) == ErrorCode.INVALID_RECORD
    assert check_batch(marker, rules(), START_MS, Origin.COORDINATOR, True)


def test_a_time_too_far_ahead_is_refused_and_named() -> None:
    batch = batch_of(b"a", b"b", timestamp_ms=START_MS + 1000)
    with pytest.raises(AppendError) as caught:
        check_batch(batch, rules(message_timestamp_after_max_ms=1000), START_MS, Origin.CLIENT, True)
    assert caught.value.code == ErrorCode.INVALID_TIMESTAMP
    assert caught.value.message == "One or more records have been rejected due to invalid timestamp"
    assert [index for index, _ in caught.value.record_errors] == [1]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_all_records_too_far_ahead_are_found_for_the_answer(codec: Codec) -> None:
    ahead = rules(message_timestamp_after_max_ms=1000)
    times = (START_MS + 1001, START_MS + 1000, START_MS + 1002)
    batch = bytearray(build_batch([Record(timestamp_ms=each, value=b"v") for each in times], codec=codec))
    assert [index for index, _ in records_ahead(batch, ahead, START_MS)] == [0, 2]
    assert records_ahead(batch[:-1], ahead, START_MS) == ()


def test_a_time_too_far_back_is_found_by_walking_the_records() -> None:
    old = rules(message_timestamp_before_max_ms=1000)
    with pytest.raises(AppendError) as caught:
        fit(batch_of(b"a", b"b", timestamp_ms=START_MS - 1001), old, START_MS)
    assert caught.value.code == ErrorCode.INVALID_TIMESTAMP
    assert caught.value.message == "One or more records have been rejected due to invalid timestamp"
    assert [index for index, _ in caught.value.record_errors] == [0]


def rejection(batch: bytearray, **overrides: object) -> AppendError:
    with pytest.raises(AppendError) as caught:
        fit(batch, rules(**overrides), START_MS)
    return caught.value


def test_records_without_key_are_all_named_on_compacted_topics_and_the_first_error_gives_the_code() -> None:
    records = [Record(timestamp_ms=START_MS, key=key) for key in (b"k", None, b"k", None)]
    failure = rejection(bytearray(build_batch(records)), cleanup_policy="compact")
    assert failure.code == ErrorCode.INVALID_RECORD
    assert [index for index, _ in failure.record_errors] == [1, 3]


@pytest.mark.parametrize("overrides", [{"cleanup_policy": "compact"}, {"compression_type": "gzip"}])
def test_offset_deltas_with_a_gap_are_refused_where_records_are_looked_at(overrides: dict[str, object]) -> None:
    gapped = bytearray(build_batch([Record(offset=0, key=b"k"), Record(offset=2, key=b"k")], keep_offsets=True))
    failure = rejection(gapped, **overrides)
    assert failure.code == ErrorCode.INVALID_RECORD
    assert [index for index, _ in failure.record_errors] == [1]


def test_a_wrong_largest_timestamp_is_put_right_where_records_are_looked_at() -> None:
    batch = with_fields(batch_of(b"a", b"b"), max_timestamp=START_MS + 500)
    came = bytes(batch)
    records, head = fit(batch, rules(cleanup_policy="compact"), START_MS)
    assert bytes(records) == came
    assert head is not None
    exchange_head(batch, head)
    assert read_header(batch).max_timestamp_ms == START_MS + 1
    verify_crc(batch, 0, read_header(batch))


def test_a_batch_that_unpacks_to_too_much_is_too_large_so_that_producers_split_it() -> None:
    bomb = batch_of(bytes(40 << 20), codec=Codec.GZIP)
    assert rejection(bomb, cleanup_policy="compact").code == ErrorCode.MESSAGE_TOO_LARGE
    assert rejection(bomb, compression_type="zstd").code == ErrorCode.MESSAGE_TOO_LARGE
    assert fit(bomb, rules(cleanup_policy="compact", max_message_bytes=2 << 20), START_MS) == (bomb, None)


@pytest.mark.parametrize(
    ("max_message_bytes", "limit"),
    [(1, 32 << 20), (1 << 20, 32 << 20), (2 << 20, 64 << 20), (100 << 20, 256 << 20), (1 << 30, 1 << 30)],
)
def test_what_a_batch_may_unpack_to_follows_the_size_that_it_may_have(max_message_bytes: int, limit: int) -> None:
    assert unpacked_limit_bytes(max_message_bytes) == limit


def test_a_producer_may_not_claim_log_append_time() -> None:
    batch = batch_of(b"a", timestamp_type=TimestampType.LOG_APPEND)
    assert refusal(batch, message_timestamp_type="LogAppendTime") == ErrorCode.INVALID_TIMESTAMP


def test_records_that_cannot_be_read_are_found_where_all_are_validated() -> None:
    batch = batch_of(b"a", b"b")
    batch[61] = 0xFF
    write_crc(batch, 0)
    everything = AppendRules(topic_config(), validate_all_records=True)
    check_batch(batch, everything, START_MS, Origin.CLIENT, True)
    with pytest.raises(AppendError) as caught:
        fit(batch, everything, START_MS)
    assert caught.value.code == ErrorCode.INVALID_RECORD


@given(st.binary(max_size=200))
def test_random_bytes_are_refused_with_a_code(data: bytes) -> None:
    with pytest.raises(AppendError):
        check_batch(bytearray(data), rules(), START_MS, Origin.CLIENT, True)


@given(st.data())
def test_no_changed_byte_passes_unseen(data: st.DataObject) -> None:
    batch = batch_of(b"some value", b"another", producer_id=1, producer_epoch=0, base_sequence=0)
    position = data.draw(st.integers(16, len(batch) - 1))
    batch[position] ^= data.draw(st.integers(1, 255))
    with pytest.raises(AppendError):
        check_batch(batch, rules(), START_MS, Origin.CLIENT, True)
