"""Static members (KIP-345): a restart within the session moves nothing, a second of the same name fences the first."""

import pytest

from tests.support.group_members import FAST_GROUPS, Feeder, Group, Member, feed
from tests.support.server import RunningServer
from tests.support.topics import create_topic

BROKER_SETTINGS = FAST_GROUPS
PARTITIONS = 4
JAVA = "kafka-4.3"


# Not kafka-python: its leader, back from a restart, takes the group for changed and asks for a rebalance.
@pytest.mark.parametrize("library", ["confluent", "aiokafka", pytest.param(JAVA, marks=pytest.mark.java)])
def test_a_static_member_that_restarts_gets_its_own_back_and_nobody_rebalances(
    broker: RunningServer, group: Group, topic: str, library: str
) -> None:
    create_topic(broker, topic, partitions=PARTITIONS)
    with Feeder(broker, topic, PARTITIONS) as feeder:
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


def test_each_of_a_group_of_static_members_is_restarted_in_turn(
    broker: RunningServer, group: Group, topic: str
) -> None:
    """A rolling bounce: also a clean close does not leave the group, and nothing moves in the whole roll."""
    create_topic(broker, topic, partitions=PARTITIONS)
    with Feeder(broker, topic, PARTITIONS) as feeder:
        members = [_join(group, "confluent", name) for name in ("a", "b", "c")]
        group.wait_until_shared(members, PARTITIONS)
        had = [member.owned for member in members]
        for index, name in enumerate(("a", "b", "c")):
            members[index].close()
            members[index] = _join(group, "confluent", name)
            members[index].wait_for(lambda one, wanted=had[index]: one.owned == wanted)
        ends = feeder.stop()
    group.wait_until_done(ends)

    assert [len(member.of("assigned")) for member in members] == [1, 1, 1]
    group.assert_sound(ends)


def test_a_static_member_that_stays_away_loses_its_partitions(broker: RunningServer, group: Group, topic: str) -> None:
    create_topic(broker, topic, partitions=PARTITIONS)
    ends = feed(broker, topic, PARTITIONS, 20)
    stays, goes = _join(group, "kafka-python", "a"), _join(group, "kafka-python", "b", "1000")
    group.wait_until_shared([stays, goes], PARTITIONS)
    goes.kill()
    group.wait_until_shared([stays], PARTITIONS)
    group.wait_until_done(ends)

    group.assert_sound(ends)


@pytest.mark.parametrize("library", ["confluent", pytest.param(JAVA, marks=pytest.mark.java)])
def test_the_second_member_of_a_name_fences_the_first(
    broker: RunningServer, group: Group, topic: str, library: str
) -> None:
    create_topic(broker, topic, partitions=PARTITIONS)
    feed(broker, topic, PARTITIONS, 20)
    first = _join(group, library, "same")
    group.wait_until_shared([first], PARTITIONS)
    second = _join(group, library, "same")
    second.wait_for(lambda one: len(one.owned) == PARTITIONS)

    first.wait_for(lambda one: any("fenced" in event["error"].lower() for event in one.of("error", "commit_failed")))
    more = feed(broker, topic, PARTITIONS, 20)
    group.wait_until_done(more)
    late = [event for event in first.of("committed") if event["at_ns"] > second.of("assigned")[0]["at_ns"]]
    assert late == []


def _join(group: Group, library: str, name: str, session_timeout_ms: str = "6000") -> Member:
    settings = {
        "group.instance.id": name,
        "session.timeout.ms": session_timeout_ms,
        "partition.assignment.strategy": "range",
    }
    return group.join(library, settings)
