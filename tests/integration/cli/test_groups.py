"""`kavka groups` against real brokers, and beside Kafka's own tool on each of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import pytest

from kavka.client import Admin, Consumer, Producer
from kavka.client.admin import GroupState, NewTopic, TopicPartition
from kavka.client.api_errors import GroupIdNotFoundError, UnknownTopicOrPartitionError
from tests.integration.cli.conftest import Kavka
from tests.support.java_tools import JavaTools
from tests.support.json_documents import document
from tests.support.processes import wait_until
from tests.support.server import RunningServer

TOOL: Final = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
WAIT_S: Final = 120
RECORDS: Final = 10
AGE_S: Final = 100
"""How old the records are."""


@pytest.fixture
def admin(broker: RunningServer) -> Iterator[Admin]:
    with Admin(bootstrap_servers=broker.bootstrap) as client:
        yield client


@pytest.fixture
def group(broker: RunningServer, admin: Admin, topic: str) -> str:
    """A group without members that has read all of partition 0, and one of five records of partition 1."""
    admin.create_topics([NewTopic(topic, 3, 1)])
    long_ago_ms = time.time_ns() // 1_000_000 - AGE_S * 1000
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(RECORDS):
            producer.send(topic, b"x", partition=number % 2, timestamp_ms=long_ago_ms)
        producer.flush()
    group_id = f"{topic}.group"
    admin.alter_group_offsets(group_id, {TopicPartition(topic, 0): 5, TopicPartition(topic, 1): 1})
    return group_id


@pytest.fixture
def tools(broker: RunningServer, request: pytest.FixtureRequest) -> JavaTools:
    """Kafka's own, of the broker's version; Kavka answers those of 4.3."""
    found: JavaTools = request.getfixturevalue("tools39" if broker.name == "kafka-3.9" else "tools43")
    return found


def text_of_theirs(tools: JavaTools, broker: RunningServer, *words: str) -> str:
    """What Kafka's tool prints. By itself it waits for five seconds, which is little on a busy machine."""
    return tools.run(TOOL, "--bootstrap-server", broker.bootstrap, "--timeout", "120000", *words)


def theirs(tools: JavaTools, broker: RunningServer, *words: str) -> list[list[str]]:
    """The rows of the table that Kafka's tool prints."""
    lines = text_of_theirs(tools, broker, *words).splitlines()
    titles = [index for index, line in enumerate(lines) if line.startswith("GROUP ")]
    assert len(titles) == 1, lines
    return sorted(line.split() for line in lines[titles[0] + 1 :] if line.strip())


def texts(rows: list[dict[str, Any]], *columns: str) -> list[list[str]]:
    return sorted(["-" if row[column] is None else str(row[column]) for column in columns] for row in rows)


def offsets(run: Kavka, group: str) -> list[dict[str, Any]]:
    done = run("groups", "describe", "--group", group, "--output", "json")
    assert (done.code, done.err) == (0, "")
    return document("groups-offsets", done.out)


def settle(consumer: Consumer, admin: Admin, group: str) -> None:
    """Until the group is Stable with all that its member shall have."""

    def settled() -> bool:
        consumer.poll(100)
        if not consumer.assignment():
            return False
        # Kafka tells of a group once its records are committed, a little after it has told the members.
        with suppress(GroupIdNotFoundError):
            described = admin.describe_consumer_groups([group])[group]
            return described.state is GroupState.STABLE and any(each.assignment for each in described.members)
        return False

    wait_until(settled, WAIT_S, "the group has no member with partitions")


KAFKAS: Final = (
    "group",
    "topic",
    "partition",
    "current_offset",
    "log_end_offset",
    "lag",
    "consumer_id",
    "host",
    "client_id",
)


