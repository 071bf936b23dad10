"""Range, round robin and the sticky assignors, by examples and by what must hold of any input."""

from hypothesis import given, settings

from kavka.client.cluster import Cluster, PartitionInfo, TopicInfo
from kavka.client.consumer.group.assignors.assignor import (
    MemberAssignment,
    MemberSubscription,
    Subscriptions,
    TopicRacks,
)
from kavka.client.consumer.group.assignors.cooperative_sticky import CooperativeStickyAssignor
from kavka.client.consumer.group.assignors.range import RangeAssignor
from kavka.client.consumer.group.assignors.round_robin import RoundRobinAssignor
from kavka.client.consumer.group.assignors.sticky import StickyAssignor
from kavka.client.consumer.group.port import ConsumerGroupMetadata
from kavka.client.node import Node
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.schema import ZERO_UUID
from tests.unit.client.group.assignor_cases import check, everything, groups, is_even, moves

NOWHERE: frozenset[str] = frozenset()
Group = tuple[TopicRacks, Subscriptions]


def sizes(**counts: int) -> TopicRacks:
    return {topic: [NOWHERE] * count for topic, count in counts.items()}


def names(partitions: list[TopicPartition]) -> str:
    return " ".join(map(str, partitions))


def test_range_gives_each_topic_in_ranges_the_first_members_one_more() -> None:
    both = MemberSubscription(("t", "u"))
    shares = RangeAssignor().share(sizes(t=3, u=3), {"b": both, "a": both})
    assert {member: names(share) for member, share in shares.items()} == {"a": "t-0 t-1 u-0 u-1", "b": "t-2 u-2"}


def test_range_puts_static_members_first_by_their_instance_ids() -> None:
    shares = RangeAssignor().share(
        sizes(t=3),
        {
            "a": MemberSubscription(("t",)),
            "b": MemberSubscription(("t",), instance_id="z"),
            "c": MemberSubscription(("t",), instance_id="y"),
        },
    )
    assert {member: names(share) for member, share in shares.items()} == {"c": "t-0", "b": "t-1", "a": "t-2"}


def test_range_matches_racks_where_that_keeps_it_even() -> None:
    topics = {"t": [frozenset({"y"}), frozenset({"x"}), frozenset({"y"}), frozenset({"x"})]}
    shares = RangeAssignor().share(
        topics, {"a": MemberSubscription(("t",), rack="x"), "b": MemberSubscription(("t",), rack="y")}
    )
    assert {member: names(share) for member, share in shares.items()} == {"a": "t-1 t-3", "b": "t-0 t-2"}


def test_range_keeps_topics_of_one_size_alike_when_it_matches_racks() -> None:
    racks = [frozenset({"y"}), frozenset({"x"})]
    both = ("t", "u")
    shares = RangeAssignor().share(
        {"t": racks, "u": racks}, {"a": MemberSubscription(both, rack="x"), "b": MemberSubscription(both, rack="y")}
    )
    assert {member: names(share) for member, share in shares.items()} == {"a": "t-1 u-1", "b": "t-0 u-0"}


def test_round_robin_passes_over_who_is_not_subscribed() -> None:
    shares = RoundRobinAssignor().share(
        sizes(t=1, u=2, v=3),
        {
            "a": MemberSubscription(("t",)),
            "b": MemberSubscription(("t", "u")),
            "c": MemberSubscription(("t", "u", "v")),
        },
    )
    assert {member: names(share) for member, share in shares.items()} == {
        "a": "t-0",
        "b": "u-0",
        "c": "u-1 v-0 v-1 v-2",
    }


@given(groups(racks=True))
def test_range_gives_each_partition_once_and_each_topic_evenly(group: Group) -> None:
    topics, subscriptions = group
    shares = RangeAssignor().share(topics, subscriptions)
    check(topics, subscriptions, shares)
    for topic in topics:
        counts = [
            sum(each.topic == topic for each in share)
            for member, share in shares.items()
            if topic in subscriptions[member].topics
        ]
        assert max(counts) - min(counts) <= 1


@given(groups())
def test_round_robin_gives_each_partition_once(group: Group) -> None:
    topics, subscriptions = group
    check(topics, subscriptions, RoundRobinAssignor().share(topics, subscriptions))


@given(groups(same_topics=True, racks=True))
@settings(max_examples=200)
def test_sticky_shares_of_equals_differ_by_one(group: Group) -> None:
    topics, subscriptions = group
    shares = OwnedSticky().share(topics, subscriptions)
    check(topics, subscriptions, shares)
    counts = [len(share) for share in shares.values()]
    assert max(counts) - min(counts) <= 1


