"""What the assignors promise, for whatever members and topics."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka.coordinator.group.consumer.assignment import Assignment, partition_count
from kavka.coordinator.group.consumer.assignors.assignor import RANGE, UNIFORM, Assign, assignors_of
from kavka.coordinator.group.consumer.assignors.subscriber import Subscriber
from tests.support.examples import examples

T = [bytes([number]) * 16 for number in range(1, 6)]
ASSIGNORS = [UNIFORM.assign, RANGE.assign]
COUNTS = st.fixed_dictionaries({topic: st.integers(1, 7) for topic in T})


@st.composite
def groups(draw: st.DrawFn, *, alike: bool = False) -> tuple[list[Subscriber], dict[bytes, int]]:
    """Members with subscriptions and what they held before: perhaps too much, or what is gone, or what others hold."""
    counts = draw(COUNTS)
    shared = frozenset(draw(st.sets(st.sampled_from(T))))
    members = []
    for index in range(draw(st.integers(1, 7))):
        topics = shared if alike else frozenset(draw(st.sets(st.sampled_from(T))))
        held = draw(st.dictionaries(st.sampled_from(T), st.frozensets(st.integers(0, 8), min_size=1), max_size=3))
        instance_id = f"i{9 - index}" if draw(st.booleans()) else None
        members.append(Subscriber(f"m{index}", instance_id, topics, held))
    return members, counts


def check(members: Sequence[Subscriber], counts: Mapping[bytes, int], found: Mapping[str, Assignment]) -> None:
    """Every partition of a subscribed topic at exactly one of its subscribers, and nothing else."""
    assert set(found) == {each.member_id for each in members}
    given = [
        (topic, number) for assigned in found.values() for topic, numbers in assigned.items() for number in numbers
    ]
    wanted = {topic for each in members for topic in each.topics}
    assert sorted(given) == sorted((topic, number) for topic in wanted for number in range(counts[topic]))
    for each in members:
        assert set(found[each.member_id]) <= each.topics
        assert all(found[each.member_id].values()), "no empty entries"


@pytest.mark.parametrize("assign", ASSIGNORS)
@given(group=groups())
def test_every_partition_goes_to_one_subscriber(
    assign: Assign, group: tuple[list[Subscriber], dict[bytes, int]]
) -> None:
    members, counts = group
    check(members, counts, assign(members, counts))


@given(group=groups(alike=True))
def test_uniform_is_balanced_within_one_and_keeps_as_much_as_that_allows(
    group: tuple[list[Subscriber], dict[bytes, int]],
) -> None:
    members, counts = group
    found = UNIFORM.assign(members, counts)
    check(members, counts, found)
    sizes = [partition_count(found[each.member_id]) for each in members]
    assert max(sizes) - min(sizes) <= 1

    least, odd = divmod(sum(sizes), len(members))
    seen: set[tuple[bytes, int]] = set()
    valid = []
    for each in members:
        mine = {(t, n) for t, ns in each.held.items() if t in each.topics for n in ns if n < counts[t]} - seen
        seen |= mine
        valid.append(mine)
    rich = min(odd, sum(1 for mine in valid if len(mine) > least))
    could_keep = sum(min(len(mine), least) for mine in valid) + rich
    keeps = sum(
        len({(t, n) for t, ns in found[each.member_id].items() for n in ns} & mine)
        for each, mine in zip(members, valid, strict=True)
    )
    assert keeps == could_keep


@given(group=groups())
def test_uniform_changes_nothing_the_second_time(group: tuple[list[Subscriber], dict[bytes, int]]) -> None:
    members, counts = group
    found = UNIFORM.assign(members, counts)
    again = [each._replace(held=found[each.member_id]) for each in members]
    assert UNIFORM.assign(again, counts) == found


@examples(60)
@given(group=groups())
def test_uniform_is_as_even_as_different_subscriptions_allow(
    group: tuple[list[Subscriber], dict[bytes, int]],
) -> None:
    """Nobody has two more than another that some chain of members could pass one to."""
    members, counts = group
    found = UNIFORM.assign(members, counts)
    loads = {each.member_id: partition_count(found[each.member_id]) for each in members}
    reach = {each.member_id: {each.member_id} for each in members}
    changed = True
    while changed:
        changed = False
        for start, topic_holder in itertools.product(reach, members):
            if topic_holder.member_id not in reach[start]:
                continue
            held = found[topic_holder.member_id]
            more = {each.member_id for each in members if not each.topics.isdisjoint(held)} - reach[start]
            if more:
                reach[start] |= more
                changed = True
    for start, ends in reach.items():
        assert all(loads[start] - loads[end] <= 1 for end in ends)


def test_a_member_more_takes_from_those_who_have_most_and_leaves_the_rest_alone() -> None:
    counts = {T[0]: 6, T[1]: 6}
    topics = frozenset(counts)
    two = [Subscriber(name, None, topics, {}) for name in "ab"]
    before = UNIFORM.assign(two, counts)
    after = UNIFORM.assign(
        [*(each._replace(held=before[each.member_id]) for each in two), two[0]._replace(member_id="c")], counts
    )
    for name in "ab":
        assert partition_count(after[name]) == 4
        assert all(after[name][topic] <= before[name][topic] for topic in after[name])


def test_range_gives_equal_numbers_of_equally_partitioned_topics_to_one_member() -> None:
    members = [Subscriber(f"m{index}", None, frozenset(T[:3]), {}) for index in range(3)]
    found = RANGE.assign(members, {T[0]: 7, T[1]: 7, T[2]: 2})
    firsts = [frozenset({0, 1, 2}), frozenset({3, 4}), frozenset({5, 6})]
    assert [found[each.member_id].get(T[0]) for each in members] == firsts
    assert all(found[each.member_id].get(T[0]) == found[each.member_id].get(T[1]) for each in members)
    assert [found[each.member_id].get(T[2]) for each in members] == [{0}, {1}, None]


def test_range_knows_static_members_by_their_instance() -> None:
    counts = {T[0]: 4}
    members = [Subscriber("zz", "i1", frozenset(T[:1]), {}), Subscriber("aa", "i2", frozenset(T[:1]), {})]
    back = [members[0]._replace(member_id="b1"), members[1]]
    assert RANGE.assign(members, counts)["zz"] == RANGE.assign(back, counts)["b1"] == {T[0]: {0, 1}}


def test_the_setting_names_assignors_by_class_or_by_name_and_leaves_unknown_ones_out() -> None:
    package = "org.apache.kafka.coordinator.group.assignor"
    assert list(assignors_of([f"{package}.RangeAssignor", "uniform", "com.example.Mine"])) == ["range", "uniform"]
    assert list(assignors_of(["com.example.Mine"])) == ["uniform", "range"]


def test_a_thousand_members_and_partitions_are_assigned_quickly() -> None:
    """Generous, for a busy machine: it is a handful of milliseconds."""
    members = [Subscriber(f"m{index}", None, frozenset(T), {}) for index in range(1000)]
    counts = dict.fromkeys(T, 200)
    mixed = [each._replace(topics=frozenset(T[: 2 + index % 4])) for index, each in enumerate(members)]
    for group in (members, mixed):
        found = UNIFORM.assign(group, counts)
        held = [each._replace(held=found[each.member_id]) for each in group[:-1]]
        start = time.thread_time()
        check(held, counts, UNIFORM.assign(held, counts))
        assert time.thread_time() - start < 4.0


def test_hostile_subscriptions_do_not_stall_the_coordinator() -> None:
    ids = [index.to_bytes(16, "big") for index in range(600)]
    held = {topic: frozenset({0}) for topic in ids}
    members = [
        Subscriber(f"m{index}", None, frozenset(ids[index : index + 300]), held if index == 0 else {})
        for index in range(300)
    ]
    start = time.thread_time()
    found = UNIFORM.assign(members, dict.fromkeys(ids, 3))
    assert time.thread_time() - start < 15.0
    check(members, dict.fromkeys(ids, 3), found)
