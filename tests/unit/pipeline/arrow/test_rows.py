"""Rows have what a consumer's records have: every field of every record, nulls where there is nothing."""

import datetime
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kavka.client.consumer.columns import RecordColumns
from kavka.client.consumer.decoding import Rules, decoded
from kavka.client.topic_partition import TopicPartition
from kavka.pipeline.arrow.rows import FIELDS, record_batch
from kavka.protocol.records.batch import Record, TimestampType, build_batch, iter_records, read_header
from kavka.protocol.records.compression import Codec

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
VISITS = TopicPartition("visits", 3)
EVERY = [field.name for field in FIELDS]
nullable = st.none() | st.binary(max_size=300)
records = st.builds(
    Record,
    timestamp_ms=st.integers(-(2**45), 2**47) | st.just(-1),
    key=nullable,
    value=nullable,
    headers=st.lists(st.tuples(st.text(max_size=8), nullable), max_size=3).map(tuple),
)
batches = st.builds(
    build_batch,
    st.lists(records, min_size=1, max_size=40),
    codec=st.sampled_from(list(Codec)),
    timestamp_type=st.sampled_from(list(TimestampType)),
)


def columns_of(data: bytes, first_offset: int = 0) -> Iterator[RecordColumns]:
    for stretch in decoded(VISITS, data, first_offset, (), Rules(only_columns=True), 1):
        if len(stretch):
            yield stretch.columns(0, len(stretch))


def rows_of(data: bytes) -> list[dict[str, object]]:
    return [row for columns in columns_of(data) for row in record_batch(columns, EVERY).to_pylist()]


def expected_row(record: Record, kind: TimestampType) -> dict[str, object]:
    time = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(milliseconds=record.timestamp_ms)
    headers = [{"key": key, "value": value} for key, value in record.headers] or None
    places = {"topic": "visits", "partition": 3, "offset": record.offset, "timestamp": time, "timestampType": int(kind)}
    return {"key": record.key, "value": record.value, **places, "headers": headers}


def stored(made: Sequence[bytes]) -> bytes:
    """The batches one behind the other, as a log has them."""
    log = bytearray()
    offset = 0
    for batch in made:
        header = read_header(batch)
        log += offset.to_bytes(8, "big") + batch[8:]
        offset += header.last_offset_delta + 1
    return bytes(log)


@PATIENT
@given(st.lists(batches, min_size=1, max_size=6))
def test_rows_have_all_that_records_have(made: list[bytes]) -> None:
    data = stored(made)
    expected = []
    position = 0
    while position < len(data):
        header = read_header(data, position)
        expected += [expected_row(record, header.timestamp_type) for record in iter_records(data, position)]
        position += header.size_bytes

    assert rows_of(data) == expected


def test_columns_come_as_they_are_wanted_and_only_those() -> None:
    (columns,) = columns_of(build_batch([Record(value=b"v", timestamp_ms=5)]))
    batch = record_batch(columns, ["offset", "value"])
    assert batch.schema.names == ["offset", "value"]
    assert batch.to_pylist() == [{"offset": 0, "value": b"v"}]


@pytest.mark.parametrize("wanted", [["value", "size"], []])
def test_a_name_that_is_no_column_is_refused(wanted: list[str]) -> None:
    (columns,) = columns_of(build_batch([Record(value=b"v", timestamp_ms=5)]))
    with pytest.raises(ValueError, match="column"):
        record_batch(columns, wanted)


def test_timestamps_beyond_microseconds_are_the_nearest_there_are() -> None:
    latest, earliest = 2**63 - 1, -(2**63)
    data = stored([build_batch([Record(timestamp_ms=time)]) for time in (latest, earliest)])
    times = pa.concat_arrays([record_batch(columns, ["timestamp"])[0] for columns in columns_of(data)])
    assert times.cast(pa.int64()).to_pylist() == [9_223_372_036_854_775_000, -9_223_372_036_854_775_000]


def test_header_keys_that_are_no_text_read_as_java_reads_them() -> None:
    key = b"a\xffb".decode("utf-8", "surrogateescape")
    (columns,) = columns_of(build_batch([Record(headers=((key, b"\xff"),), timestamp_ms=1)]))
    assert record_batch(columns, ["headers"]).to_pylist() == [{"headers": [{"key": "a\ufffdb", "value": b"\xff"}]}]


def test_rows_outlive_the_bytes_they_were_cut_from() -> None:
    data = bytearray(build_batch([Record(key=b"key", value=b"value", timestamp_ms=1)]))
    (columns,) = columns_of(bytes(data))
    body = bytearray(columns.body)
    fields = (columns.offsets, columns.timestamps_ms, columns.key_starts, columns.key_sizes)
    places = (*fields, columns.value_starts, columns.value_sizes, columns.header_starts, columns.ends)
    batch = record_batch(RecordColumns(VISITS, None, TimestampType.CREATE, memoryview(body), places), EVERY)
    body[:] = bytes(len(body))
    assert batch.select(["key", "value"]).to_pylist() == [{"key": b"key", "value": b"value"}]
