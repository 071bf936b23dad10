"""Offsets, where ranges begin and end, how they are cut, and what is said of records that are gone."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka.client.topic_partition import TopicPartition
from kavka.pipeline.source.choices import Kind, ending, resolved, starting
from kavka.pipeline.source.data_loss import batch_ranges
from kavka.pipeline.source.errors import DataLossError, OptionError
from kavka.pipeline.source.offsets import OffsetRange, Offsets, flat, nested, parsed
from kavka.pipeline.source.planning import limited, limited_by_bytes, tasks
from tests.support.scripted_logs import ScriptedLogs

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_offsets_are_the_json_of_sparks_own_source() -> None:
    offsets = {A1: 5, A0: 2**40, B0: 0}

    assert json.dumps(nested(offsets), separators=(",", ":")) == '{"a":{"0":1099511627776,"1":5},"b":{"0":0}}'
    assert flat(nested(offsets), "offsets") == offsets


@given(st.dictionaries(st.tuples(st.text(min_size=1), st.integers(0, 2**31)), st.integers(0, 2**63 - 1)))
def test_offsets_come_back_from_their_json(offsets: dict[tuple[str, int], int]) -> None:
    named = {TopicPartition(*each): offset for each, offset in offsets.items()}

    assert parsed(json.dumps(nested(named)), "x") == named


@given(
    st.none() | st.integers() | st.text() | st.lists(st.integers()) | st.dictionaries(st.text(), st.text(), min_size=1)
)
def test_other_json_is_refused_by_one_line(value: object) -> None:
    with pytest.raises(OptionError, match=r"^startingOffsets: expected JSON like"):
        parsed(json.dumps(value), "startingOffsets")


def test_each_option_means_its_offsets() -> None:
    logs = ScriptedLogs({A0: 3, A1: 0}, {A0: 10, A1: 20}, {A0: 7, A1: None})

    def at(options: dict[str, str]) -> Offsets:
        return resolved(starting(options, default=Kind.EARLIEST), [A0, A1], logs)

    assert at({}) == {A0: 3, A1: 0}
    assert at({"startingoffsets": "latest"}) == {A0: 10, A1: 20}
    assert at({"startingoffsets": '{"a":{"0":-2,"1":-1}}'}) == {A0: 3, A1: 20}
    assert at({"startingoffsets": '{"a":{"0":5,"1":6}}'}) == {A0: 5, A1: 6}
    latest = {"startingoffsetsbytimestampstrategy": "latest"}
    assert at({"startingtimestamp": "99", **latest}) == {A0: 7, A1: 20}
    assert at({"startingoffsetsbytimestamp": '{"a":{"0":1,"1":2}}', **latest}) == {A0: 7, A1: 20}
    assert resolved(ending({"endingtimestamp": "99"}), [A0, A1], logs) == {A0: 7, A1: 20}


def test_a_time_without_records_is_an_error_unless_asked_otherwise() -> None:
    logs = ScriptedLogs({A1: 0}, {A1: 20}, {A1: None})

    with pytest.raises(OptionError, match=r"a-1 has no record since 99.*Strategy=latest"):
        resolved(starting({"startingtimestamp": "99"}, default=Kind.EARLIEST), [A1], logs)


def test_offsets_have_to_name_each_partition() -> None:
    logs = ScriptedLogs({A0: 0, A1: 0}, {A0: 9, A1: 9})
    for text, said in (('{"a":{"0":1}}', "leaves out a-1"), ('{"a":{"0":1,"1":1},"b":{"0":1}}', "names b-0")):
        with pytest.raises(OptionError, match=said):
            resolved(starting({"startingoffsets": text}, default=Kind.EARLIEST), [A0, A1], logs)


def test_what_may_mean_another_offset_tomorrow_is_known() -> None:
    def may(options: dict[str, str]) -> bool:
        return starting(options, default=Kind.LATEST).may_mean_latest

    assert may({})
    assert may({"startingoffsets": '{"a":{"0":-1}}'})
    assert not may({"startingoffsets": '{"a":{"0":-2,"1":7}}'})
    assert not may({"startingoffsets": "earliest"})
    assert not may({"startingtimestamp": "5"})
    assert may({"startingtimestamp": "5", "startingoffsetsbytimestampstrategy": "latest"})


def test_large_ranges_are_cut_and_small_ones_are_not() -> None:
    cut = tasks([OffsetRange("a", 0, 0, 1000), OffsetRange("a", 1, 5, 6), OffsetRange("a", 2, 4, 4)], 5, None)

    assert cut == [OffsetRange("a", 0, start, start + 250) for start in range(0, 1000, 250)] + [
        OffsetRange("a", 1, 5, 6)
    ]


def test_no_task_has_more_than_it_may() -> None:
    cut = tasks([OffsetRange("a", 0, 10, 110)], None, 30)

    assert [each.size for each in cut] == [25, 25, 25, 25]


RANGES = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 3000)), max_size=8)


@given(RANGES, st.none() | st.integers(1, 40), st.none() | st.integers(1, 500))
def test_tasks_have_each_offset_once(sizes: list[tuple[int, int]], least: int | None, most: int | None) -> None:
    ranges = [OffsetRange("a", number, start, start + size) for number, (start, size) in enumerate(sizes)]

    cut = tasks(ranges, least, most)

    assert all(each.size and (most is None or each.size <= most) for each in cut)
    for whole in ranges:
        parts = [each for each in cut if each.partition == whole.partition]
        assert [each for part in parts for each in range(part.start, part.end)] == list(range(whole.start, whole.end))


@given(st.dictionaries(st.integers(0, 9), st.tuples(st.integers(0, 99), st.integers(0, 10**6))), st.integers(1, 10**6))
def test_limits_share_out_and_starve_nobody(logs: dict[int, tuple[int, int]], most: int) -> None:
    start = {TopicPartition("a", number): first for number, (first, _) in logs.items()}
    end = {TopicPartition("a", number): first + size for number, (first, size) in logs.items()}

    for found in (limited(start, end, most), limited_by_bytes(start, end, most, dict.fromkeys(end, 1.0))):
        assert all(start[each] <= found[each] <= end[each] for each in end)
        assert all(found[each] > start[each] for each in end if end[each] > start[each])
        assert sum(found[each] - start[each] for each in end) <= most + len(end)


def test_a_limit_by_bytes_counts_each_partitions_own_size() -> None:
    found = limited_by_bytes({A0: 0, A1: 0}, {A0: 1000, A1: 1000}, 110_000, {A0: 100.0, A1: 10.0})

    assert found == {A0: 1000, A1: 1000}
    assert limited_by_bytes({A0: 0, A1: 0}, {A0: 1000, A1: 1000}, 11_000, {A0: 100.0, A1: 10.0}) == {A0: 100, A1: 100}


def test_a_new_partition_is_read_from_its_beginning() -> None:
    logs = ScriptedLogs({A1: 0}, {A1: 4})

    assert batch_ranges({A0: 5}, {A0: 7, A1: 4}, logs, fails=True) == [
        OffsetRange("a", 0, 5, 7),
        OffsetRange("a", 1, 0, 4),
    ]


@pytest.mark.parametrize(
    ("start", "end", "first", "said", "left"),
    [
        ({A0: 5, A1: 1}, {A0: 7}, {}, "a-1 is gone", [OffsetRange("a", 0, 5, 7)]),
        ({A0: 5}, {A0: 3}, {}, "a-0 ended at 5 and now ends at 3", []),
        ({A0: 5}, {A0: 5, A1: 9}, {A1: 2}, "a-1 begins at 2, not at 0", [OffsetRange("a", 1, 2, 9)]),
    ],
)
def test_what_is_gone_ends_the_query_or_is_left_out(
    start: Offsets, end: Offsets, first: Offsets, said: str, left: list[OffsetRange]
) -> None:
    logs = ScriptedLogs(first, end)

    with pytest.raises(DataLossError, match=said):
        batch_ranges(start, end, logs, fails=True)
    assert batch_ranges(start, end, logs, fails=False) == left