@given(groups(racks=True))
@settings(max_examples=200)
def test_sticky_shares_are_as_even_as_subscriptions_allow(group: Group) -> None:
    topics, subscriptions = group
    shares = OwnedSticky().share(topics, subscriptions)
    check(topics, subscriptions, shares)


@given(groups())
@settings(max_examples=200)
def test_what_is_even_stays_as_it_is(group: Group) -> None:
    topics, subscriptions = group
    first = OwnedSticky().share(topics, {member: each._replace(owned=()) for member, each in subscriptions.items()})
    assert is_even(subscriptions, first)
    again = {member: each._replace(owned=tuple(first[member]), generation=5) for member, each in subscriptions.items()}
    assert moves(first, OwnedSticky().share(topics, again)) == 0


@given(groups(same_topics=True))
def test_who_leaves_moves_only_what_they_had(group: Group) -> None:
    topics, subscriptions = group
    first = OwnedSticky().share(topics, {member: each._replace(owned=()) for member, each in subscriptions.items()})
    stay = {
        member: each._replace(owned=tuple(first[member]), generation=1)
        for member, each in subscriptions.items()
        if member != "m0" or len(subscriptions) == 1
    }
    after = OwnedSticky().share(topics, stay)
    assert moves({member: first[member] for member in stay}, after) == 0


def test_the_higher_generation_is_believed_and_in_one_generation_nobody() -> None:
    claim = (TopicPartition("t", 0), TopicPartition("t", 1))
    old = MemberSubscription(("t",), owned=claim, generation=1)
    new = MemberSubscription(("t",), owned=claim, generation=2)
    shares = OwnedSticky().share(sizes(t=2, u=2), {"a": old._replace(topics=("t", "u")), "b": new})
    assert names(shares["b"]) == "t-0 t-1"
    cooperative = CooperativeStickyAssignor().share(sizes(t=2), {"a": new, "b": new})
    assert cooperative == {"a": [TopicPartition("t", 0)], "b": [TopicPartition("t", 1)]}


@given(groups(racks=True))
@settings(max_examples=200)
def test_cooperative_gives_nobody_what_another_still_has(group: Group) -> None:
    topics, subscriptions = group
    owned = OwnedSticky().share(topics, {member: each._replace(owned=()) for member, each in subscriptions.items()})
    # Somebody comes, and somebody's subscription changes.
    members = {
        member: each._replace(owned=tuple(owned[member]), generation=1) for member, each in subscriptions.items()
    }
    members["m9"] = MemberSubscription(tuple(topics))
    members["m0"] = members["m0"]._replace(topics=(min(topics),))
    for _ in range(6):
        shares = CooperativeStickyAssignor().share(topics, members)
        for member, share in shares.items():
            for partition in share:
                assert all(partition not in each.owned for other, each in members.items() if other != member)
        members = {member: each._replace(owned=tuple(shares[member])) for member, each in members.items()}
    check(topics, members, shares)


def test_sticky_remembers_in_user_data_what_it_was_assigned() -> None:
    member = StickyAssignor()
    assert member.subscription_user_data(["t"]) is None
    mine = (TopicPartition("t", 1), TopicPartition("t", 2))
    member.on_assignment(MemberAssignment(mine), ConsumerGroupMetadata("g", 7))
    data = member.subscription_user_data(["t"])
    assert data == bytes.fromhex("00000001 0001 74 00000002 00000001 00000002 00000007")
    shares = StickyAssignor().share(
        sizes(t=4), {"a": MemberSubscription(("t",)), "b": MemberSubscription(("t",), user_data=data)}
    )
    assert set(shares["b"]) == set(mine)


def test_topics_that_are_not_there_are_left_out_and_racks_come_from_nodes() -> None:
    cluster = Cluster(
        nodes={1: Node(1, "h", 9092, "x"), 2: Node(2, "h", 9093, "y")},
        topics={
            "t": TopicInfo("t", ZERO_UUID, 0, False, {0: PartitionInfo(2, 0, (2,)), 1: PartitionInfo(1, 0, (1, 9))})
        },
    )
    given_out = RangeAssignor().assign(
        cluster,
        {"a": MemberSubscription(("t", "none"), rack="x"), "b": MemberSubscription(("t",), rack="y")},
    )
    assert given_out == {
        "a": MemberAssignment((TopicPartition("t", 1),)),
        "b": MemberAssignment((TopicPartition("t", 0),)),
    }
    assert everything({"t": [NOWHERE] * 2}) == [TopicPartition("t", 0), TopicPartition("t", 1)]


class OwnedSticky(StickyAssignor):
    """Sticky, with what members own in their subscriptions instead of in user data."""

    owned_by = CooperativeStickyAssignor.owned_by
