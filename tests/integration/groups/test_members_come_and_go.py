"""Groups of the classic protocol: members of every library join, leave and are killed while records flow."""

import pytest

from tests.support.group_members import FAST_GROUPS, Feeder, Group, feed
from tests.support.server import RunningServer
from tests.support.topics import create_topic

BROKER_SETTINGS = FAST_GROUPS
PARTITIONS = 6
EAGER = {"partition.assignment.strategy": "range"}
JAVA = "kafka-4.3"
LIBRARIES = ["confluent", "kafka-python", "aiokafka", pytest.param(JAVA, marks=pytest.mark.java)]


@pytest.mark.parametrize("library", LIBRARIES)
def test_members_join_leave_and_are_killed_and_nothing_is_skipped(
    broker: RunningServer, group: Group, topic: str, library: str
) -> None:
    create_topic(broker, topic, partitions=PARTITIONS)
    with Feeder(broker, topic, PARTITIONS) as feeder:
        first, second = group.join(library, EAGER), group.join(library, EAGER)
        group.wait_until_shared([first, second], PARTITIONS)
        third = group.join(library, EAGER)
        group.wait_until_shared([first, second, third], PARTITIONS)
        second.close()
        group.wait_until_shared([first, third], PARTITIONS)
        first.kill()
        group.wait_until_shared([third], PARTITIONS)
        ends = feeder.stop()
    group.wait_until_done(ends)
    third.close()

    group.assert_sound(ends)


@pytest.mark.java
@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_all_libraries_share_one_group(broker: RunningServer, group: Group, topic: str, assignor: str) -> None:
    create_topic(broker, topic, partitions=PARTITIONS)
    settings = {"partition.assignment.strategy": assignor}
    with Feeder(broker, topic, PARTITIONS) as feeder:
        members = [group.join(library, settings) for library in (JAVA, "confluent", "kafka-python", "aiokafka")]
        group.wait_until_shared(members, PARTITIONS)
        members.pop(0).close()
        group.wait_until_shared(members, PARTITIONS)
        members.pop(1).kill()
        group.wait_until_shared(members, PARTITIONS)
        members.append(group.join("confluent", settings))
        group.wait_until_shared(members, PARTITIONS)
        ends = feeder.stop()
    group.wait_until_done(ends)
    for member in members:
        member.close()

    group.assert_sound(ends)


@pytest.mark.java
def test_cooperative_members_keep_what_stays_theirs(broker: RunningServer, group: Group, topic: str) -> None:
    create_topic(broker, topic, partitions=PARTITIONS)
    settings = {"partition.assignment.strategy": "cooperative-sticky"}
    with Feeder(broker, topic, PARTITIONS) as feeder:
        first = group.join(JAVA, settings)
        group.wait_until_shared([first], PARTITIONS)
        second = group.join("confluent", settings)
        group.wait_until_shared([first, second], PARTITIONS)
        third = group.join("kafka-python", settings)
        group.wait_until_shared([first, second, third], PARTITIONS)
        second.kill()
        group.wait_until_shared([first, third], PARTITIONS)
        ends = feeder.stop()
    group.wait_until_done(ends)

    group.assert_sound(ends)
    # Two rebalances later it has lost four of six, and never more than had to go.
    given_up = [len(event["partitions"]) for event in first.of("revoked")]
    assert sum(given_up) == 4


def test_a_group_goes_on_where_the_last_one_stopped(broker: RunningServer, group: Group, topic: str) -> None:
    """Also when the next members are of another library, and nobody was there in between."""
    create_topic(broker, topic, partitions=2)
    total = 0
    for library in ("confluent", "kafka-python", "aiokafka"):
        ends = feed(broker, topic, 2, 30)
        total += 60
        member = group.join(library, EAGER)
        group.wait_until_done(ends)
        member.close()
        delivered = sum(event["next"] - event["first"] for one in group.members for event in one.of("delivered"))
        assert delivered == total

    group.assert_sound(ends)


@pytest.mark.parametrize("mode", ["async", "auto"])
@pytest.mark.parametrize("library", ["kafka-python", "aiokafka"])
def test_unwaited_commits_stand_after_a_clean_close(
    broker: RunningServer, group: Group, topic: str, library: str, mode: str
) -> None:
    create_topic(broker, topic, partitions=2)
    ends = feed(broker, topic, 2, 100)
    settings = {**EAGER, "member.commit": mode, "auto.commit.interval.ms": "100"}
    first = group.join(library, settings)
    first.wait_for(lambda one: sum(event["next"] - event["first"] for event in one.of("delivered")) == 200)
    if mode == "async":
        group.wait_until_done(ends)
    first.close()
    after = feed(broker, topic, 2, 10)
    second = group.join(library, EAGER)
    group.wait_until_done(after)

    assert min(event["first"] for event in second.of("delivered")) == 100
    assert ends == {f"{topic}-0": 100, f"{topic}-1": 100}
