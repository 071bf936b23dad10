"""What operators' commands show is what Kafka's own tools print of the same broker: 3.9's of 3.9, 4.3's of 4.3."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from kavka.cli.main import main
from kavka.client import Admin
from kavka.client.admin import NewTopic
from tests.support.java_tools import JavaTools
from tests.support.json_documents import document
from tests.support.server import RunningServer

pytestmark = pytest.mark.java

Ours = Callable[..., Any]
Theirs = Callable[..., list[str]]


@pytest.fixture(scope="module", params=["39", "43"])
def kafka(request: pytest.FixtureRequest) -> RunningServer:
    """Apache Kafka 3.9 with ZooKeeper, and 4.3."""
    server: RunningServer = request.getfixturevalue(f"kafka{request.param}")
    return server


@pytest.fixture(scope="module")
def tools(kafka: RunningServer, request: pytest.FixtureRequest) -> JavaTools:
    """Those of its version."""
    found: JavaTools = request.getfixturevalue("tools39" if kafka is request.getfixturevalue("kafka39") else "tools43")
    return found


@pytest.fixture
def ours(kafka: RunningServer, capsys: pytest.CaptureFixture[str]) -> Ours:
    """The rows of a command's JSON document: `ours("topics-list", "topics", "list")`."""

    def run(name: str, *words: str) -> Any:
        capsys.readouterr()
        assert main([*words, "--bootstrap-server", kafka.bootstrap, "--output", "json"]) == 0
        return document(name, capsys.readouterr().out)

    return run


@pytest.fixture
def theirs(kafka: RunningServer, tools: JavaTools) -> Theirs:
    """The lines of a tool's output."""
    return lambda tool, *words: tools.run(tool, "--bootstrap-server", kafka.bootstrap, *words).splitlines()


@pytest.fixture
def made(kafka: RunningServer, topic: str) -> str:
    """A topic of two partitions with settings of its own."""
    configs = {"retention.ms": "6000000", "cleanup.policy": "compact,delete"}
    with Admin(bootstrap_servers=kafka.bootstrap) as admin:
        admin.create_topics([NewTopic(topic, num_partitions=2, configs=configs)])
    return topic


def _fields(line: str) -> dict[str, str]:
    """Of `Topic: orders<tab>Partition: 0`."""
    pairs = (field.partition(":") for field in line.strip("\t").split("\t"))
    return {name.strip(): text.strip() for name, _, text in pairs}


def test_topics_are_listed_and_described(ours: Ours, theirs: Theirs, made: str) -> None:
    tool = "org.apache.kafka.tools.TopicCommand"
    assert [row["name"] for row in ours("topics-list", "topics", "list")] == sorted(theirs(tool, "--list"))
    head, *partitions = [_fields(line) for line in theirs(tool, "--describe", "--topic", made) if line]
    (found,) = ours("topics-describe", "topics", "describe", made)
    assert (head["Topic"], head["TopicId"]) == (found["name"], found["topic_id"])
    assert int(head["PartitionCount"]) == found["partition_count"]
    assert int(head["ReplicationFactor"]) == found["replication_factor"]
    # Theirs has what the broker sets for all topics, too.
    assert {f"{name}={value}" for name, value in found["configs"].items()} <= set(
        re.split(",(?=[a-z.]+=)", head["Configs"])
    )
    lists = {"replicas": "Replicas", "isr": "Isr", "elr": "Elr", "last_known_elr": "LastKnownElr"}
    for row, shown in zip(found["partitions"], partitions, strict=True):
        assert (row["partition"], row["leader"]) == (int(shown["Partition"]), int(shown["Leader"]))
        assert {name: _joined(row[ours]) for ours, name in lists.items()} == {
            name: shown[name] for name in lists.values()
        }


def _joined(ids: list[int] | None) -> str:
    """As the tool prints them; brokers before 4.0 do not tell which replicas could lead."""
    return "N/A" if ids is None else ",".join(map(str, ids))


