"""What a consumer gives out of an answer's bytes: the same by rows and by columns, without what is not for its user."""

import random
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kavka.client.consumer import decoding
from kavka.client.consumer.decoding import CorruptBatchError, Rules, decoded, survey
from kavka.client.consumer.records import ConsumerRecord, ConsumerRecords
from kavka.client.consumer.stretches import DeserializationError, Deserializers, Piece, Stretch
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.records.batch import ControlType, Record, TimestampType, build_batch, build_control_batch
from kavka.protocol.records.compression import Codec
from kavka.protocol.records.header import write_crc
from kavka.protocol.records.legacy import build_message_set

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
VISITS = TopicPartition("visits", 3)
BOTH = pytest.mark.parametrize("only_columns", [False, True], ids=["rows", "columns"])

nullable = st.none() | st.binary(max_size=200)
records = st.builds(
    Record,
    timestamp_ms=st.integers(-1, 2**42),
    key=nullable,
    value=nullable,
    headers=st.lists(st.tuples(st.text(max_size=8), nullable), max_size=3).map(tuple),
)


def read(data: bytes, offset: int = 0, *, only_columns: bool = False, **rules: Any) -> list[ConsumerRecord]:
    return [
        record for stretch in stretches(data, offset, (), only_columns=only_columns, **rules) for record in of(stretch)
    ]


def stretches(
    data: bytes,
    offset: int = 0,
    aborted: tuple[tuple[int, int], ...] = (),
    *,
    only_columns: bool = False,
    **rules: Any,
) -> list[Stretch]:
    found = survey(memoryview(data))
    chosen = Rules(only_columns=only_columns)._replace(**rules)
    return list(decoded(VISITS, data[: found.size_bytes], offset, aborted, chosen, found.records))


def of(stretch: Stretch) -> list[ConsumerRecord]:
    return Piece(VISITS, stretch, 0, len(stretch), Deserializers()).records() if len(stretch) else []


def values(found: list[ConsumerRecord]) -> list[bytes]:
    return [record.value for record in found]


@PATIENT
@given(
    st.lists(st.lists(records, min_size=1, max_size=20), min_size=1, max_size=4),
    st.sampled_from(list(Codec)),
    st.sampled_from(list(TimestampType)),
    st.booleans(),
)
def test_records_are_given_out_as_they_were_written(
    batches: list[list[Record]], codec: Codec, timestamp_type: TimestampType, only_columns: bool
) -> None:
    data = b"".join(
        build_batch(batch, base_offset=100 * number, codec=codec, timestamp_type=timestamp_type)
        for number, batch in enumerate(batches)
    )
    found = read(data, only_columns=only_columns)
    flat = [
        (100 * number + place, record) for number, batch in enumerate(batches) for place, record in enumerate(batch)
    ]
    assert [(each.offset, each.key, each.value, each.headers) for each in found] == [
        (offset, record.key, record.value, tuple(record.headers)) for offset, record in flat
    ]
    assert {(each.topic, each.partition, each.timestamp_type) for each in found} == {("visits", 3, timestamp_type)}
    for each, (_, record) in zip(found, flat, strict=True):
        assert each.serialized_key_size == (-1 if record.key is None else len(record.key))
        assert each.serialized_value_size == (-1 if record.value is None else len(record.value))
        if timestamp_type is TimestampType.CREATE:
            assert each.timestamp_ms == record.timestamp_ms


@BOTH
def test_reading_begins_at_the_asked_offset_within_a_batch(only_columns: bool) -> None:
    data = build_batch([Record(value=b"%d" % number) for number in range(10)], base_offset=50)
    assert [record.offset for record in read(data, 57, only_columns=only_columns)] == [57, 58, 59]


@BOTH
def test_where_to_read_on_is_after_the_batch_though_its_last_records_are_compacted_away(only_columns: bool) -> None:
    kept = [Record(offset=offset, value=b"x") for offset in (3, 7)]
    data = bytearray(build_batch(kept, base_offset=3, keep_offsets=True))
    data[23:27] = (20).to_bytes(4, "big")
    write_crc(data, 0)
    (stretch,) = stretches(bytes(data), only_columns=only_columns)
    assert [stretch.offset_after(count) for count in (1, 2)] == [4, 24]
    assert survey(memoryview(data)).next_offset == 24


