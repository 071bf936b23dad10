"""Static members (KIP-345): a restart within the session moves nothing, a second of the same name fences the first."""

import pytest

from tests.integration.groups.conftest import NewGroup
from tests.support.at_once import each_at_once
from tests.support.group_members import FAST_GROUPS, Feeder, Group, Member, feed
from tests.support.server import RunningServer

BROKER_SETTINGS = FAST_GROUPS
PARTITIONS = 4


@pytest.mark.java
def test_a_static_member_that_restarts_gets_its_own_back_and_nobody_rebalances(new_group: NewGroup, java: str) -> None:
    def story(library: str) -> None:
        group = new_group(library)
        group.create_topic(PARTITIONS)
        with Feeder(group.broker, group.topic, PARTITIONS) as feeder:
            stays, goes = _join(group, library, "a"), _join(group, library, "b")
            group.wait_until_shared([stays, goes], PARTITIONS)
            had, seen = goes.owned, len(stays.of("assigned", "revoked"))
            goes.kill()
            comes = _join(group, library, "b")
            comes.wait_for(lambda one: one.owned == had)
            ends = feeder.stop()
        group.wait_until_done(ends)
        assert len(stays.of("assigned", "revoked")) == seen
        group.assert_sound(ends)

    # Not kafka-python: its leader, back from a restart, takes the group for changed and asks for a rebalance.
    each_at_once(["confluent", "aiokafka", "kavka", java], story)


def test_each_of_a_group_of_static_members_is_restarted_in_turn(broker: RunningServer, group: Group) -> None:
    """A rolling bounce: also a clean close does not leave the group, and nothing moves in the whole roll."""
    group.create_topic(PARTITIONS)
    with Feeder(broker, group.topic, PARTITIONS) as feeder:
        members = [_join(group, "confluent", name) for name in ("a", "b", "c")]
        group.wait_until_shared(members, PARTITIONS)
        had = [member.owned for member in members]
        for index, name in enumerate(("a", "b", "c")):
            members[index].close()
            members[index] = _join(group, "confluent", name)
            wanted = had[index]
            members[index].wait_for(lambda one: one.owned == wanted)  # noqa: B023 - called before the loop goes on
        ends = feeder.stop()
    group.wait_until_done(ends)

    assert [len(member.of("assigned")) for member in members] == [1, 1, 1]
    group.assert_sound(ends)


def test_a_static_member_that_stays_away_loses_its_partitions(broker: RunningServer, group: Group) -> None:
    group.create_topic(PARTITIONS)
    stays, goes = _join(group, "kafka-python", "a"), _join(group, "kafka-python", "b", "6000")
    group.wait_until_shared([stays, goes], PARTITIONS)
    goes.kill()
    ends = feed(broker, group.topic, PARTITIONS, 20)
    group.wait_until_shared([stays], PARTITIONS)
    group.wait_until_done(ends)

    group.assert_sound(ends)


@pytest.mark.java
def test_the_second_member_of_a_name_fences_the_first(new_group: NewGroup, java: str) -> None:
    def story(library: str) -> None:
        group = new_group(library)
        group.create_topic(PARTITIONS)
        ends = feed(group.broker, group.topic, PARTITIONS, 20)
        first = _join(group, library, "same")
        # Nothing of what it may still commit is under way, or not told of yet, when the second one comes.
        group.wait_until_done(ends)
        second = _join(group, library, "same")
        second.wait_for(lambda one: len(one.owned) == PARTITIONS)
        first.wait_for(_fenced)
        more = feed(group.broker, group.topic, PARTITIONS, 20)
        group.wait_until_done(more)
        taken_ns = next(event["at_ns"] for event in second.of("assigned") if event["partitions"])
        assert [event for event in first.of("committed") if event["at_ns"] > taken_ns] == []

    each_at_once(["confluent", "kavka", java], story)


def _fenced(member: Member) -> bool:
    return any("fenced" in event["error"].lower() for event in member.of("error", "commit_failed"))


def _join(group: Group, library: str, name: str, session_timeout_ms: str = "45000") -> Member:
    settings = {
        "group.instance.id": name,
        "session.timeout.ms": session_timeout_ms,
        "partition.assignment.strategy": "range",
    }
    return group.join(library, settings)
