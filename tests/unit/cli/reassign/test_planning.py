"""Plans: nobody loses a replica that need not, counts are even, racks are kept apart, and few bytes move."""

from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka.cli.reassign.planning import PlanError, Wish, planned
from kavka.client import TopicPartition

Replicas = dict[TopicPartition, tuple[int, ...]]


def replicas_of(*rows: Sequence[int], topic: str = "orders") -> Replicas:
    return {TopicPartition(topic, index): tuple(row) for index, row in enumerate(rows)}


def rackless(*broker_ids: int) -> dict[int, str | None]:
    return dict.fromkeys(broker_ids)


def moved(before: Replicas, after: Replicas) -> int:
    return sum(len(set(after[each]) - set(before[each])) for each in before)


def loads(assignment: Replicas, brokers: Sequence[int]) -> Counter[int]:
    counts = Counter(dict.fromkeys(brokers, 0))
    counts.update(broker_id for replicas in assignment.values() for broker_id in replicas)
    return counts


def racks_of(replicas: Sequence[int], racks: Mapping[int, str | None]) -> int:
    return len({racks.get(each) or each for each in replicas})


@st.composite
def clusters(draw: st.DrawFn, *, with_racks: bool) -> tuple[Replicas, dict[int, str | None]]:
    """Brokers from 1 on with partitions of two topics, anyhow."""
    count = draw(st.integers(2, 7))
    names = st.sampled_from(["a", "b", "c"])
    racks = {each: draw(names) if with_racks else None for each in range(1, count + 1)}
    factor = draw(st.integers(1, min(3, count)))
    row = st.permutations(sorted(racks)).map(lambda each: tuple(each[:factor]))
    orders, visits = draw(st.lists(row, max_size=12)), draw(st.lists(row, max_size=12))
    return {**replicas_of(*orders), **replicas_of(*visits, topic="visits")}, racks


def test_a_new_broker_gets_its_share_and_nothing_else_moves() -> None:
    current = replicas_of((1, 2), (2, 1), (1, 2), (2, 1), (1, 2), (2, 1))
    found = planned(current, rackless(1, 2, 3), Wish(added=[3]))
    after = current | found
    assert sorted(loads(after, (1, 2, 3)).values()) == [4, 4, 4]
    assert moved(current, after) == 4
    assert all(set(after[each]) - set(current[each]) <= {3} for each in current)


def test_a_drained_broker_loses_all_and_the_others_lose_nothing() -> None:
    current = replicas_of((1, 2), (2, 3), (3, 1), (1, 4))
    found = planned(current, rackless(1, 2, 3, 4), Wish(drained=[3]))
    after = current | found
    assert set(found) == {TopicPartition("orders", 1), TopicPartition("orders", 2)}
    assert loads(after, (1, 2, 4))[3] == 0
    assert moved(current, after) == 2
    assert loads(after, (1, 2, 4)) == Counter({1: 3, 2: 2, 4: 3}) or loads(after, ()) == Counter({1: 3, 2: 3, 4: 2})


def test_a_broker_that_is_gone_can_be_drained() -> None:
    found = planned(replicas_of((1, 9), (9, 2)), rackless(1, 2), Wish(drained=[9]))
    assert {tuple(sorted(each)) for each in found.values()} == {(1, 2)}


def test_a_higher_replication_factor_takes_racks_that_the_partition_is_not_on() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "c"}
    found = planned(replicas_of((1, 3)), racks, Wish(replication_factor=3))
    assert found[TopicPartition("orders", 0)] in {(1, 3, 4), (3, 1, 4), (4, 1, 3)}


def test_a_lower_replication_factor_keeps_the_leader_and_the_racks() -> None:
    racks = {1: "a", 2: "a", 3: "b"}
    found = planned(replicas_of((1, 2, 3)), racks, Wish(replication_factor=2))
    assert set(found[TopicPartition("orders", 0)]) == {1, 3}


def test_of_equal_moves_that_of_fewer_bytes_is_taken() -> None:
    current = replicas_of((1,), (1,), (1,))
    sizes = {TopicPartition("orders", index): size for index, size in enumerate((500, 3, 70))}
    found = planned(current, rackless(1, 2), Wish(is_balanced=True), sizes=sizes)
    assert found == {TopicPartition("orders", 1): (2,)}


def test_balancing_spreads_each_topic_and_not_only_their_sum() -> None:
    current = {**replicas_of((1,), (1,)), **replicas_of((1,), (1,), topic="visits")}
    after = current | planned(current, rackless(1, 2), Wish(is_balanced=True))
    assert {topic: {after[TopicPartition(topic, each)] for each in (0, 1)} for topic in ("orders", "visits")} == {
        "orders": {(1,), (2,)},
        "visits": {(1,), (2,)},
    }


def test_leaders_are_balanced_without_moving_bytes() -> None:
    current = replicas_of((1, 2, 3), (1, 2, 3), (1, 2, 3))
    found = planned(current, rackless(1, 2, 3), Wish(is_balanced=True))
    assert {replicas[0] for replicas in (current | found).values()} == {1, 2, 3}
    assert moved(current, current | found) == 0


