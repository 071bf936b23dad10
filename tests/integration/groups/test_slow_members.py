"""Members that are too slow, frozen, paused or that seek: who may commit then, and what is delivered to whom."""

import time

import pytest

from tests.integration.groups.conftest import NewGroup
from tests.support.at_once import each_at_once
from tests.support.group_members import FAST_GROUPS, WAIT_S, Group, Member, feed
from tests.support.processes import let_pass, wait_until

pytestmark = pytest.mark.java
BROKER_SETTINGS = FAST_GROUPS
PARTITIONS = 4
PAUSED_SESSION_MS = 8000
RANGE = {"partition.assignment.strategy": "range"}
# What each library says when its generation is over; librdkafka knows it itself, without asking the broker.
TOO_LATE = (
    *("CommitFailed", "UNKNOWN_MEMBER_ID", "UnknownMember", "ILLEGAL_GENERATION", "IllegalGeneration", "IllegalState"),
    *("_MAX_POLL_EXCEEDED", "_STATE", "_ASSIGNMENT_LOST", "RebalanceInProgress", "REBALANCE_IN_PROGRESS"),
)


def test_who_processes_longer_than_the_poll_interval_is_out_and_cannot_commit(new_group: NewGroup, java: str) -> None:
    def story(library: str) -> None:
        group = new_group(library)
        group.create_topic(PARTITIONS)
        settings = {**RANGE, "max.poll.interval.ms": "1500", "session.timeout.ms": "1500"}
        slow, quick = group.join(library, settings), group.join("confluent", RANGE)
        group.wait_until_shared([slow, quick], PARTITIONS)
        slow.order("hold")
        ends = _feed_until_delivered(group, slow)
        _check_replaced(group, slow, quick, ends)

    each_at_once(["confluent", "kafka-python", "kavka", java], story)


def test_a_frozen_member_is_replaced_and_its_late_commit_refused(new_group: NewGroup, java: str) -> None:
    def story(library: str) -> None:
        group = new_group(library)
        group.create_topic(PARTITIONS)
        settings = {**RANGE, "session.timeout.ms": "1000"}
        frozen, lively = group.join(library, settings), group.join("confluent", RANGE)
        group.wait_until_shared([frozen, lively], PARTITIONS)
        # So that it is frozen before it commits.
        frozen.order("hold")
        ends = _feed_until_delivered(group, frozen)
        frozen.freeze()
        lively.wait_for(lambda one: len(one.owned) == PARTITIONS and _committed(one, ends))
        frozen.thaw()
        _check_replaced(group, frozen, lively, ends)

    each_at_once(["confluent", "kafka-python", "aiokafka", "kavka", java], story)


def test_a_paused_member_stays_in_the_group_and_a_seek_delivers_again(new_group: NewGroup, java: str) -> None:
    def story(library: str) -> None:
        group = new_group(library)
        group.create_topic(1)
        feed(group.broker, group.topic, 1, 20)
        member = group.join(library, {**RANGE, "session.timeout.ms": str(PAUSED_SESSION_MS)})
        member.wait_for(lambda one: _committed(one, {f"{group.topic}-0": 20}))
        member.order("pause")
        member.order(f"seek {group.topic}-0 5")
        # From here on: kafka-python asks for a second rebalance of itself soon after its first.
        joined = len(member.of("assigned"))
        ends = feed(group.broker, group.topic, 1, 10)
        let_pass(PAUSED_SESSION_MS / 1000 + 0.5)
        before = member.of("delivered")
        member.order("resume")
        member.wait_for(lambda one: _committed(one, ends))

        assert [(event["first"], event["next"]) for event in before] == [(0, 20)]
        after = member.of("delivered")[len(before) :]
        assert (after[0]["first"], after[-1]["next"]) == (5, 30)
        assert len(member.of("assigned")) == joined
        assert member.of("lost", "error") == []

    each_at_once(["confluent", "kafka-python", "aiokafka", "kavka", java], story)


def _feed_until_delivered(group: Group, member: Member) -> dict[str, int]:
    """Feed until the member has been given something since: its short session may have ended before. The ends."""
    before = len(member.of("delivered"))

    def delivered() -> dict[str, int] | None:
        ends = feed(group.broker, group.topic, PARTITIONS, 20)
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            if len(member.of("delivered")) > before:
                return ends
            let_pass(0.05)
        return None

    return wait_until(delivered, WAIT_S, group.story)


def _check_replaced(group: Group, asleep: Member, awake: Member, ends: dict[str, int]) -> None:
    """The other has taken over and committed all; the late one's commit fails, it comes back and all is well."""
    awake.wait_for(lambda one: _committed(one, ends))
    asleep.order("release")
    failed = asleep.wait_for(lambda one: one.of("commit_failed") or _committed_anew(one))
    assert not isinstance(failed, list) or any(word in failed[0]["error"] for word in TOO_LATE), failed
    group.wait_until_shared([asleep, awake], PARTITIONS)
    more = feed(group.broker, group.topic, PARTITIONS, 20)
    group.wait_until_done(more)
    group.assert_sound(more, zombies=[asleep])


def _committed_anew(member: Member) -> bool:
    """Whether it was a member again when it committed: aiokafka joins while a batch is being processed."""
    kinds = [event["event"] for event in member.of("delivered", "assigned", "committed")]
    since = kinds[kinds.index("delivered") :]
    return "committed" in since and "assigned" in since[: since.index("committed")]


def _committed(member: Member, ends: dict[str, int]) -> bool:
    reached: dict[str, int] = {}
    for event in member.of("committed"):
        reached |= event["offsets"]
    return all(reached.get(name, 0) >= end for name, end in ends.items())
