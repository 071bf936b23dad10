"""Groups of the consumer protocol (KIP-848): the broker assigns, members move one by one, classic ones mix in."""

import pytest
from confluent_kafka.admin import AdminClient

from tests.integration.groups.conftest import NewGroup
from tests.support.at_once import each_at_once
from tests.support.group_members import FAST_GROUPS, Feeder, Group, feed
from tests.support.java_tools import JavaTools
from tests.support.processes import wait_until
from tests.support.server import RunningServer
from tests.support.topics import create_topic
from tests.support.wire import GROUP, RawClient

pytestmark = pytest.mark.java
BROKER_SETTINGS = FAST_GROUPS
PARTITIONS = 6
NEW = {"group.protocol": "consumer"}
# Not cooperative-sticky: its data in the subscription counts as a custom assignor's, and forbids the upgrade.
CLASSIC = {"partition.assignment.strategy": "range"}
COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
WAIT_S = 120.0


def test_members_join_leave_and_are_killed_and_nothing_is_skipped(new_group: NewGroup, java: str) -> None:
    def story(library: str) -> None:
        group = new_group(library)
        group.create_topic(PARTITIONS)
        group.be_mortal()
        with Feeder(group.broker, group.topic, PARTITIONS) as feeder:
            first, second = group.join(library, NEW), group.join(library, NEW)
            group.wait_until_shared([first, second], PARTITIONS)
            third = group.join(library, NEW)
            group.wait_until_shared([first, second, third], PARTITIONS)
            second.close()
            group.wait_until_shared([first, third], PARTITIONS)
            first.kill()
            group.wait_until_shared([third], PARTITIONS)
            ends = feeder.stop()
        group.wait_until_done(ends)
        third.close()
        group.assert_sound(ends)

    each_at_once(["confluent", java], story)


def test_java_and_librdkafka_share_a_group_and_only_what_must_go_moves(new_group: NewGroup, java: str) -> None:
    def story(assignor: str) -> None:
        group = new_group(assignor)
        group.create_topic(PARTITIONS)
        settings = {**NEW, "group.remote.assignor": assignor}
        with Feeder(group.broker, group.topic, PARTITIONS) as feeder:
            first = group.join(java, settings)
            group.wait_until_shared([first], PARTITIONS)
            second = group.join("confluent", settings)
            group.wait_until_shared([first, second], PARTITIONS)
            third = group.join("confluent", settings)
            group.wait_until_shared([first, second, third], PARTITIONS)
            ends = feeder.stop()
        group.wait_until_done(ends)
        group.assert_sound(ends)

        assert sorted(len(member.owned) for member in group.members) == [2, 2, 2]
        if assignor == "uniform":
            assert sum(len(event["partitions"]) for event in first.of("revoked")) == 4
        else:
            assert all(_are_neighbours(member.owned) for member in group.members)

    each_at_once(["uniform", "range"], story)


def test_a_group_moves_to_the_new_protocol_and_back_member_by_member(
    broker: RunningServer, group: Group, java: str
) -> None:
    """The rolling upgrade that Kafka's documentation describes, and its reverse, while records flow."""
    group.create_topic(PARTITIONS)
    with Feeder(broker, group.topic, PARTITIONS) as feeder:
        members = [group.join(java, CLASSIC), group.join("confluent", CLASSIC)]
        group.wait_until_shared(members, PARTITIONS)
        for index, library in enumerate((java, "confluent")):
            members[index].close()
            members[index] = group.join(library, NEW)
            group.wait_until_shared(members, PARTITIONS)
        assert _type(broker, group) == "CONSUMER"
        for index, library in enumerate((java, "confluent")):
            members[index].close()
            members[index] = group.join(library, CLASSIC)
            group.wait_until_shared(members, PARTITIONS)
        wait_until(lambda: _type(broker, group) == "CLASSIC", WAIT_S, "the group stays of the consumer protocol")
        ends = feeder.stop()
    group.wait_until_done(ends)

    group.assert_sound(ends)