def test_leaders_are_balanced_by_way_of_others() -> None:
    """1 leads thrice and shares nothing with 3, who leads nothing; 2 shares with both."""
    current = replicas_of((1, 2), (1, 2), (1, 2), (2, 3), (3, 2))
    after = current | planned(current, rackless(1, 2, 3), Wish(is_balanced=True, targets=(1, 2, 3)))
    counts = Counter(replicas[0] for replicas in after.values())
    assert max(counts.values()) - min(counts.values()) <= 1


def test_what_does_not_change_keeps_its_leader_when_a_broker_is_drained() -> None:
    current = replicas_of((1, 2), (1, 2), (1, 2), (3, 2))
    found = planned(current, rackless(1, 2, 3), Wish(drained=[3]))
    assert list(found) == [TopicPartition("orders", 3)]


def test_balancing_over_some_brokers_takes_all_from_the_others() -> None:
    current = replicas_of((1, 2), (3, 4), (2, 3))
    after = current | planned(current, rackless(1, 2, 3, 4), Wish(is_balanced=True, targets=(1, 2)))
    assert {frozenset(each) for each in after.values()} == {frozenset({1, 2})}


def test_replicas_that_share_a_rack_without_need_are_parted() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    current = replicas_of((1, 2), (3, 4))
    after = current | planned(current, racks, Wish(is_balanced=True))
    assert [racks_of(each, racks) for each in after.values()] == [2, 2]
    assert moved(current, after) == 2


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        (Wish(added=[7]), "no broker 7; there are 1, 2"),
        (Wish(is_balanced=True, targets=[1, 8]), "no broker 8"),
        (Wish(added=[2], drained=[2]), "broker 2 cannot be added and drained at once"),
        (Wish(drained=[1, 2]), "no broker is left"),
        (Wish(drained=[2]), "orders-0 needs 2 brokers, and 1 may have it"),
        (Wish(replication_factor=3), "orders-0 needs 3 brokers, and 2 may have it"),
    ],
)
def test_what_cannot_be_planned_is_refused(wish: Wish, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        planned(replicas_of((1, 2)), rackless(1, 2), wish)


def test_brokers_of_which_only_some_have_racks_are_refused() -> None:
    with pytest.raises(PlanError, match="brokers 2 have no rack, others have: --disable-rack-aware"):
        planned(replicas_of((1, 2)), {1: "a", 2: None}, Wish(is_balanced=True))


@given(clusters(with_racks=False))
def test_balancing_evens_counts_out_with_as_few_moves_as_can_be(case: tuple[Replicas, dict[int, str | None]]) -> None:
    current, racks = case
    after = current | planned(current, racks, Wish(is_balanced=True))
    counts = loads(after, list(racks))
    assert max(counts.values()) - min(counts.values()) <= 1
    before, low = loads(current, list(racks)), sum(counts.values()) // len(racks)
    high = low + (sum(counts.values()) % len(racks) > 0)
    surplus = sum(max(0, each - high) for each in before.values())
    deficit = sum(max(0, low - each) for each in before.values())
    assert moved(current, after) <= max(surplus, deficit)


@given(clusters(with_racks=True))
def test_balancing_uses_all_the_racks_there_are(case: tuple[Replicas, dict[int, str | None]]) -> None:
    current, racks = case
    after = current | planned(current, racks, Wish(is_balanced=True))
    for partition, replicas in after.items():
        assert len(set(replicas)) == len(replicas) == len(current[partition])
        assert racks_of(replicas, racks) == min(len(replicas), len(set(racks.values())))


@given(clusters(with_racks=True), st.data())
def test_draining_and_adding_keep_what_need_not_move(
    case: tuple[Replicas, dict[int, str | None]], data: st.DataObject
) -> None:
    current, racks = case
    drained = data.draw(st.sampled_from(sorted(racks)))
    added = data.draw(st.sampled_from(sorted(racks)))
    factor = max(map(len, current.values()), default=0)
    if drained != added and len(racks) - 1 >= factor:
        after = current | planned(current, racks, Wish(drained=[drained]))
        for partition, replicas in after.items():
            assert drained not in replicas
            assert set(current[partition]) - set(replicas) <= {drained}
            left = {racks[each] for each in racks if each != drained}
            staying = racks_of([each for each in current[partition] if each != drained], racks)
            is_lost = drained in current[partition] and staying < len(left)
            assert racks_of(replicas, racks) == staying + is_lost
    after = current | planned(current, racks, Wish(added=[added]))
    for partition, replicas in after.items():
        assert set(replicas) - set(current[partition]) <= {added}
        assert racks_of(replicas, racks) >= racks_of(current[partition], racks)


@given(clusters(with_racks=True))
def test_a_plan_that_is_done_asks_for_nothing_more(case: tuple[Replicas, dict[int, str | None]]) -> None:
    current, racks = case
    after = current | planned(current, racks, Wish(is_balanced=True))
    assert planned(after, racks, Wish(is_balanced=True)) == {}


@given(clusters(with_racks=False))
def test_leaders_of_balanced_partitions_are_even_where_replicas_allow(
    case: tuple[Replicas, dict[int, str | None]],
) -> None:
    current, racks = case
    after = current | planned(current, racks, Wish(is_balanced=True))
    if min(map(len, after.values()), default=0) == len(racks):
        counts = Counter(dict.fromkeys(racks, 0))
        counts.update(replicas[0] for replicas in after.values())
        assert max(counts.values()) - min(counts.values()) <= 1
