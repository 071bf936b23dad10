"""Markers come back as they were written; what is no marker is passed over."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka.pipeline.sending.marked_producer import Row
from kavka.pipeline.sending.marker_reading import MarkersRead
from kavka.pipeline.sending.markers import Marker, MarkerName, MarkerPlace, MarkerTooLongError, decoded
from kavka.pipeline.sending.partition_task import ChangedBatchError, check_whole
from kavka.pipeline.sending.rows import Content

NAMES = st.builds(MarkerName, st.text(max_size=20), st.text(max_size=20), st.integers(-1, 2**31 - 1))
MARKERS = st.builds(Marker, st.integers(-1, 2**63), st.integers(0, 2**63), st.booleans(), st.just({}))


@given(NAMES, MARKERS)
def test_a_marker_comes_back(name: MarkerName, marker: Marker) -> None:
    assert decoded(name.encode(), marker.encode()) == (name, marker)
    assert decoded(name.encode(), None) == (name, None)


def test_details_come_back() -> None:
    marker = Marker(3, 4, is_whole=True, details={"partitions": {"visits": 6}})
    assert decoded(MarkerName("q", "t", 0).encode(), marker.encode()) == (MarkerName("q", "t", 0), marker)


def test_what_is_written_is_read_and_what_would_not_be_is_not_written() -> None:
    name = MarkerName("q", "t", 0)
    marker = Marker(3, 4, details={"partitions": {f"topic-{each}": 6 for each in range(20_000)}})
    assert decoded(name.encode(), marker.encode()) == (name, marker)
    with pytest.raises(MarkerTooLongError, match="longer than 1000000"):
        Marker(3, details={"text": "x" * 1_000_000}).encode()


@given(st.none() | st.binary(max_size=60), st.none() | st.binary(max_size=60))
def test_garbage_is_no_marker(key: bytes | None, value: bytes | None) -> None:
    assert decoded(key, value) is None


def test_what_is_too_long_or_deep_is_no_marker() -> None:
    name = MarkerName("q", "t", 0).encode()
    assert decoded(name, b" " * 20_000) is None
    assert decoded(b"[" * 9_000, b"{}") is None
    assert decoded(name, b"[" * 9_000) is None
    assert decoded(name, b'{"batch": 1e999, "position": 0, "whole": true}') is None
    assert decoded(name, b'{"batch": "x", "position": 0, "whole": true}') is None


def test_names_that_read_alike_have_producers_of_their_own() -> None:
    alike = [MarkerName("a-b", "c", 0), MarkerName("a", "b-c", 0), MarkerName("a/b", "c", 0), MarkerName("a", "b", -1)]
    alike += [MarkerName("a", "b-", 1), MarkerName("a", "b--1", 0), MarkerName("a-b--1", "c", 0)]
    assert len({name.transactional_id for name in alike}) == len(alike)


def test_the_furthest_marker_counts_wherever_it_lies() -> None:
    name, other = MarkerName("q", "t", 0), MarkerName("q", "t", 1)
    read = MarkersRead({3: {name: Marker(7, 5)}, 1: {name: Marker(7, 9), other: Marker(9)}, 2: {name: Marker(6)}}, {})
    assert read.furthest(name) == Marker(7, 9)
    assert read.furthest(MarkerName("q", "u", 0)) is None
    assert MarkersRead({1: {name: Marker(7, 9)}, 2: {name: Marker(7, 9, True)}}, {}).furthest(name) == Marker(
        7, 9, True
    )


def test_a_batch_that_lost_all_rows_of_a_partition_is_told() -> None:
    read = MarkersRead({3: {MarkerName("q", "t", 1): Marker(7, 5, is_whole=True)}}, {})
    check_whole(read, "q", 7, {"t": 2}, {("t", 0), ("t", 1)})
    check_whole(read, "q", 8, {"t": 2}, {("t", 0)})
    check_whole(read, "q", 7, {"u": 2}, {("u", 0)})
    with pytest.raises(ChangedBatchError, match="came again with 0 rows for t-1, where 5 are written"):
        check_whole(read, "q", 7, {"t": 2}, {("t", 0)})


ROWS: list[Row] = [
    (b"k", b"v", 5, ()),
    (None, b"v", 5, ()),
    (b"k", None, None, [("a", b"b")]),
    (b"k", b"v", 5, [("a", None)]),
    (b"l", b"w", 6, ()),
]


def content(rows: Iterable[Row]) -> int:
    found = Content()
    found.add(rows)
    return found.sum


def test_the_same_rows_in_another_order_have_the_same_content() -> None:
    assert content(ROWS) == content(reversed(ROWS)) != content(ROWS[1:])


@given(st.data())
def test_other_rows_have_another_content(data: st.DataObject) -> None:
    small = st.none() | st.binary(max_size=2)
    headers = st.lists(st.tuples(st.text(max_size=2), small), max_size=1)
    rows = st.lists(st.tuples(small, small, st.none() | st.integers(0, 9), headers), min_size=1, max_size=4)
    first, second = data.draw(rows), data.draw(rows)
    assert (content(first) == content(second)) == (sorted(map(repr, first)) == sorted(map(repr, second)))


def test_rows_that_exchange_their_values_have_another_content() -> None:
    for number in range(10_000):
        key, other = b"%d" % number, b"other-%d" % number
        pair: list[Row] = [(key, b"a", 1, ()), (other, b"b", 1, ())]
        assert content(pair) != content([(key, b"b", 1, ()), (other, b"a", 1, ())])


@given(NAMES, st.integers(1, 50))
def test_a_name_has_one_place(name: MarkerName, count: int) -> None:
    place = MarkerPlace({}, "markers", count)
    assert 0 <= place.partition_of(name) < count
    neighbour = name._replace(partition=name.partition + 1)
    assert count == 1 or place.partition_of(neighbour) != place.partition_of(name)
