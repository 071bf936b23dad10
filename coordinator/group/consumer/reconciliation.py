"""How a member gets from what it has to what it shall have, one heartbeat at a time.

| state | the member | and then |
|-|-|-|
| STABLE | is in the target's epoch | nothing |
| STABLE | is behind | on its way, as below |
| UNREVOKED_PARTITIONS | still owns, or does not say what it owns | nothing |
| UNREVOKED_PARTITIONS | has given up all that it should | on its way, as below |
| UNRELEASED_PARTITIONS | | on its way, as below |

On its way: what it has and shall not have must be given up first (UNREVOKED_PARTITIONS, in the old epoch). Then it
moves to the target's epoch and gets what is free (STABLE), or waits for what others still hold (UNRELEASED_PARTITIONS).
So a partition has one owner at any time, and each member moves at its own pace.
"""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from kavka.coordinator.group.consumer.assignment import (
    NO_PARTITIONS,
    NOTHING_ASSIGNED,
    Assignment,
    have_common,
)
from kavka.coordinator.group.consumer.member import Member, MemberState
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.consumer_group_heartbeat import TopicPartitions


class Surroundings(NamedTuple):
    """What a member's next step depends on, the member apart."""

    target_epoch: int
    target: Assignment
    subscribed: AbstractSet[bytes]
    """Ids of the existing topics that the member is subscribed to."""
    owner: Callable[[bytes, int], str | None]
    """Which member has a partition."""


def next_step(
    member: Member, around: Surroundings, owned: Sequence[TopicPartitions] | None, *, subscription_changed: bool
) -> Member:
    """The member after this heartbeat; the same one if nothing changes.

    `owned`: what it says it has, None if it does not say. `subscription_changed`: topics that it gave up with this
    heartbeat are taken from it at once, also where the target still has them (a new regular expression is resolved
    later). Raises BrokerError (FENCED_MEMBER_EPOCH) for a member whose state only a later Kafka knows.
    """
    if member.state is MemberState.STABLE:
        if member.epoch != around.target_epoch:
            return _towards_target(member, around, owned)
    elif member.state is MemberState.UNREVOKED_PARTITIONS:
        if owned is not None and not have_common(owned, member.revoking):
            return _towards_target(member, around, owned)
    elif member.state is MemberState.UNRELEASED_PARTITIONS:
        return _towards_target(member, around, owned)
    else:
        if owned is None or owned:
            raise BrokerError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The consumer group member is in a unknown state. "
                "The member must abandon all its partitions and rejoin.",
            )
        return _towards_target(member._replace(epoch=around.target_epoch), around, owned)
    return _without_unsubscribed(member, around, owned) if subscription_changed else member


def _towards_target(member: Member, around: Surroundings, owned: Sequence[TopicPartitions] | None) -> Member:
    keeps: dict[bytes, frozenset[int]] = {}
    revokes: dict[bytes, frozenset[int]] = {}
    for topic_id, numbers in member.assigned.items():
        wanted = around.target.get(topic_id, NO_PARTITIONS) if topic_id in around.subscribed else NO_PARTITIONS
        if stays := numbers & wanted:
            keeps[topic_id] = stays
        if goes := numbers - wanted:
            revokes[topic_id] = goes
    if revokes and (owned is None or have_common(owned, revokes)):
        return _unrevoked(member, keeps, revokes)
    waits = False
    epochs = member.epochs_of(keeps)
    for topic_id, wanted in around.target.items():
        if topic_id not in around.subscribed:
            continue
        new = [number for number in wanted if number not in member.assigned.get(topic_id, NO_PARTITIONS)]
        free = [number for number in new if around.owner(topic_id, number) in (None, member.member_id)]
        waits = waits or len(free) < len(new)
        if free:
            keeps[topic_id] = keeps.get(topic_id, NO_PARTITIONS).union(free)
            epochs.setdefault(topic_id, {}).update(dict.fromkeys(free, around.target_epoch))
    return member._replace(
        state=MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE,
        previous_epoch=member.epoch,
        epoch=around.target_epoch,
        assigned=keeps,
        revoking=NOTHING_ASSIGNED,
        assignment_epochs=epochs,
    )


def _without_unsubscribed(member: Member, around: Surroundings, owned: Sequence[TopicPartitions] | None) -> Member:
    keeps = {topic_id: numbers for topic_id, numbers in member.assigned.items() if topic_id in around.subscribed}
    if len(keeps) == len(member.assigned):
        return member
    revokes = dict(member.revoking)
    for topic_id, numbers in member.assigned.items():
        if topic_id not in keeps:
            revokes[topic_id] = revokes.get(topic_id, NO_PARTITIONS) | numbers
    if owned is None or have_common(owned, revokes):
        return _unrevoked(member, keeps, revokes)
    return member._replace(
        previous_epoch=member.epoch, assigned=keeps, assignment_epochs=member.epochs_of(keeps, member.revoking)
    )


def _unrevoked(member: Member, keeps: Assignment, revokes: Assignment) -> Member:
    return member._replace(
        state=MemberState.UNREVOKED_PARTITIONS,
        previous_epoch=member.epoch,
        assigned=keeps,
        revoking=revokes,
        assignment_epochs=member.epochs_of(keeps, revokes),
    )
