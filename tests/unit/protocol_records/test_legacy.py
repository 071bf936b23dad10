"""Message sets of magic 0 and 1: reading, building, converting, and lies."""

import struct
from collections.abc import Callable
from contextlib import suppress
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka.protocol.records.batch import (
    Codec,
    ControlType,
    Record,
    TimestampType,
    build_batch,
    build_control_batch,
    iter_batch_headers,
    iter_records,
    read_header,
    verify_crc,
)
from kavka.protocol.records.compression import compress
from kavka.protocol.records.errors import CompressionLimitError, CorruptRecordsError, UnsupportedCodecError
from kavka.protocol.records.legacy import build_message_set, to_legacy, to_v2
from tests.support.examples import examples

OLD_CODECS = [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4]
FIELD = st.none() | st.binary(max_size=60)
RECORDS = st.lists(
    st.tuples(st.just(0), st.integers(-1, 2**62), FIELD, FIELD).map(lambda fields: Record(*fields)),
    min_size=1,
    max_size=20,
)
THREE = [Record(offset, 1000 + offset, b"k%d" % offset, b"v" * 30) for offset in (7, 9, 12)]


def read_all(data: bytes | memoryview) -> list[Record]:
    records: list[Record] = []
    for position, header in iter_batch_headers(data):
        verify_crc(data, position, header)
        records += iter_records(data, position)
    return records


def message(magic: int, attributes: int, value: bytes | None, offset: int = 0, key: bytes | None = None) -> bytes:
    """One message, its CRC right whatever else is wrong."""
    covered = struct.pack(">bb", magic, attributes) + (struct.pack(">q", 5) if magic == 1 else b"")
    for field in (key, value):
        covered += struct.pack(">i", -1 if field is None else len(field)) + (field or b"")
    return struct.pack(">qiI", offset, 4 + len(covered), crc32(covered)) + covered


@examples(60)
@given(RECORDS, st.sampled_from([0, 1]), st.sampled_from(OLD_CODECS), st.integers(0, 2**62))
def test_what_was_built_reads_back(records: list[Record], magic: int, codec: Codec, base_offset: int) -> None:
    data = build_message_set(records, magic, codec=codec, base_offset=base_offset)

    expected = [record._replace(offset=base_offset + index) for index, record in enumerate(records)]
    if magic == 0:
        expected = [record._replace(timestamp_ms=-1) for record in expected]
    assert read_all(data) == expected


@examples(60)
@given(RECORDS, st.sampled_from([0, 1]), st.sampled_from(OLD_CODECS))
def test_up_and_down_again_changes_nothing(records: list[Record], magic: int, codec: Codec) -> None:
    data = build_message_set(records, magic, codec=codec)
    assert to_legacy(to_v2(data), magic) == data


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", OLD_CODECS)
def test_gaps_between_offsets_survive(magic: int, codec: Codec) -> None:
    batch = build_batch(THREE, base_offset=5, keep_offsets=True, codec=codec)

    down = to_legacy(batch, magic)

    assert [record.offset for record in read_all(down)] == [7, 9, 12]
    assert [header.codec for _, header in iter_batch_headers(down)] == [codec] * (3 if codec == Codec.NONE else 1)


@pytest.mark.parametrize("codec", OLD_CODECS)
def test_log_append_time_survives_both_ways(codec: Codec) -> None:
    data = build_message_set(THREE, 1, codec=codec, timestamp_type=TimestampType.LOG_APPEND)

    batch = to_v2(data)

    assert read_header(batch).timestamp_type is TimestampType.LOG_APPEND
    assert {record.timestamp_ms for record in read_all(to_legacy(batch, 1))} == {1012}


def test_wrappers_and_plain_messages_become_one_batch() -> None:
    parts = [
        build_message_set(THREE, 0),
        build_message_set(THREE, 1, codec=Codec.GZIP),
        build_message_set(THREE, 0, codec=Codec.SNAPPY),
    ]

    batch = to_v2(b"".join(parts))

    header = read_header(batch)
    assert (header.count, header.last_offset, header.codec) == (9, 8, Codec.SNAPPY)
    assert [record.key for record in iter_records(batch)] == [b"k7", b"k9", b"k12"] * 3