@BOTH
def test_leader_epochs_and_kinds_of_timestamps_part_the_stretches(only_columns: bool) -> None:
    batches = []
    for number, (epoch, kind) in enumerate([(4, 0), (4, 0), (5, 0), (5, 1)]):
        batch = bytearray(build_batch([Record(value=b"x")], base_offset=number, timestamp_type=TimestampType(kind)))
        batch[12:16] = epoch.to_bytes(4, "big")
        batches.append(bytes(batch))
    found = stretches(b"".join(batches), only_columns=only_columns)
    assert [(len(each), each.leader_epoch, each.timestamp_type, each.next_offset) for each in found] == [
        (2, 4, 0, 2),
        (1, 5, 0, 3),
        (1, 5, 1, 4),
    ]


@BOTH
def test_control_batches_and_aborted_transactions_are_left_out(only_columns: bool) -> None:
    def transactional(producer_id: int, offset: int, value: bytes) -> bytes:
        records = [Record(value=value)] * 2
        return build_batch(
            records, base_offset=offset, producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True
        )

    def marker(producer_id: int, offset: int, kind: ControlType) -> bytes:
        return build_control_batch(
            kind, base_offset=offset, producer_id=producer_id, producer_epoch=0, timestamp_ms=0, coordinator_epoch=0
        )

    data = b"".join(
        [
            transactional(7, 0, b"aborted"),
            transactional(8, 2, b"committed"),
            build_batch([Record(value=b"plain")], base_offset=4),
            marker(8, 5, ControlType.COMMIT),
            transactional(7, 6, b"aborted too"),
            marker(7, 8, ControlType.ABORT),
            transactional(7, 9, b"the next one"),
            marker(7, 11, ControlType.COMMIT),
        ]
    )
    found = stretches(data, 0, ((7, 0),), only_columns=only_columns)
    kept = [record.value for stretch in found for record in of(stretch)]
    assert kept == [b"committed"] * 2 + [b"plain"] + [b"the next one"] * 2
    assert found[-1].next_offset == 12
    uncommitted = read(data, only_columns=only_columns)
    assert len(uncommitted) == 9


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.LZ4])
@BOTH
def test_old_formats_are_read_before_and_after_new_ones(magic: int, codec: Codec, only_columns: bool) -> None:
    old = [Record(timestamp_ms=5, key=b"k", value=b"%d" % number) for number in range(5)]
    data = build_message_set(old, magic, base_offset=10, codec=codec) + build_batch(
        [Record(value=b"new")], base_offset=15
    )
    found = read(data, 12, only_columns=only_columns)
    assert [(record.offset, record.value) for record in found] == [(12, b"2"), (13, b"3"), (14, b"4"), (15, b"new")]
    assert found[0].timestamp_ms == (5 if magic else -1)
    assert found[0].leader_epoch is None


@BOTH
@pytest.mark.parametrize("skip", [False, True])
def test_a_corrupt_batch_ends_reading_after_what_is_before_it_or_is_skipped_if_asked(
    only_columns: bool, skip: bool
) -> None:
    batches = [bytearray(build_batch([Record(value=b"%d" % n)] * 3, base_offset=3 * n)) for n in range(3)]
    batches[1][-2] ^= 1
    data = b"".join(batches)
    several = decoded(VISITS, data, 0, (), Rules(only_columns=only_columns, skip_corrupt=skip), 9)
    if skip:
        found = [record for stretch in several for record in of(stretch)]
        assert [record.offset for record in found] == [0, 1, 2, 6, 7, 8]
        return
    found = of(next(several))
    assert [record.offset for record in found] == [0, 1, 2]
    with pytest.raises(CorruptBatchError, match="offset 3 of visits-3") as caught:
        next(several)
    assert (caught.value.offset, caught.value.next_offset) == (3, 6)


@BOTH
def test_a_checksum_is_not_looked_at_where_that_is_not_asked(only_columns: bool) -> None:
    data = bytearray(build_batch([Record(value=b"v")]))
    data[17] ^= 1
    assert values(read(bytes(data), only_columns=only_columns, check_crcs=False)) == [b"v"]


@BOTH
def test_batches_that_lead_nowhere_are_corrupt(only_columns: bool) -> None:
    data = build_batch([Record(value=b"v")], base_offset=3)
    with pytest.raises(CorruptBatchError):
        read(data, 9, only_columns=only_columns)


