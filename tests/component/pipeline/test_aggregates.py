"""Aggregates merged batch by batch are those of all rows at once; late rows are told by the stored watermark."""

import json
import time
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    DayTimeIntervalType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    YearMonthIntervalType,
)

from kavka.pipeline.jobs.aggregate import Aggregation, aggregation_of, next_state, updates
from kavka.pipeline.jobs.measures import check_types, measure, merged
from kavka.pipeline.jobs.states import Note, State, States
from kavka.pipeline.jobs.windows import NO_WATERMARK_US, Windows, sayable_us
from kavka.pipeline.running.sink import SinkError
from kavka.pipeline.running.tables import SettingError, Table

WINDOW_US = 10
DELAY_US = 15
WHAT = Aggregation(
    "time",
    Windows(WINDOW_US, WINDOW_US),
    DELAY_US,
    ("site",),
    (measure("visits", "count"), measure("bytes", "sum(bytes)"), measure("mean", "avg(bytes)")),
)
Event = tuple[int, str | None, int]
EVENTS = st.tuples(st.integers(0, 200), st.sampled_from(["a", "b", None]), st.integers(-5, 5))
BATCHES = st.lists(st.lists(EVENTS, max_size=12), max_size=8)


def counted(events: list[Event], watermark_us: int) -> pyarrow.Table:
    """What Spark makes of a batch: a row a group, and one of late rows."""
    groups: dict[tuple[bool, int | None, str | None], list[Event]] = defaultdict(list)
    for time_us, site, size in events:
        start = time_us - time_us % WINDOW_US
        is_late = start + WINDOW_US <= watermark_us
        groups[(True, None, None) if is_late else (False, start, site)].append((time_us, site, size))
    rows = [
        {
            "_late": is_late,
            "_start_us": start,
            "site": site,
            "visits": len(found),
            "bytes": sum(size for _, _, size in found),
            "mean.sum": float(sum(size for _, _, size in found)),
            "mean.count": len(found),
            "_rows": len(found),
            "_latest_us": max(time_us for time_us, _, _ in found),
        }
        for (is_late, start, site), found in groups.items()
    ]
    number = pyarrow.int64()
    columns = {"_late": pyarrow.bool_(), "_start_us": number, "site": pyarrow.string(), "visits": number}
    columns |= {"bytes": number, "mean.sum": pyarrow.float64(), "mean.count": number, "_rows": number}
    return pyarrow.Table.from_pylist(rows, pyarrow.schema({**columns, "_latest_us": number}))


def run(batches: list[list[Event]]) -> tuple[dict[bytes | None, bytes | None], State | None, list[Event]]:
    """The compacted topic, the last state, and the rows that came in time."""
    topic: dict[bytes | None, bytes | None] = {}
    state: State | None = None
    in_time: list[Event] = []
    for batch_id, events in enumerate(batches):
        watermark_us = NO_WATERMARK_US if state is None else state.note.watermark_us
        state = next_state(state, counted(events, watermark_us), WHAT, batch_id)
        assert state.note.read == state.note.counted + state.note.late == len(events)
        in_time += [each for each in events if each[0] - each[0] % WINDOW_US + WINDOW_US > watermark_us]
        topic.update((key, value) for key, value, _, _ in updates(state, WHAT))
    return topic, state, in_time


def test_groups_by_bytes_that_are_no_text_have_keys_of_their_own() -> None:
    what = WHAT._replace(measures=(measure("visits", "count"),))
    columns = {"_start_us": [0, 0], "site": [b"\x80", b"\x81"], "visits": [1, 1], "_batch": [0, 0]}
    keys = [json.loads(key or b"")["site"] for key, *_ in updates(State(Note(0, 0, 0), pyarrow.table(columns)), what)]
    assert keys == ["gA==", "gQ=="]


def test_a_group_may_have_any_time_and_a_text_any_bytes() -> None:
    what = WHAT._replace(by=("site", "at", "day"), measures=(measure("last", "max(at)"),))
    places = pyarrow.array([0, 1, 2], pyarrow.int32()).buffers()[1]
    garbled = pyarrow.Array.from_buffers(pyarrow.string(), 2, [None, places, pyarrow.py_buffer(b"\x80a")])
    at = pyarrow.array([2**62, 1], pyarrow.timestamp("us", "UTC"))
    day = pyarrow.array([2**31 - 1, 0], pyarrow.date32())
    columns = {"_start_us": [0, 0], "site": garbled, "at": at, "day": day, "last": at, "_batch": [0, 0]}
    values = [json.loads(row[1] or b"") for row in updates(State(Note(0, 0, 0), pyarrow.table(columns)), what)]
    assert [(each["site"], each["at"], each["day"]) for each in values] == [
        ("\\x80", "148108-07-06T14:00:27.387904Z", "5881580-07-11"),
        ("a", "1970-01-01T00:00:00.000001Z", "1970-01-01"),
    ]
    assert [each["last"] for each in values] == [each["at"] for each in values]