@pytest.mark.java
def test_a_group_is_described_as_by_kafkas_tool(
    run: Kavka, admin: Admin, group: str, topic: str, broker: RunningServer, tools: JavaTools
) -> None:
    rows = offsets(run, group)
    assert texts(rows, *KAFKAS) == theirs(tools, broker, "--describe", "--group", group)
    assert [row["lag"] for row in rows] == [0, 4]
    read, unread = (row["lag_seconds"] for row in rows)
    assert read == 0
    assert AGE_S <= unread < AGE_S + WAIT_S
    state = run("groups", "describe", "--group", group, "--state", "--output", "json")
    (row,) = document("groups-state", state.out)
    (told,) = theirs(tools, broker, "--describe", "--group", group, "--state")
    assert (row["coordinator"], row["state"], str(row["members"])) == (told[1], "Empty", told[-1])

    settings = {"bootstrap.servers": broker.bootstrap, "group.id": group, "group.protocol": "classic"}
    with Consumer(settings, client_id="reader") as consumer:
        consumer.subscribe([topic])
        settle(consumer, admin, group)
        columns = ("group", "consumer_id", "host", "client_id", "partitions")
        members = document(
            "groups-members", run("groups", "describe", "--group", group, "--members", "--output", "json").out
        )
        assert texts(members, *columns) == theirs(tools, broker, "--describe", "--group", group, "--members")
        assert members[0]["current_assignment"] == f"{topic}:0,1,2"
        shown = [row for row in offsets(run, group) if row["partition"] == 2]
        assert [(row["current_offset"], row["lag"], row["client_id"]) for row in shown] in (
            [(None, None, "reader")],
            [(0, 0, "reader")],
        )
        listed = document("groups-list", run("groups", "list", "--state", "stable", "--output", "json").out)
        stable = theirs(tools, broker, "--list", "--state", "Stable", "--type")
        assert [group, "Classic", "Stable"] in stable
        assert {"group": group, "type": "Classic", "protocol": "consumer", "state": "Stable"} in listed

        refused = run("groups", "reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute")
        assert refused.code == 1
        assert f"{group} is Stable" in refused.err
        assert run("groups", "delete", "--group", group).code == 1
        subscribed = run("groups", "delete-offsets", "--group", group, "--topic", topic)
        assert (subscribed.code, subscribed.out, len(subscribed.err.splitlines())) == (1, "", 3)


@pytest.mark.java
def test_offsets_are_reset_as_by_kafkas_tool(
    run: Kavka, group: str, topic: str, broker: RunningServer, tools: JavaTools, tmp_path: Any
) -> None:
    plan = tmp_path / "plan.csv"
    scope = ["--group", group, "--topic", f"{topic}:0,1"]
    exported = run("groups", "reset-offsets", *scope, "--to-offset", "3", "--export", "--dry-run")
    assert exported.out == f"{topic},0,3\n{topic},1,3\n"
    plan.write_text(exported.out)
    scenarios = (
        ["--to-earliest"],
        ["--to-latest"],
        ["--to-current"],
        ["--to-offset", "3"],
        ["--to-offset", "99"],
        ["--shift-by", "-2"],
        ["--shift-by", "2"],
        ["--by-duration", "PT1H"],
        ["--by-duration", "PT1S"],
        ["--to-datetime", "2020-01-01T00:00:00.000"],
        ["--to-datetime", "2050-01-01T00:00:00.000+02:00"],
    )
    for scenario in scenarios:
        done = run("groups", "reset-offsets", *scope, *scenario, "--dry-run", "--output", "json")
        assert done.code == 0, done.err
        ours = texts(document("groups-reset-offsets", done.out), "group", "topic", "partition", "new_offset")
        # 3.9's prints its rows without a new line between them.
        words = text_of_theirs(tools, broker, "--reset-offsets", *scope, *scenario, "--dry-run")
        cells = words[words.index("NEW-OFFSET") + len("NEW-OFFSET") :].split()
        assert ours == sorted(cells[index : index + 4] for index in range(0, len(cells), 4)), scenario

    assert run("groups", "reset-offsets", "--group", group, "--from-file", str(plan), "--execute").code == 0
    assert [row["current_offset"] for row in offsets(run, group)] == [3, 3]
    assert run("groups", "reset-offsets", "--group", group, "--all-topics", "--to-earliest", "--execute").code == 0
    assert [row["current_offset"] for row in offsets(run, group)] == [0, 0]


