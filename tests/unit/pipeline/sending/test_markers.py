"""Markers come back as they were written; what is no marker is passed over."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka.pipeline.sending.markers import Marker, MarkerName, MarkerPlace, MarkerTooLongError, decoded

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


@given(NAMES, st.integers(1, 50))
def test_a_name_has_one_place(name: MarkerName, count: int) -> None:
    place = MarkerPlace({}, "markers", count)
    assert 0 <= place.partition_of(name) < count
    neighbour = name._replace(partition=name.partition + 1)
    assert count == 1 or place.partition_of(neighbour) != place.partition_of(name)
