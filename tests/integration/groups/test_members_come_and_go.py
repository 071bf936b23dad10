"""Groups of the classic protocol: members of every library join, leave and are killed while records flow."""

import pytest

from tests.integration.groups.conftest import NewGroup
from tests.support.at_once import each_at_once
from tests.support.group_members import FAST_GROUPS, MORTAL, Feeder, Group, feed
from tests.support.server import RunningServer

pytestmark = pytest.mark.java
BROKER_SETTINGS = FAST_GROUPS
PARTITIONS = 6
RANGE = {"partition.assignment.strategy": "range"}


def test_members_join_leave_and_are_killed_and_nothing_is_skipped(new_group: NewGroup, java: str) -> None:
    def story(library: str) -> None:
        group = new_group(library)
        group.create_topic(PARTITIONS)
        with Feeder(group.broker, group.topic, PARTITIONS) as feeder:
            first, second = group.join(library, {**RANGE, **MORTAL}), group.join(library, RANGE)
            group.wait_until_shared([first, second], PARTITIONS)
            third = group.join(library, RANGE)
            group.wait_until_shared([first, second, third], PARTITIONS)
            second.close()
            group.wait_until_shared([first, third], PARTITIONS)
            first.kill()
            group.wait_until_shared([third], PARTITIONS)
            ends = feeder.stop()
        group.wait_until_done(ends)
        third.close()
        group.assert_sound(ends)

    each_at_once(["confluent", "kafka-python", "aiokafka", java], story)


def test_all_libraries_share_one_group(new_group: NewGroup, java: str) -> None:
    def story(assignor: str) -> None:
        group = new_group(assignor)
        group.create_topic(PARTITIONS)
        settings = {"partition.assignment.strategy": assignor}
        with Feeder(group.broker, group.topic, PARTITIONS) as feeder:
            lasts = [(java, settings), ("confluent", settings), ("kafka-python", {**settings, **MORTAL})]
            members = [group.join(*each) for each in (*lasts, ("aiokafka", settings))]
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

    each_at_once(["range", "roundrobin"], story)


def test_cooperative_members_keep_what_stays_theirs(broker: RunningServer, group: Group, java: str) -> None:
    group.create_topic(PARTITIONS)
    settings = {"partition.assignment.strategy": "cooperative-sticky"}
    with Feeder(broker, group.topic, PARTITIONS) as feeder:
        first = group.join(java, settings)
        group.wait_until_shared([first], PARTITIONS)
        second = group.join("confluent", {**settings, **MORTAL})
        group.wait_until_shared([first, second], PARTITIONS)
        third = group.join("kafka-python", settings)
        group.wait_until_shared([first, second, third], PARTITIONS)
        second.kill()
        group.wait_until_shared([first, third], PARTITIONS)
        ends = feeder.stop()
    group.wait_until_done(ends)

    group.assert_sound(ends)
    # Two rebalances later it has lost four of six, and never more than had to go.
    assert sum(len(event["partitions"]) for event in first.of("revoked")) == 4


def test_a_group_goes_on_where_the_last_one_stopped(broker: RunningServer, group: Group) -> None:
    """Also when the next members are of another library, and nobody was there in between."""
    group.create_topic(2)
    total = 0
    for library in ("confluent", "kafka-python", "aiokafka"):
        ends = feed(broker, group.topic, 2, 30)
        total += 60
        member = group.join(library, RANGE)
        group.wait_until_done(ends)
        member.close()
        delivered = sum(event["next"] - event["first"] for one in group.members for event in one.of("delivered"))
        assert delivered == total

    group.assert_sound(ends)


def test_unwaited_commits_stand_after_a_clean_close(new_group: NewGroup, java: str) -> None:
    def story(name: str) -> None:
        library, _, mode = name.rpartition(".")
        group = new_group(name)
        group.create_topic(2)
        ends = feed(group.broker, group.topic, 2, 100)
        assert set(ends.values()) == {100}
        settings = {**RANGE, "member.commit": mode, "auto.commit.interval.ms": "100"}
        first = group.join(library, settings)
        first.wait_for(lambda one: sum(event["next"] - event["first"] for event in one.of("delivered")) == 200)
        if mode == "async":
            group.wait_until_done(ends)
        first.close()
        after = feed(group.broker, group.topic, 2, 10)
        second = group.join("confluent", RANGE)
        group.wait_until_done(after)
        assert min(event["first"] for event in second.of("delivered")) == 100

    modes = [
        "kavka.async",
        "kavka.auto",
        "kafka-python.async",
        "aiokafka.async",
        f"{java}.async",
        "confluent.auto",
        "kafka-python.auto",
    ]
    each_at_once([*modes, "aiokafka.auto"], story)
