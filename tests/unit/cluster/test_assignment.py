"""Placement of replicas: spread evenly, over racks where there are any."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka.cluster.assignment import assign_replicas, validate_assignment
from kavka.protocol.errors import BrokerError, ErrorCode

starts = st.integers(0, 2**16)


def test_the_first_example_of_kafkas_documentation_holds() -> None:
    """Ten partitions, three replicas, five brokers, starting at broker 0 with no shift."""
    assigned = assign_replicas(dict.fromkeys(range(5)), 10, 3, start_index=0, start_shift=0)
    assert list(assigned.values()) == [
        (0, 1, 2),
        (1, 2, 3),
        (2, 3, 4),
        (3, 4, 0),
        (4, 0, 1),
        (0, 2, 3),
        (1, 3, 4),
        (2, 4, 0),
        (3, 0, 1),
        (4, 1, 2),
    ]


@given(brokers=st.sets(st.integers(0, 1000), min_size=1, max_size=12), data=st.data(), index=starts, shift=starts)
def test_leaders_and_replicas_are_spread_evenly(brokers: set[int], data: st.DataObject, index: int, shift: int) -> None:
    factor = data.draw(st.integers(1, len(brokers)))
    laps = data.draw(st.integers(1, 4))
    assigned = assign_replicas(
        dict.fromkeys(brokers), laps * len(brokers), factor, start_index=index, start_shift=shift
    )
    assert all(len(set(replicas)) == factor for replicas in assigned.values())
    assert set(Counter(replicas[0] for replicas in assigned.values()).values()) == {laps}
    assert set(Counter(broker for replicas in assigned.values() for broker in replicas).values()) == {laps * factor}
    validate_assignment(assigned, dict.fromkeys(brokers))


@given(
    racks=st.dictionaries(st.integers(0, 100), st.sampled_from("abcd"), min_size=1, max_size=12),
    data=st.data(),
    index=starts,
    shift=starts,
)
def test_replicas_share_a_rack_only_when_every_rack_has_one(
    racks: dict[int, str], data: st.DataObject, index: int, shift: int
) -> None:
    factor = data.draw(st.integers(1, len(racks)))
    assigned = assign_replicas(racks, 20, factor, start_index=index, start_shift=shift)
    for replicas in assigned.values():
        assert len(set(replicas)) == factor
        assert len({racks[broker] for broker in replicas}) == min(factor, len(set(racks.values())))


def test_racks_are_not_looked_at_when_one_broker_has_none() -> None:
    with_none = assign_replicas({1: "a", 2: None, 3: "a"}, 6, 2, start_index=1, start_shift=0)
    without = assign_replicas(dict.fromkeys((1, 2, 3)), 6, 2, start_index=1, start_shift=0)
    assert with_none == without


def test_racks_alternate_as_in_kafkas_own_example() -> None:
    """Six brokers on three racks, two replicas each: its AdminUtils says the same."""
    racks = {0: "rack1", 1: "rack2", 2: "rack2", 3: "rack3", 4: "rack3", 5: "rack1"}
    assigned = assign_replicas(racks, 7, 3, start_index=0, start_shift=0)
    assert list(assigned.values()) == [
        (0, 1, 3),
        (1, 3, 5),
        (3, 5, 2),
        (5, 2, 4),
        (2, 4, 0),
        (4, 0, 1),
        (0, 2, 4),
    ]


def test_growth_numbers_partitions_on() -> None:
    assert list(assign_replicas({1: None}, 2, 1, start_index=0, start_shift=0, first_partition=3)) == [3, 4]


@pytest.mark.parametrize(
    ("partitions", "factor", "code", "text"),
    [
        (0, 1, ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0."),
        (1, 0, ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0."),
        (1, 3, ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor: 3 larger than available brokers: 1."),
    ],
)
def test_impossible_counts_are_refused(partitions: int, factor: int, code: ErrorCode, text: str) -> None:
    with pytest.raises(BrokerError) as raised:
        assign_replicas({1: None}, partitions, factor, start_index=0, start_shift=0)
    assert (raised.value.code, raised.value.message) == (code, text)


@pytest.mark.parametrize(
    "assignment",
    [{0: [1], 2: [1]}, {1: [1]}, {0: []}, {0: [1, 1]}, {0: [1], 1: [1, 2]}, {0: [9]}],
    ids=["gap", "not from 0", "none", "twice", "uneven", "dead"],
)
def test_impossible_assignments_are_refused(assignment: dict[int, list[int]]) -> None:
    with pytest.raises(BrokerError) as raised:
        validate_assignment(assignment, {1: None, 2: None})
    assert raised.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