def test_settings_have_the_same_values_and_synonyms(ours: Ours, theirs: Theirs, made: str) -> None:
    words = ("--describe", "--all", "--entity-type", "topics", "--entity-name", made)
    pattern = re.compile(r"  (\S+?)=(.*) sensitive=(true|false) synonyms=\{(.*)\}")
    shown = {
        tuple(match.groups()) for line in theirs("kafka.admin.ConfigCommand", *words) if (match := pattern.match(line))
    }
    assert len(shown) > 20
    assert shown == {
        (
            row["name"],
            "null" if row["value"] is None else row["value"],
            str(row["is_sensitive"]).lower(),
            ", ".join(f"{each['source']}:{each['name']}={each['value']}" for each in row["synonyms"]),
        )
        for row in ours("configs-describe", "configs", "describe", "--all", "--topic", made)
    }


def test_log_directories_have_the_same_replicas(ours: Ours, theirs: Theirs, made: str) -> None:
    *_, text = theirs("org.apache.kafka.tools.LogDirsCommand", "--describe", "--topic-list", made)
    shown = [
        (broker["broker"], each["logDir"], each["error"], sorted(map(_replica, each["partitions"])))
        for broker in json.loads(text)["brokers"]
        for each in broker["logDirs"]
    ]
    found = [
        (
            row["broker"],
            row["log_dir"],
            row["error"],
            [
                (f"{each['topic']}-{each['partition']}", each["size_bytes"], each["offset_lag"], each["is_future"])
                for each in row["replicas"]
            ],
        )
        for row in ours("logdirs-describe", "logdirs", "describe", "--topic-list", made)
    ]
    assert found == shown
    assert len(found[0][3]) == 2


def _replica(each: dict[str, Any]) -> tuple[Any, ...]:
    return each["partition"], each["size"], each["offsetLag"], each["isFuture"]


# With ZooKeeper there are none to show.
@pytest.mark.parametrize("kafka", ["43"], indirect=True)
def test_features_have_the_same_levels(ours: Ours, theirs: Theirs) -> None:
    lines = theirs("org.apache.kafka.tools.FeatureCommand", "describe")
    shown = [dict(re.findall(r"(\w+): (\S+)", line)) for line in lines if line]
    found = ours("features-describe", "features", "describe")
    assert [row["feature"] for row in found] == sorted(row["Feature"] for row in shown)
    # One for all: in KRaft an offset of the metadata, which goes on by itself.
    (before,) = {int(row["Epoch"]) for row in shown}
    (epoch,) = {row["epoch"] for row in found}
    assert epoch >= before
    # Versions of metadata have names there, and numbers in the protocol.
    plain = {row["Feature"]: row for row in shown if row["Feature"] != "metadata.version"}
    assert {row["feature"]: row["finalized"] for row in found if row["feature"] in plain} == {
        name: int(row["FinalizedVersionLevel"]) for name, row in plain.items()
    }


@pytest.mark.parametrize("kafka", ["43"], indirect=True)
def test_the_quorum_has_the_same_leader_and_members(ours: Ours, theirs: Theirs) -> None:
    tool = "org.apache.kafka.tools.MetadataQuorumCommand"
    shown = dict(line.split(":", 1) for line in theirs(tool, "describe", "--status") if ":" in line)
    (found,) = ours("quorum-status", "quorum", "describe", "--status")
    assert found["cluster_id"] == shown["ClusterId"].strip()
    assert (found["leader"], found["leader_epoch"]) == (int(shown["LeaderId"]), int(shown["LeaderEpoch"]))
    assert [each["id"] for each in found["voters"]] == [each["id"] for each in json.loads(shown["CurrentVoters"])]
    _, *rows = [line.split() for line in theirs(tool, "describe", "--replication") if line.strip()]
    members = ours("quorum-replication", "quorum", "describe", "--replication")
    assert [(str(row["node"]), row["directory_id"], row["status"]) for row in members] == [
        (row[0], row[1], row[-1]) for row in rows
    ]
