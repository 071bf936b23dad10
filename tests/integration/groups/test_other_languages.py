"""Group consumers in Go and Node, and Java's from its first version on: each goes on where another library stopped."""

import pytest

from tests.integration.groups.conftest import NewGroup
from tests.support.at_once import each_at_once
from tests.support.group_members import FAST_GROUPS, Group, feed
from tests.support.java_classes import compiled
from tests.support.other_clients import go_client, node_client, run_client

# Clients that are built or downloaded first, where nothing is there yet.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]
BROKER_SETTINGS = FAST_GROUPS
RANGE = {"partition.assignment.strategy": "range"}
PARTITIONS = 3
RECORDS = 20
OLD_JAVA = ["clients-0.9.0.1", "clients-0.10.2.2", "clients-0.11.0.3", "clients-1.1.1", "clients-2.0.1"]


def test_go_clients_take_groups_over_and_hand_them_on(new_group: NewGroup) -> None:
    program = str(go_client("group"))
    each_at_once(["franz", "kafkago", "sarama"], lambda name: _in_between(new_group(name), [program, name]))


def test_node_clients_take_groups_over_and_hand_them_on(new_group: NewGroup) -> None:
    program = node_client("group")
    each_at_once(["kafkajs", "platformatic"], lambda name: _in_between(new_group(name), [*program, name]))


@pytest.mark.java
def test_javas_old_clients_share_groups_with_todays(new_group: NewGroup) -> None:
    def prepare(bundle: str) -> None:
        """What has to be downloaded keeps nobody waiting for a share."""
        compiled("GroupMember", bundle)

    def story(bundle: str) -> None:
        group = new_group(bundle)
        group.create_topic(PARTITIONS)
        ends = feed(group.broker, group.topic, PARTITIONS, RECORDS)
        old, new = group.join(bundle, RANGE), group.join("confluent", RANGE)
        group.wait_until_shared([old, new], PARTITIONS)
        group.wait_until_done(ends)
        old.close()
        group.wait_until_shared([new], PARTITIONS)
        more = feed(group.broker, group.topic, PARTITIONS, RECORDS)
        group.wait_until_done(more)
        new.close()
        group.assert_sound(more)

    each_at_once(OLD_JAVA, prepare)
    each_at_once(OLD_JAVA, story)


def _in_between(group: Group, command: list[str]) -> None:
    """confluent reads, the other reads what came since, confluent reads the rest: each record once."""
    group.create_topic(PARTITIONS)
    for _ in range(2):
        ends = feed(group.broker, group.topic, PARTITIONS, RECORDS)
        member = group.join("confluent", RANGE)
        group.wait_until_done(ends)
        member.close()
        first = RECORDS * (len(group.members) - 1) * 2
        delivered = sorted((event["partition"], event["first"]) for event in member.of("delivered"))
        assert {offset for _, offset in delivered if offset < first} == set()
        if len(group.members) == 1:
            feed(group.broker, group.topic, PARTITIONS, RECORDS)
            arguments = (group.broker.bootstrap, group.topic, group.group_id, PARTITIONS * RECORDS)
            lines = [tuple(map(int, line.split())) for line in run_client(command, *arguments)]
            wanted = [(index, offset) for index in range(PARTITIONS) for offset in range(RECORDS, 2 * RECORDS)]
            assert sorted(lines) == wanted