def test_a_reset_makes_a_group_and_deletions_end_it(run: Kavka, admin: Admin, topic: str) -> None:
    admin.create_topics([NewTopic(topic, 2, 1)])
    group = f"{topic}.made"
    assert run("groups", "reset-offsets", "--group", group, "--topic", topic, "--to-latest", "--execute").code == 0
    assert group in run("groups", "list", "--ids").out.splitlines()
    done = run("groups", "delete-offsets", "--group", group, "--topic", f"{topic}:1")
    assert (done.code, done.out) == (0, f"deleted the offset of {topic}-1\n")
    assert [row["partition"] for row in offsets(run, group)] == [0]
    assert run("groups", "delete", "--group", group).out == f"deleted {group}\n"
    gone = run("groups", "describe", "--group", group)
    assert (gone.code, gone.out.splitlines()[1:]) == (1, [])
    assert gone.err.startswith(f"kavka groups describe: {group}: ")
    assert len(gone.err.splitlines()) == 1


def test_lag_behind_which_only_marks_of_transactions_lie_is_no_time(
    run: Kavka, admin: Admin, broker: RunningServer, topic: str
) -> None:
    admin.create_topics([NewTopic(topic, 1, 1)])
    with Producer(bootstrap_servers=broker.bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"x", partition=0)
        producer.commit_transaction()
    admin.alter_group_offsets(f"{topic}.group", {TopicPartition(topic, 0): 1})
    wait_until(lambda: offsets(run, f"{topic}.group")[0]["log_end_offset"] == 2, WAIT_S, "no mark")
    (row,) = offsets(run, f"{topic}.group")
    assert (row["lag"], row["lag_seconds"]) == (1, 0)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_kavka_tells_why_a_group_rebalanced_and_kafka_nothing(
    run: Kavka, admin: Admin, broker: RunningServer, topic: str, protocol: str
) -> None:
    if (broker.name, protocol) == ("kafka-3.9", "consumer"):
        pytest.skip("a broker of this kind has no groups of KIP-848")
    admin.create_topics([NewTopic(topic, 1, 1)])
    group = f"{topic}.group"
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": group, "group.protocol": protocol}
    with Consumer(settings) as consumer:
        consumer.subscribe([topic])
        settle(consumer, admin, group)
        (member,) = admin.describe_consumer_groups([group])[group].members
    wait_until(lambda: admin.describe_consumer_groups([group])[group].state is GroupState.EMPTY, WAIT_S, "not left")

    history = document(
        "groups-history", run("groups", "describe", "--group", group, "--history", "--output", "json").out
    )
    (state,) = document("groups-state", run("groups", "describe", "--group", group, "--state", "--output", "json").out)
    if broker.name == "kavka":
        assert history[0]["begins_rebalance"]
        assert member.member_id in history[0]["reason"]
        assert (history[-1]["new_state"], history[-1]["members"]) == ("Empty", 0)
        assert state["last_rebalance_reason"] == [row for row in history if row["begins_rebalance"]][-1]["reason"]
    else:
        assert history == []
        assert state["last_rebalance"] is None


def test_static_members_are_removed(run: Kavka, admin: Admin, broker: RunningServer, topic: str) -> None:
    admin.create_topics([NewTopic(topic, 1, 1)])
    group = f"{topic}.group"
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": group, "group.instance.id": "worker-1"}
    with Consumer({**settings, "group.protocol": "classic"}) as consumer:
        consumer.subscribe([topic])
        settle(consumer, admin, group)
    words = ["groups", "remove-members", "--group", group]
    assert run(*words, "--group-instance-id", "worker-1").out == "removed worker-1\n"
    assert admin.describe_consumer_groups([group])[group].members == ()
    again = run(*words, "--group-instance-id", "worker-1")
    assert (again.code, len(again.err.splitlines())) == (1, 1)


def test_share_groups_are_shown_where_there_are_any(
    run: Kavka, admin: Admin, broker: RunningServer, topic: str
) -> None:
    if broker.name != "kafka-4.3":
        assert run("groups", "list", "--type", "share", "--ids").out == ""
        return
    admin.create_topics([NewTopic(topic, 1, 1)])

    def altered() -> bool:
        # The coordinator hears of the topic a little later.
        return run("groups", "list", "--type", "share", "--ids").out.count(topic) > 0 or _started(admin, topic)

    wait_until(altered, WAIT_S, "no share group")
    (row,) = offsets(run, topic)
    assert (row["topic"], row["partition"], row["current_offset"]) == (topic, 0, 0)
    assert run("groups", "delete", "--group", topic).code == 0


def _started(admin: Admin, topic: str) -> bool:
    try:
        admin.alter_share_group_offsets(topic, {TopicPartition(topic, 0): 0})
    except UnknownTopicOrPartitionError:
        return False
    return True
