"""Members that are too slow, frozen, paused or that seek: who may commit then, and what is delivered to whom."""

import time

import pytest

from tests.support.group_members import FAST_GROUPS, Group, Member, feed
from tests.support.processes import wait_until
from tests.support.server import RunningServer
from tests.support.topics import create_topic

BROKER_SETTINGS = FAST_GROUPS
PARTITIONS = 4
JAVA = "kafka-4.3"
EAGER = {"partition.assignment.strategy": "range"}
LIBRARIES = ["confluent", "kafka-python", "aiokafka", pytest.param(JAVA, marks=pytest.mark.java)]
# What each library says when its generation is over; librdkafka knows it itself, without asking the broker.
TOO_LATE = (
    "CommitFailed",
    "UNKNOWN_MEMBER_ID",
    "ILLEGAL_GENERATION",
    "IllegalGeneration",
    "UnknownMember",
    "IllegalState",
)
TOO_LATE += ("_MAX_POLL_EXCEEDED", "_STATE", "_ASSIGNMENT_LOST", "RebalanceInProgress", "REBALANCE_IN_PROGRESS")


@pytest.mark.parametrize("library", ["confluent", "kafka-python", pytest.param(JAVA, marks=pytest.mark.java)])
def test_who_processes_longer_than_the_poll_interval_is_out_and_cannot_commit(
    broker: RunningServer, group: Group, topic: str, library: str
) -> None:
    create_topic(broker, topic, partitions=PARTITIONS)
    settings = {**EAGER, "max.poll.interval.ms": "1500", "session.timeout.ms": "1000"}
    slow, quick = group.join(library, settings), group.join("confluent", EAGER)
    group.wait_until_shared([slow, quick], PARTITIONS)
    slow.order("process 6000")
    ends = feed(broker, topic, PARTITIONS, 20)
    quick.wait_for(lambda one: len(one.owned) == PARTITIONS)
    quick.wait_for(lambda one: _committed(one, ends))

    failed = slow.wait_for(lambda one: one.of("commit_failed"))
    assert any(word in failed[0]["error"] for word in TOO_LATE), failed
    group.wait_until_shared([slow, quick], PARTITIONS)
    more = feed(broker, topic, PARTITIONS, 20)
    group.wait_until_done(more)
    group.assert_sound(more, zombies=[slow])


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frozen_member_is_replaced_and_its_late_commit_refused(
    broker: RunningServer, group: Group, topic: str, library: str
) -> None:
    create_topic(broker, topic, partitions=PARTITIONS)
    frozen, lively = group.join(library, {**EAGER, "session.timeout.ms": "1000"}), group.join("confluent", EAGER)
    group.wait_until_shared([frozen, lively], PARTITIONS)
    frozen.order("process 500")
    ends = feed(broker, topic, PARTITIONS, 20)
    frozen.wait_for(lambda one: one.of("delivered"))
    frozen.freeze()
    lively.wait_for(lambda one: len(one.owned) == PARTITIONS)
    lively.wait_for(lambda one: _committed(one, ends))
    frozen.thaw()

    failed = frozen.wait_for(lambda one: one.of("commit_failed"))
    assert any(word in failed[0]["error"] for word in TOO_LATE), failed
    group.wait_until_shared([frozen, lively], PARTITIONS)
    more = feed(broker, topic, PARTITIONS, 20)
    group.wait_until_done(more)
    group.assert_sound(more, zombies=[frozen])


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_paused_member_stays_in_the_group_and_a_seek_delivers_again(
    broker: RunningServer, group: Group, topic: str, library: str
) -> None:
    create_topic(broker, topic, partitions=1)
    feed(broker, topic, 1, 20)
    member = group.join(library, {**EAGER, "session.timeout.ms": "1000"})
    member.wait_for(lambda one: _committed(one, {f"{topic}-0": 20}))
    joined = len(member.of("assigned"))
    member.order("pause")
    member.order(f"seek {topic}-0 5")
    ends = feed(broker, topic, 1, 10)
    outlived_ns = time.monotonic_ns() + 1_500_000_000
    wait_until(lambda: time.monotonic_ns() > outlived_ns, 5, "")
    before = member.of("delivered")
    member.order("resume")
    member.wait_for(lambda one: _committed(one, ends))

    assert [(event["first"], event["next"]) for event in before] == [(0, 20)]
    assert [(event["first"], event["next"]) for event in member.of("delivered")] == [(0, 20), (5, 30)]
    assert len(member.of("assigned")) == joined
    assert member.of("lost", "error") == []


def _committed(member: Member, ends: dict[str, int]) -> bool:
    reached: dict[str, int] = {}
    for event in member.of("committed"):
        reached |= event["offsets"]
    return all(reached.get(name, 0) >= end for name, end in ends.items())
