"""Groups that stay as they are rebalance again and again: the sticky assignors come to rest, as even as can be."""

from collections.abc import Callable

import pytest
from hypothesis import example, given, settings

from kavka.client.consumer.group.assignors.assignor import MemberSubscription, Shares, Subscriptions, TopicRacks
from kavka.client.consumer.group.assignors.cooperative_sticky import CooperativeStickyAssignor
from kavka.client.consumer.group.assignors.sticky import AbstractStickyAssignor, StickyAssignor
from kavka.client.consumer.group.assignors.user_data import encode_owned
from kavka.client.topic_partition import TopicPartition
from tests.unit.client.group.assignor_cases import check, groups

Group = tuple[TopicRacks, Subscriptions]
Owning = Callable[[MemberSubscription, int], MemberSubscription]

ROUNDS = 5
"""Enough to come to rest. The cooperative one needs two to move a partition, and what was claimed twice at first may be
moved once more."""
NEWEST = 9


def racks(*letters: str) -> list[frozenset[str]]:
    return [frozenset(each) for each in letters]


EAGER_UNREST: Group = (
    {"t1": racks("abc"), "t2": racks("ab", "b", "bc", "abc", "ab"), "t3": racks("ac", "a")},
    {
        "m0": MemberSubscription(("t3",), rack="b"),
        "m1": MemberSubscription(("t3", "t2"), rack="c"),
        "m2": MemberSubscription(("t3", "t1")),
    },
)
"""What was taken from a member as it was far was given back to even out, in each rebalance."""
COOPERATIVE_UNREST: Group = (
    {"t0": racks("ab", "b", "b"), "t1": racks("a", "a")},
    {
        "m0": MemberSubscription(("t0",)),
        "m1": MemberSubscription(("t0", "t1"), rack="c"),
        "m2": MemberSubscription(("t1", "t0"), rack="a"),
        "m3": MemberSubscription(("t1",)),
    },
)


def in_user_data(member: MemberSubscription, generation: int) -> MemberSubscription:
    """As members say under the eager protocol what they had."""
    return member._replace(user_data=encode_owned(member.owned, generation), owned=())


def in_subscription(member: MemberSubscription, generation: int) -> MemberSubscription:
    return member._replace(generation=generation)


ASSIGNORS = pytest.mark.parametrize(
    ("assignor", "says"),
    [(StickyAssignor(), in_user_data), (CooperativeStickyAssignor(), in_subscription)],
    ids=["sticky", "cooperative-sticky"],
)


@ASSIGNORS
@given(group=groups(same_topics=True, racks=True))
@settings(max_examples=150)
def test_members_with_the_same_topics_come_to_rest(
    assignor: AbstractStickyAssignor, says: Owning, group: Group
) -> None:
    comes_to_rest(assignor, says, group)


@ASSIGNORS
@given(group=groups())
@settings(max_examples=150)
def test_members_with_different_topics_come_to_rest(
    assignor: AbstractStickyAssignor, says: Owning, group: Group
) -> None:
    comes_to_rest(assignor, says, group)


@ASSIGNORS
@given(group=groups(racks=True))
@example(group=EAGER_UNREST)
@example(group=COOPERATIVE_UNREST)
@settings(max_examples=250)
def test_members_with_different_topics_and_racks_come_to_rest(
    assignor: AbstractStickyAssignor, says: Owning, group: Group
) -> None:
    comes_to_rest(assignor, says, group)


def comes_to_rest(assignor: AbstractStickyAssignor, says: Owning, group: Group) -> None:
    topics, members = group
    told = {member: says(each, each.generation) for member, each in members.items()}
    history: list[Shares] = []
    for generation in range(NEWEST, NEWEST + ROUNDS + 3):
        shares = assignor.share(topics, told)
        given_out = [each for share in shares.values() for each in share]
        assert len(set(given_out)) == len(given_out), "two have it"
        for member, share in shares.items():
            assert {each.topic for each in share} <= set(members[member].topics), "nobody asked for it"
        history.append({member: sorted(share) for member, share in shares.items()})
        told = {
            member: says(each._replace(owned=tuple(shares[member])), generation) for member, each in members.items()
        }
    assert history[ROUNDS - 1 :] == [history[-1]] * 4
    check(topics, members, history[-1])
    assert could_be_more_even(members, history[-1]) is None


def could_be_more_even(members: Subscriptions, shares: Shares) -> tuple[str, str] | None:
    """Two, of whom one could give something to the other, perhaps by way of third ones, and still have as much.

    Where there are none nothing is more even: no sharing has a lower sum of squares.
    """
    for first, most in shares.items():
        reached = [first]
        for giver in reached:
            held = {each.topic for each in shares[giver]}
            for taker, member in members.items():
                if taker not in reached and held & set(member.topics):
                    if len(shares[taker]) + 1 < len(most):
                        return first, taker
                    reached.append(taker)
    return None


def test_what_could_be_more_even_is_seen() -> None:
    """By way of a third one: nothing of the first is for the last."""
    members = {"a": MemberSubscription(("t",)), "b": MemberSubscription(("t", "u")), "c": MemberSubscription(("u",))}
    shares = {"a": [TopicPartition("t", 0), TopicPartition("t", 1)], "b": [TopicPartition("u", 0)], "c": []}
    assert could_be_more_even(members, shares) == ("a", "c")