@PATIENT
@given(st.binary(max_size=300), st.booleans())
def test_random_bytes_end_in_records_or_a_corrupt_batch(data: bytes, only_columns: bool) -> None:
    found = survey(memoryview(data))
    assert found.size_bytes <= len(data)
    with suppress(CorruptBatchError):
        list(decoded(VISITS, data, 0, (), Rules(only_columns=only_columns), found.records))


def test_a_batch_that_is_cut_off_is_not_counted() -> None:
    whole = build_batch([Record(value=b"v")] * 2, base_offset=4)
    assert survey(memoryview(whole + whole[:-1])) == (len(whole), 6, 2, -1)
    assert survey(memoryview(whole[:-1])) == (0, -1, 0, -1)


@BOTH
def test_columns_say_what_records_say(only_columns: bool) -> None:
    chance = random.Random(7)
    written = [
        Record(
            key=chance.choice([None, b"", b"key"]),
            value=chance.choice([None, b"value"]),
            headers=[("h", b"1")] * chance.randrange(3),
        )
        for _ in range(300)
    ]
    (stretch,) = stretches(build_batch(written), only_columns=only_columns)
    assert len(stretch) == 300
    columns = stretch.columns(100, 200)
    part = Piece(VISITS, stretch, 100, 200, Deserializers()).records()
    assert columns.offsets.tolist() == [record.offset for record in part]
    assert columns.timestamps_ms.tolist() == [record.timestamp_ms for record in part]
    assert columns.keys() == [record.key for record in part]
    assert columns.values() == [record.value for record in part]
    assert [columns.headers(number) for number in range(100)] == [record.headers for record in part]
    assert columns.value_sizes.tolist() == [record.serialized_value_size for record in part]


def test_large_answers_are_decoded_by_columns_and_small_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    data = build_batch([Record(value=b"v")] * 500)
    ways = []
    for limit in (501, 500):
        monkeypatch.setattr(decoding, "COLUMNS_FROM", limit)
        ways += [type(stretch).__name__ for stretch in stretches(data)]
    assert ways == ["RowStretch", "ColumnStretch"]


@BOTH
def test_deserializers_see_topic_and_headers_and_a_failure_says_which_record(only_columns: bool) -> None:
    data = build_batch([Record(key=b"%d" % n, value=None, headers=[("h", b"%d" % n)]) for n in range(5)])
    (stretch,) = stretches(data, only_columns=only_columns)

    def of_key(topic: str, headers: Any, key: bytes | None) -> object:
        if key == b"3":
            raise ValueError("three")
        return topic, tuple(headers), key

    good = Piece(VISITS, stretch, 0, 3, Deserializers(key=of_key)).records()
    assert good[2].key == ("visits", (("h", b"2"),), b"2")
    with pytest.raises(DeserializationError) as caught:
        Piece(VISITS, stretch, 1, 5, Deserializers(key=of_key, value=lambda *_: None)).records()
    assert (caught.value.number, caught.value.of_key) == (2, True)
    assert isinstance(caught.value.__cause__, ValueError)


def test_polled_records_are_a_sequence_made_when_looked_at() -> None:
    (stretch,) = stretches(build_batch([Record(value=b"%d" % n) for n in range(6)]))
    other = TopicPartition("visits", 4)
    none = Deserializers()
    polled = ConsumerRecords([Piece(VISITS, stretch, 0, 4, none), Piece(other, stretch, 4, 6, none)])
    assert len(polled) == 6
    assert polled[-1].value == b"5"
    assert polled[0] is polled[0]
    assert values(list(polled[1:3])) == [b"1", b"2"]
    assert {key: len(rows) for key, rows in polled.by_partition().items()} == {VISITS: 4, other: 2}
    assert all(first.offset < second.offset for first, second in pairwise(polled))


def test_a_record_says_its_headers_by_name_and_prints_them() -> None:
    (record,) = read(build_batch([Record(value=b"v", headers=[("a", b"1"), ("b", None), ("a", b"2")])]))
    assert record.header("a") == b"2"
    assert record.header("c") is None
    assert record.topic_partition == VISITS
    assert "headers=(('a', b'1'), ('b', None), ('a', b'2'))" in repr(record)
