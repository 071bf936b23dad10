"""A member's next step, state by state: what it has, shall have, says it owns, and what others hold."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kavka.coordinator.group.consumer.assignment import Assignment
from kavka.coordinator.group.consumer.member import Member, MemberState
from kavka.coordinator.group.consumer.reconciliation import Surroundings, next_step
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.consumer_group_heartbeat import TopicPartitions

STABLE, UNREVOKED, UNRELEASED = (
    MemberState.STABLE,
    MemberState.UNREVOKED_PARTITIONS,
    MemberState.UNRELEASED_PARTITIONS,
)
T, U = b"t" * 16, b"u" * 16


def t(*numbers: int) -> Assignment:
    return {T: frozenset(numbers)} if numbers else {}


def step(
    member: Member,
    target: Assignment,
    owned: Sequence[int] | None,
    *,
    others_hold: Sequence[int] = (),
    subscribed: frozenset[bytes] = frozenset({T, U}),
    subscription_changed: bool = False,
    target_epoch: int = 2,
) -> Member:
    def owner(_topic_id: bytes, number: int) -> str | None:
        return "other" if number in others_hold else None

    said = None if owned is None else [TopicPartitions(topic_id=T, partitions=list(owned))] if owned else []
    around = Surroundings(target_epoch, target, subscribed, owner)
    return next_step(member, around, said, subscription_changed=subscription_changed)


def at(epoch: int, state: MemberState, assigned: Assignment, revoking: Assignment | None = None) -> Member:
    return Member("m", epoch=epoch, previous_epoch=epoch, state=state, assigned=assigned, revoking=revoking or {})


@pytest.mark.parametrize(
    ("member", "target", "owned", "others_hold", "after"),
    [
        # In the target's epoch nothing happens, whatever it says.
        (at(2, STABLE, t(0)), t(0), None, [], (2, STABLE, t(0), t())),
        # Behind: what is new and free comes at once.
        (at(1, STABLE, t(0)), t(0, 1), None, [], (2, STABLE, t(0, 1), t())),
        (at(0, STABLE, t()), t(), [], [], (2, STABLE, t(), t())),
        # What others hold is waited for; what is free comes.
        (at(1, STABLE, t(0)), t(0, 1, 2), None, [1], (2, UNRELEASED, t(0, 2), t())),
        (at(1, STABLE, t()), t(0), [], [0], (2, UNRELEASED, t(), t())),
        # Behind, with something too much: first it gives up, in its own epoch.
        (at(1, STABLE, t(0, 1)), t(0, 2), None, [], (1, UNREVOKED, t(0), t(1))),
        (at(1, STABLE, t(0, 1)), t(0, 2), [0, 1], [], (1, UNREVOKED, t(0), t(1))),
        # It says that it does not own it any more: on it goes.
        (at(1, STABLE, t(0, 1)), t(0, 2), [0], [], (2, STABLE, t(0, 2), t())),
        # Giving up: not yet, or it does not say.
        (at(1, UNREVOKED, t(0), t(1)), t(0, 2), [0, 1], [], (1, UNREVOKED, t(0), t(1))),
        (at(1, UNREVOKED, t(0), t(1)), t(0, 2), None, [], (1, UNREVOKED, t(0), t(1))),
        # Done.
        (at(1, UNREVOKED, t(0), t(1)), t(0, 2), [0], [], (2, STABLE, t(0, 2), t())),
        (at(1, UNREVOKED, t(0), t(1)), t(0, 2), [0], [2], (2, UNRELEASED, t(0), t())),
        # Meanwhile the target moved on: there is more to give up.
        (at(1, UNREVOKED, t(0), t(1)), t(2), [0], [], (1, UNREVOKED, t(), t(0))),
        # Waiting: what was released comes, the rest is waited for.
        (at(2, UNRELEASED, t(0), t()), t(0, 1, 2), None, [2], (2, UNRELEASED, t(0, 1), t())),
        (at(2, UNRELEASED, t(0), t()), t(0, 1, 2), None, [], (2, STABLE, t(0, 1, 2), t())),
        # Waiting, when the target takes something away.
        (at(1, UNRELEASED, t(0), t()), t(1), [0], [], (1, UNREVOKED, t(), t(0))),
    ],
)
def test_the_next_step(
    member: Member,
    target: Assignment,
    owned: Sequence[int] | None,
    others_hold: Sequence[int],
    after: tuple[int, MemberState, Assignment, Assignment],
) -> None:
    stepped = step(member, target, owned, others_hold=others_hold)
    assert (stepped.epoch, stepped.state, stepped.assigned, stepped.revoking) == after
    if stepped is not member:
        assert stepped.previous_epoch == member.epoch


def test_what_it_has_given_up_itself_may_come_back_to_it() -> None:
    """The target moved twice: the partition that it is giving up is its own again."""
    around = Surroundings(3, t(0, 1), frozenset({T}), lambda _topic_id, number: "m" if number < 2 else None)
    owned = [TopicPartitions(topic_id=T, partitions=[0])]
    stepped = next_step(at(1, UNREVOKED, t(0), t(1)), around, owned, subscription_changed=False)
    assert (stepped.state, stepped.assigned) == (STABLE, t(0, 1))


def test_topics_that_it_unsubscribed_from_are_taken_before_the_target_knows() -> None:
    member = Member("m", epoch=2, previous_epoch=2, assigned={T: frozenset({0}), U: frozenset({0})})
    target = {T: frozenset({0}), U: frozenset({0})}
    stepped = step(member, target, [0], subscribed=frozenset({U}), subscription_changed=True)
    assert (stepped.state, stepped.assigned, stepped.revoking) == (UNREVOKED, {U: frozenset({0})}, t(0))
    done = step(member, target, [], subscribed=frozenset({U}), subscription_changed=True)
    assert (done.state, done.assigned, done.revoking) == (STABLE, {U: frozenset({0})}, {})
    assert step(member, target, [0], subscription_changed=True) is member


def test_a_state_of_a_later_kafka_sends_the_member_back_to_the_start() -> None:
    member = at(1, MemberState.UNKNOWN, t(0))
    for owned in (None, [0]):
        with pytest.raises(BrokerError) as caught:
            step(member, t(0), owned)
        assert caught.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    assert step(member, t(0), []).state is STABLE