def test_a_static_member_that_restarts_gets_its_own_back(broker: RunningServer, group: Group, java: str) -> None:
    group.create_topic(PARTITIONS)
    with RawClient(broker.host, broker.port) as client:
        # However long a machine that has much else to do takes to start the process anew.
        altered = client.alter(GROUP, group.group_id, [("consumer.session.timeout.ms", "60000")])
        assert altered.error_code == 0, altered.error_message
    with Feeder(broker, group.topic, PARTITIONS) as feeder:
        stays = group.join(java, {**NEW, "group.instance.id": "a"})
        goes = group.join("confluent", {**NEW, "group.instance.id": "b"})
        group.wait_until_shared([stays, goes], PARTITIONS)
        had, seen = goes.owned, len(stays.of("assigned", "revoked"))
        goes.close()
        comes = group.join("confluent", {**NEW, "group.instance.id": "b"})
        comes.wait_for(lambda one: one.owned == had)
        ends = feeder.stop()
    group.wait_until_done(ends)

    assert [event for event in stays.of("assigned", "revoked")[seen:] if event["partitions"]] == []
    group.assert_sound(ends)


def test_a_pattern_that_the_broker_resolves_finds_topics_made_later(
    broker: RunningServer, group: Group, java: str
) -> None:
    """Ten seconds later: neither Kafka nor Kavka looks for a group's new topics more often."""
    one, two = f"{group.topic}.one", f"{group.topic}.two"
    create_topic(broker, one, partitions=2)
    create_topic(broker, f"other.{group.topic}", partitions=2)
    feed(broker, one, 2, 5)
    bad = group.join(java, {**NEW, "group.id": f"{group.topic}.bad", "member.re2": "(unclosed"})
    member = group.join(java, {**NEW, "member.re2": group.topic.replace(".", "[.]") + "[.].*"})
    member.wait_for(lambda it: it.owned == {f"{one}-0", f"{one}-1"})
    create_topic(broker, two, partitions=1)
    ends = feed(broker, two, 1, 5)
    (error, *_) = bad.wait_for(lambda it: it.of("error"))
    member.wait_for(lambda it: it.owned == {f"{one}-0", f"{one}-1", f"{two}-0"})
    group.wait_until_done(ends)

    assert member.of("error") == []
    assert "InvalidRegularExpression" in error["error"]


def test_kafkas_tool_shows_epochs_and_both_assignments(broker: RunningServer, group: Group, java: str) -> None:
    group.create_topic(2)
    ends = feed(broker, group.topic, 2, 5)
    group.join("confluent", NEW)
    group.wait_until_done(ends)
    here = ("--bootstrap-server", broker.bootstrap, "--timeout", "120000", "--describe", "--group", group.group_id)
    with JavaTools(java) as tools:
        members = tools.run(COMMAND, *here, "--verbose", "--members").split("\n")
        state = tools.run(COMMAND, *here, "--verbose", "--state").split("\n")

    row = next(line.split() for line in members if line.startswith(group.group_id))
    header = next(line.split() for line in members if line.startswith("GROUP "))
    cells = dict(zip(header, row, strict=False))
    assert cells["CURRENT-EPOCH"] == cells["TARGET-EPOCH"]
    assert cells["CURRENT-ASSIGNMENT"] == cells["TARGET-ASSIGNMENT"] == f"{group.topic}:0,1"
    assert any("uniform" in line and "Stable" in line for line in state)


def _are_neighbours(partitions: set[str]) -> bool:
    first, second = sorted(int(name.rpartition("-")[2]) for name in partitions)
    return second == first + 1


def _type(broker: RunningServer, group: Group) -> str:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 3})
    found = admin.list_consumer_groups(request_timeout=WAIT_S).result(WAIT_S)
    return next((str(one.type.name) for one in found.valid if one.group_id == group.group_id), "none")
