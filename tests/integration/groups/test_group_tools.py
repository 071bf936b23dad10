"""Kafka's own group tools, of 3.9 and of 4.3: ConsumerGroupCommand, ConsoleConsumer, VerifiableConsumer."""

import json
import re
from collections.abc import Iterator

import pytest

from tests.support.group_members import FAST_GROUPS, Group, feed
from tests.support.java_tools import JavaTools
from tests.support.processes import wait_until
from tests.support.server import RunningServer
from tests.support.topics import create_topic

pytestmark = pytest.mark.java
BROKER_SETTINGS = FAST_GROUPS
COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"
VERIFIABLE = "org.apache.kafka.tools.VerifiableConsumer"
EAGER = {"partition.assignment.strategy": "range"}
WAIT_S = 120.0
TOOL_TIMEOUT_MS = "120000"


@pytest.fixture(scope="module", params=["kafka-3.9", "kafka-4.3"])
def tools(request: pytest.FixtureRequest) -> Iterator[JavaTools]:
    with JavaTools(request.param) as found:
        yield found


def test_a_living_group_is_listed_and_described(broker: RunningServer, group: Group, tools: JavaTools) -> None:
    group.create_topic(3)
    ends = feed(broker, group.topic, 3, 20)
    plain = group.join("confluent", {**EAGER, "client.id": "one"})
    static = group.join("confluent", {**EAGER, "client.id": "two", "group.instance.id": "named"})
    group.wait_until_shared([plain, static], 3)
    group.wait_until_done(ends)
    here = ("--group", group.group_id)

    assert group.group_id in _command(tools, broker, "--list").split()
    states = {row["GROUP"]: row for row in _table(_command(tools, broker, "--list", "--state", "stable"))}
    assert states[group.group_id]["STATE"] == "Stable"
    assert group.group_id not in _command(tools, broker, "--list", "--state", "Empty")
    typed = {row["GROUP"]: row for row in _table(_command(tools, broker, "--list", "--type", "classic"))}
    assert typed[group.group_id]["TYPE"] == "Classic"
    assert group.group_id not in _command(tools, broker, "--list", "--type", "consumer")

    offsets = _table(_command(tools, broker, "--describe", *here))
    assert sorted((row["PARTITION"], row["CURRENT-OFFSET"], row["LOG-END-OFFSET"], row["LAG"]) for row in offsets) == [
        (str(index), "20", "20", "0") for index in range(3)
    ]
    assert {row["HOST"] for row in offsets} == {"/127.0.0.1"}
    members = [line.split() for line in _command(tools, broker, "--describe", *here, "--members").splitlines()]
    (one,) = [words for words in members if "one" in words]
    (two,) = [words for words in members if "two" in words]
    assert one[1].startswith("one-")
    assert two[1].startswith("named-")
    assert two[2] == "named"
    assert sorted([one[-1], two[-1]]) == ["1", "2"]
    verbose = _command(tools, broker, "--describe", *here, "--members", "--verbose")
    # (0,1) in 3.9, TOPIC:0,1 in 4.3.
    given = re.findall(r"[(:](\d(?:,\d)*)\)?(?:\s|$)", verbose)
    assert sorted(",".join(given).split(",")) == ["0", "1", "2"]
    (state,) = _table(_command(tools, broker, "--describe", *here, "--state"))
    assert (state["ASSIGNMENT-STRATEGY"], state["STATE"], state["#MEMBERS"]) == ("range", "Stable", "2")
    assert state["COORDINATOR"] == broker.bootstrap


def test_a_living_group_may_not_be_reset_or_deleted(broker: RunningServer, group: Group, tools: JavaTools) -> None:
    group.create_topic(2)
    ends = feed(broker, group.topic, 2, 20)
    member = group.join("confluent", EAGER)
    group.wait_until_done(ends)
    here = ("--group", group.group_id)

    reset = _command(tools, broker, "--reset-offsets", *here, "--topic", group.topic, "--to-earliest", "--execute")
    assert f"Assignments can only be reset if the group '{group.group_id}' is inactive" in reset
    assert "GroupNotEmptyException" in _command(tools, broker, "--delete", *here)
    refused = _command(tools, broker, "--delete-offsets", *here, "--topic", group.topic)
    assert refused.count("GroupSubscribedToTopicException") == 2
    group.join("confluent", EAGER)
    group.wait_until_shared(group.members, 2)
    assert member.of("error") == []


def test_an_empty_groups_offsets_are_reset_and_deleted_and_then_the_group(
    broker: RunningServer, group: Group, tools: JavaTools
) -> None:
    group.create_topic(3)
    ends = feed(broker, group.topic, 3, 20)
    group.join("confluent", EAGER)
    group.wait_until_done(ends)
    group.members[0].close()
    here = ("--group", group.group_id)
    reset = ("--reset-offsets", *here)

    described = _command(tools, broker, "--describe", *here)
    assert f"Consumer group '{group.group_id}' has no active members." in described
    assert _current(described) == {"0": "20", "1": "20", "2": "20"}
    _command(tools, broker, *reset, "--topic", f"{group.topic}:0", "--to-offset", "7", "--execute")
    _command(tools, broker, *reset, "--topic", f"{group.topic}:1", "--shift-by", "-5", "--execute")
    dry = _command(tools, broker, *reset, "--all-topics", "--to-earliest", "--dry-run")
    # Kafka 3.9 prints all rows on one line.
    assert dict(re.findall(rf"{re.escape(group.topic)} +(\d) +(\d+)", dry)) == {"0": "0", "1": "0", "2": "0"}
    deleted = _command(tools, broker, "--delete-offsets", *here, "--topic", f"{group.topic}:2")
    assert "Successful" in deleted
    after = _command(tools, broker, "--describe", *here)
    assert _current(after) == {"0": "7", "1": "15"}
    assert {row["PARTITION"]: row["LAG"] for row in _table(after)} == {"0": "13", "1": "5"}

    assert "was successful" in _command(tools, broker, "--delete", *here)
    assert group.group_id not in _command(tools, broker, "--list").split()
    gone = _command(tools, broker, "--describe", *here)
    assert "does not exist" in gone or "not found" in gone