def test_times_without_a_zone_are_not_those_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    what = WHAT._replace(by=("site",), measures=(measure("visits", "count"),))
    at = pyarrow.array([0], pyarrow.timestamp("us"))
    columns = {"_start_us": [0], "site": at, "visits": [1], "_batch": [0]}
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        ((key, *_),) = updates(State(Note(0, 0, 0), pyarrow.table(columns)), what)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert json.loads(key or b"")["site"] == "1970-01-01T00:00:00Z"


def test_a_column_that_has_become_wider_goes_on_with_the_same_groups() -> None:
    def counts(number: int, kind: pyarrow.DataType) -> pyarrow.Table:
        table = counted([(3, "a", 1)], NO_WATERMARK_US)
        return table.set_column(2, "site", pyarrow.array([number], kind))

    state = next_state(None, counts(7, pyarrow.int32()), WHAT, 0)
    state = next_state(state, counts(7, pyarrow.int64()), WHAT, 1)
    state = next_state(state, counts(2**40, pyarrow.int64()), WHAT, 2)
    state = next_state(state, counts(7, pyarrow.int32()), WHAT, 3)
    assert sorted(zip(*state.groups.select(["site", "visits"]).to_pydict().values(), strict=True)) == [
        (7, 3),
        (2**40, 1),
    ]
    other = counts(7, pyarrow.int32()).set_column(2, "site", pyarrow.array(["seven"]))
    with pytest.raises(ValueError, match="site was int64 and is string: begin anew with a new checkpoint"):
        next_state(state, other, WHAT, 4)


def test_a_column_may_come_to_have_nulls() -> None:
    first = counted([(3, "a", 1)], NO_WATERMARK_US)
    number = first.schema.get_field_index("site")
    first = first.cast(first.schema.set(number, first.schema.field("site").with_nullable(False)))
    state = next_state(None, first, WHAT, 0)
    state = next_state(state, counted([(4, None, 1), (5, "a", 1)], NO_WATERMARK_US), WHAT, 1)
    assert sorted(map(str, state.groups["site"].to_pylist())) == ["None", "a"]


@pytest.mark.parametrize("size_us", [1, 3_600_000_000, 366 * 86_400_000_000])
def test_every_window_of_a_time_that_counts_can_be_written(size_us: int) -> None:
    what = WHAT._replace(windows=Windows(size_us, size_us), measures=(measure("visits", "count"),))
    first_us, last_us = sayable_us(size_us)
    starts = [first_us - size_us, last_us]
    columns = {"_start_us": starts, "site": ["a", "a"], "visits": [1, 1], "_batch": [0, 0]}
    values = [json.loads(row[1] or b"") for row in updates(State(Note(0, 0, 0), pyarrow.table(columns)), what)]
    assert (values[0]["window_start"][:4], values[1]["window_end"][:4]) == ("0001", "9999")


@given(BATCHES)
def test_the_topic_is_what_one_batch_of_the_counted_rows_makes(batches: list[list[Event]]) -> None:
    topic, state, in_time = run(batches)
    whole, _, _ = run([in_time])
    assert topic == whole
    if state is not None:
        assert state.note.read_in_all == sum(map(len, batches))
        assert state.note.counted_in_all == len(in_time)
        assert state.note.late_in_all == state.note.read_in_all - len(in_time)


def groups_of(*sums: int) -> pyarrow.Table:
    """A row each of one group."""
    return pyarrow.table({"site": ["a"] * len(sums), "bytes": sums})


@pytest.mark.parametrize("sums", [(2**62, 2**62), (-(2**62), -(2**62) - 2**21), (2**63 - 1, 2**63 - 1)])
def test_a_sum_beyond_64_bits_is_refused_and_does_not_go_round(sums: tuple[int, int]) -> None:
    with pytest.raises(OverflowError, match=r"measures\.bytes: a sum goes beyond 64 bits: cast its column"):
        merged([groups_of(sums[0]), groups_of(sums[1])], ["site"], {"bytes": "sum"})


def test_large_sums_that_fit_are_exact() -> None:
    for first, second in ((2**62, 2**61), (2**63 - 1, -5), (-(2**62) - 1, 3)):
        found = merged([groups_of(first), groups_of(second)], ["site"], {"bytes": "sum"})
        assert found["bytes"].to_pylist() == [first + second]
    empty = pyarrow.table({"site": ["a"], "bytes": pyarrow.array([None], pyarrow.int64())})
    assert merged([empty, groups_of(7)], ["site"], {"bytes": "sum"})["bytes"].to_pylist() == [7]


@pytest.mark.parametrize(
    ("by", "text", "problem"),
    [
        (["tags"], "count", r"by: tags is of type array<string>: name its parts"),
        (["place"], "count", r"by: place is of type struct<x:int>"),
        (["site"], "max(tags)", r"measures\.n: there is no max of array<string>"),
        (["age"], "count", r"by: age is of type interval year to month: make a text of it"),
        (["site"], "max(age)", r"measures\.n: there is no max of interval year to month"),
        (["site"], "sum(stay)", r"measures\.n: there is no sum of interval day to second"),
    ],
)
def test_columns_that_have_parts_are_neither_groups_nor_compared(by: list[str], text: str, problem: str) -> None:
    kinds = {
        "tags": ArrayType(StringType()),
        "place": StructType([StructField("x", IntegerType())]),
        "site": StringType(),
        "stay": DayTimeIntervalType(),
        "age": YearMonthIntervalType(),
    }
    check_types(
        kinds, ["site", "stay"], [measure("l", "count(age)"), measure("n", "count(tags)"), measure("m", "max(site)")]
    )
    with pytest.raises(ValueError, match=problem):
        check_types(kinds, by, [measure("n", text)])