def test_going_down_drops_what_has_no_place() -> None:
    marker = build_control_batch(
        ControlType.COMMIT, base_offset=3, timestamp_ms=1, producer_id=4, producer_epoch=0, coordinator_epoch=0
    )
    batch = build_batch([Record(0, 5, b"k", b"v", (("h", b"x"),))], transactional=True, producer_id=4)
    whole = build_message_set(THREE, 0)

    assert read_all(to_legacy(batch + marker + whole + batch[:-1], 1)) == [
        Record(0, 5, b"k", b"v"),
        *(record._replace(offset=index, timestamp_ms=-1) for index, record in enumerate(THREE)),
    ]


def test_going_down_starts_at_the_offset_asked_for_unless_compressed() -> None:
    plain = build_batch(THREE, base_offset=7, keep_offsets=True)
    packed = build_batch(THREE, base_offset=7, keep_offsets=True, codec=Codec.GZIP)

    assert [record.offset for record in read_all(to_legacy(plain, 1, first_offset=9))] == [9, 12]
    assert [record.offset for record in read_all(to_legacy(packed, 1, first_offset=9))] == [7, 9, 12]


def test_zstd_does_not_go_down() -> None:
    with pytest.raises(UnsupportedCodecError):
        to_legacy(build_batch(THREE, codec=Codec.ZSTD), 1)