def test_a_reset_group_begins_where_it_was_told(broker: RunningServer, group: Group, tools: JavaTools) -> None:
    """Also a group that the tool itself made, by writing offsets for nobody."""
    group.create_topic(1)
    ends = feed(broker, group.topic, 1, 20)
    arguments = ("--group", group.group_id, "--topic", group.topic, "--to-offset", "12", "--execute")
    _command(tools, broker, "--reset-offsets", *arguments)
    group.join("confluent", EAGER)
    group.wait_until_done(ends)

    assert [(event["first"], event["next"]) for event in group.members[0].of("delivered")] == [(12, 20)]


def test_console_consumers_read_with_and_without_a_group(broker: RunningServer, topic: str, tools: JavaTools) -> None:
    create_topic(broker, topic, partitions=2)
    feed(broker, topic, 2, 10)
    reading = ("--bootstrap-server", broker.bootstrap, "--topic", topic, "--from-beginning", "--timeout-ms", "60000")
    grouped = tools.run(CONSOLE, *reading, "--group", f"{topic}.console", "--max-messages", "20")
    alone = tools.run(CONSOLE, *reading, "--max-messages", "20")

    assert grouped.splitlines().count("x" * 20) == 20
    assert alone.splitlines().count("x" * 20) == 20
    assert _current(_command(tools, broker, "--describe", "--group", f"{topic}.console")) == {"0": "10", "1": "10"}
    # Its group of its own has left, but committed nothing: Kafka keeps it until offsets expire or it is asked for.
    empty = [name for name in _command(tools, broker, "--list").split() if name.startswith("console-consumer")]
    assert len(empty) == len(set(empty))


def test_the_verifiable_consumer_reports_what_it_took_and_committed(
    broker: RunningServer, topic: str, tools: JavaTools
) -> None:
    create_topic(broker, topic, partitions=2)
    feed(broker, topic, 2, 10)
    arguments = ("--bootstrap-server", broker.bootstrap, "--topic", topic, "--group-id", f"{topic}.verifiable")
    text = tools.run(VERIFIABLE, *arguments, "--max-messages", "20", "--reset-policy", "earliest")
    events = [json.loads(line) for line in text.splitlines() if line.startswith("{")]

    assert sum(event["count"] for event in events if event["name"] == "records_consumed") == 20
    assert all(event["success"] for event in events if event["name"] == "offsets_committed")
    last = {
        one["partition"]: one["offset"]
        for event in events
        if event["name"] == "offsets_committed"
        for one in event["offsets"]
    }
    assert last == {0: 10, 1: 10}
    assert [event["name"] for event in events][-1] == "shutdown_complete"


def test_a_rebalancing_group_is_said_to_be_rebalancing(broker: RunningServer, group: Group, tools: JavaTools) -> None:
    """The frozen member keeps the rebalance open; the tool must not wait for it."""
    group.create_topic(3)
    patient = {**EAGER, "session.timeout.ms": "120000"}
    frozen, other = group.join("confluent", patient), group.join("confluent", patient)
    group.wait_until_shared([frozen, other], 3)
    frozen.freeze()
    third = group.join("confluent", patient)
    arguments = ("--describe", "--group", group.group_id, "--state")
    wait_until(lambda: "PreparingRebalance" in _command(tools, broker, *arguments), WAIT_S, group.story)
    described = _command(tools, broker, "--describe", "--group", group.group_id)
    frozen.thaw()
    group.wait_until_shared([frozen, other, third], 3)

    assert "is rebalancing" in described


def _command(tools: JavaTools, broker: RunningServer, *arguments: str) -> str:
    """The tool's own patience is five seconds, which its first call to a busy broker may take."""
    return tools.run(COMMAND, "--bootstrap-server", broker.bootstrap, "--timeout", TOOL_TIMEOUT_MS, *arguments)


def _table(text: str) -> list[dict[str, str]]:
    """The rows below the line that begins with GROUP (columns with spaces in their names lose what follows them)."""
    lines = text.splitlines()
    start = next((place for place, line in enumerate(lines) if line.startswith("GROUP ")), len(lines))
    rows = lines[start + 1 :]
    names = lines[start].replace("COORDINATOR (ID)", "COORDINATOR ID").split() if rows else []
    return [dict(zip(names, row.split(), strict=False)) for row in rows if row.strip()]


def _current(text: str) -> dict[str, str]:
    return {row["PARTITION"]: row["CURRENT-OFFSET"] for row in _table(text)}