def test_texts_and_times_have_a_least_and_a_greatest() -> None:
    first = pyarrow.table({"site": ["a"], "first": ["x"], "at": [datetime(2024, 1, 1, tzinfo=UTC)], "is": [True]})
    second = pyarrow.table({"site": ["a"], "first": ["b"], "at": [datetime(2023, 1, 1, tzinfo=UTC)], "is": [False]})
    found = merged([first, second], ["site"], {"first": "min", "at": "max", "is": "min"})
    assert found.to_pylist() == [{"site": "a", "first": "b", "at": datetime(2024, 1, 1, tzinfo=UTC), "is": False}]


def test_groups_are_told_by_window_and_columns_and_numbers_by_name() -> None:
    topic, _, _ = run([[(3, "a", 4), (7, "a", 2)], [(5, "a", 1), (12, None, 9)]])
    assert {key: json.loads(value or b"") for key, value in topic.items()} == {
        b'{"window_start":"1970-01-01T00:00:00Z","site":"a"}': {
            "window_start": "1970-01-01T00:00:00Z",
            "site": "a",
            "window_end": "1970-01-01T00:00:00.000010Z",
            "visits": 3,
            "bytes": 7,
            "mean": 7 / 3,
        },
        b'{"window_start":"1970-01-01T00:00:00.000010Z","site":null}': {
            "window_start": "1970-01-01T00:00:00.000010Z",
            "site": None,
            "window_end": "1970-01-01T00:00:00.000020Z",
            "visits": 1,
            "bytes": 9,
            "mean": 9.0,
        },
    }


def test_closed_windows_are_forgotten() -> None:
    _, state, _ = run([[(3, "a", 1)], [(100, "a", 1)], [(101, "a", 1)]])
    assert state is not None
    assert state.groups.column("_start_us").to_pylist() == [100]


def test_a_state_comes_back_and_only_those_that_may_be_needed_are_kept(tmp_path: Path) -> None:
    states = States(tmp_path)
    assert states.before(0) is None
    state: State | None = None
    for batch_id in range(4):
        state = next_state(state, counted([(batch_id, "a", 1)], NO_WATERMARK_US), WHAT, batch_id)
        states.save(state)
        assert states.load(batch_id) == state
        assert states.before(batch_id + 1) == state
    assert len(list(tmp_path.iterdir())) == 2
    with pytest.raises(SinkError, match="the state of batch 8 is not in"):
        states.before(9)


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"\0" * 200])
def test_a_state_that_was_damaged_stops_the_run(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / f"state-{3:020d}.parquet").write_bytes(damage)
    with pytest.raises(SinkError, match="begin anew with a new checkpoint"):
        States(tmp_path).load(3)


def test_a_state_of_somebody_else_is_not_taken(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), tmp_path / f"state-{3:020d}.parquet")
    with pytest.raises(SinkError, match="cannot be read"):
        States(tmp_path).load(3)


def test_a_batch_without_times_moves_no_watermark() -> None:
    note = Note(4, 10, 20, read_in_all=5, counted_in_all=4, late_in_all=1)
    assert note.following(3, 3, None, 5) == Note(5, 20, 20, 3, 0, 3, 8, 4, 4)
    assert note.following(3, 0, 22, 5).watermark_us == 20
    assert note.following(3, 0, 99, 5).watermark_us == 94


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({}, "window: is missing"),
        ({"window": "1h", "slide": "2h"}, "slide: is more than nothing"),
        ({"window": "1d", "slide": "1s"}, "slide: puts a row into more than 1000 windows"),
        ({"window": "1h", "measures": {"n": "median(x)"}}, r"measures\.n: 'median\(x\)' is none of count"),
        ({"window": "1h", "measures": {"n": "sum"}}, "is none of count"),
        ({"window": "1h", "by": ["_rows"]}, "cannot be a column of a group"),
        ({"window": "1h", "by": ["n"], "measures": {"n": "count"}}, "cannot be a column of a group"),
    ],
)
def test_what_cannot_be_counted_is_said_by_its_setting(settings: dict[str, object], problem: str) -> None:
    with pytest.raises(SettingError, match=problem):
        aggregation_of(Table({"time": "time", **settings}))


def test_a_jobs_words_say_what_is_counted() -> None:
    found = aggregation_of(
        Table(
            {"time": "at", "window": "1h", "slide": "15m", "delay": "10m", "by": ["site"], "measures": {"n": "count"}}
        )
    )
    assert found == Aggregation(
        "at", Windows(3_600_000_000, 900_000_000), 600_000_000, ("site",), (measure("n", "count"),)
    )