@pytest.mark.parametrize("codec", OLD_CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_what_comes_before_a_batch_that_does_not_go_down_goes(magic: int, codec: Codec) -> None:
    first = build_batch(THREE[:1], base_offset=7, codec=codec)
    corrupt = build_batch(THREE[1:2], base_offset=8)[:-1] + b"\x01"  # claims -1 headers
    for second in (build_batch(THREE[1:2], base_offset=8, codec=Codec.ZSTD), corrupt):
        down = to_legacy(first + second + first, magic)

        assert [record.key for record in read_all(down)] == [b"k7"]


@pytest.mark.parametrize("codec", OLD_CODECS)
def test_no_more_batches_go_down_once_enough_records_have(codec: Codec) -> None:
    batches = [build_batch(THREE, base_offset=offset, codec=codec) for offset in (0, 3, 6, 9)]
    data = b"".join(batches)

    for enough, count in ((1, 3), (3, 3), (4, 6), (9, 9), (100, 12)):
        assert [record.offset for record in read_all(to_legacy(data, 1, enough_records=enough))] == list(range(count))


def test_going_down_goes_on_while_nothing_came_of_it() -> None:
    compacted = build_batch(THREE, base_offset=7, keep_offsets=True, last_offset=20)
    behind = build_batch(THREE[:1], base_offset=21)

    down = to_legacy(compacted + behind, 1, first_offset=13, enough_records=1)

    assert [record.offset for record in read_all(down)] == [21]


@pytest.mark.parametrize("codec", OLD_CODECS)
def test_no_more_batches_go_down_once_enough_bytes_came_of_it(codec: Codec) -> None:
    old = build_message_set(THREE[:1], 0)
    new = build_batch(THREE, codec=codec)
    first = len(to_legacy(new, 1))

    for enough, size in ((1, first), (first, first), (first + 1, first + len(old))):
        assert len(to_legacy(new + old + new + old, 1, enough_bytes=enough)) == size


def test_batches_that_stay_as_they_are_and_markers_do_not_count_as_records_that_went_down() -> None:
    old = build_message_set(THREE, 0, codec=Codec.GZIP)
    marker = build_control_batch(
        ControlType.COMMIT, base_offset=3, timestamp_ms=1, producer_id=4, producer_epoch=0, coordinator_epoch=0
    )
    new = build_batch(THREE)

    down = to_legacy(old + marker + old + new + new, 1, enough_records=3)

    assert [record.key for record in read_all(down)] == [b"k7", b"k9", b"k12"] * 3


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", OLD_CODECS)
def test_a_message_set_cut_anywhere_is_not_produced(magic: int, codec: Codec) -> None:
    data = build_message_set(THREE, magic, codec=codec)
    ends = {position for position, _ in iter_batch_headers(data)}
    for cut in set(range(len(data))) - (ends - {0}):
        with pytest.raises(CorruptRecordsError):
            to_v2(data[:cut])


LIES: dict[str, Callable[[int], bytes]] = {
    "empty": lambda _: b"",
    "a v2 batch": lambda _: build_batch(THREE),
    "wrong CRC": lambda magic: message(magic, 0, b"x")[:-1] + b"y",
    "key beyond the end": lambda magic: recomputed(message(magic, 0, b"x", key=b"k"), 18 + 8 * magic, 100),
    "negative rest": lambda magic: recomputed(message(magic, 0, b"x", key=b"k"), 23 + 8 * magic, 0),
    "wrapper without value": lambda magic: message(magic, Codec.GZIP, None),
    "wrapper of nothing": lambda magic: message(magic, Codec.GZIP, compress(Codec.GZIP, b"")),
    "wrapper of garbage": lambda magic: message(magic, Codec.GZIP, b"not gzip"),
    "unknown codec": lambda magic: message(magic, 5, b"x"),
    "zstd": lambda magic: message(magic, Codec.ZSTD, compress(Codec.ZSTD, message(magic, 0, b"x"))),
    "cut inside a wrapper": lambda magic: wrapper(magic, message(magic, 0, b"x")[:-1]),
    "other magic inside": lambda magic: wrapper(magic, message(1 - magic, 0, b"x")),
    "v2 inside": lambda magic: wrapper(magic, build_batch(THREE)),
    "wrapper inside": lambda magic: wrapper(magic, wrapper(magic, message(magic, 0, b"x"))),
    "wrong CRC inside": lambda magic: wrapper(magic, message(magic, 0, b"x")[:-1] + b"y"),
}


def wrapper(magic: int, inner: bytes) -> bytes:
    return message(magic, Codec.GZIP, compress(Codec.GZIP, inner))


def recomputed(data: bytes, position: int, field: int) -> bytes:
    """`data` with another length at `position` and the CRC to match."""
    changed = bytearray(data)
    struct.pack_into(">i", changed, position, field)
    struct.pack_into(">I", changed, 12, crc32(changed[16:]))
    return bytes(changed)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("lie", LIES)
def test_a_message_set_that_lies_is_refused(lie: str, magic: int) -> None:
    with pytest.raises(CorruptRecordsError):
        to_v2(LIES[lie](magic))


def test_all_wrappers_of_a_request_share_one_limit() -> None:
    one = build_message_set([Record(value=bytes(1000))] * 10, 1, codec=Codec.GZIP)

    assert read_header(to_v2(one * 3, limit_bytes=40_000)).count == 30
    with pytest.raises(CompressionLimitError):
        to_v2(one * 4, limit_bytes=40_000)


@given(st.binary(max_size=120), st.sampled_from([0, 1]), st.sampled_from(OLD_CODECS))
def test_random_insides_are_read_or_refused(inner: bytes, magic: int, codec: Codec) -> None:
    with suppress(CorruptRecordsError):
        to_v2(message(magic, codec, compress(codec, inner, magic=magic)))


@given(st.data(), st.sampled_from([0, 1]), st.sampled_from(OLD_CODECS))
def test_a_changed_byte_is_never_produced_unseen(data: st.DataObject, magic: int, codec: Codec) -> None:
    good = build_message_set(THREE, magic, codec=codec)
    position = data.draw(st.integers(8, len(good) - 1))
    changed = bytearray(good)
    changed[position] ^= data.draw(st.integers(1, 255))
    try:
        batch = to_v2(changed)
    except CorruptRecordsError:
        return
    assert read_all(batch) == read_all(to_v2(good)), "only inner offsets of plain messages lie outside the CRC"


@given(st.binary(max_size=200))
def test_random_bytes_going_down_are_refused_or_dropped(data: bytes) -> None:
    with suppress(CorruptRecordsError):
        to_legacy(data, 1)


def test_no_message_set_has_magic_2() -> None:
    with pytest.raises(ValueError, match="magic"):
        build_message_set(THREE, 2)
