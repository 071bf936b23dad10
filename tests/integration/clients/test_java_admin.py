"""Kafka's admin tools (AdminClient), of 3.9 and of 4.3, against a real broker process."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.support.java import JavaFailedError
from tests.support.java_tools import JavaTools
from tests.support.server import RunningServer
from tests.support.topics import create_topic

pytestmark = pytest.mark.java
TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
DELETE_RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"


VERSIONS = {
    "kafka-3.9": "kafka.admin.BrokerApiVersionsCommand",
    "kafka-4.3": "org.apache.kafka.tools.BrokerApiVersionsCommand",
}


@pytest.fixture(scope="module", params=["kafka-3.9", "kafka-4.3"])
def tools(request: pytest.FixtureRequest) -> Iterator[JavaTools]:
    with JavaTools(request.param) as running:
        yield running


def test_topics_are_created_described_grown_and_deleted(broker: RunningServer, topic: str, tools: JavaTools) -> None:
    _topics(broker, tools, "--create", "--topic", topic, "--partitions", "3", "--config", "retention.ms=60000")
    described = _topics(broker, tools, "--describe", "--topic", topic)
    _topics(broker, tools, "--alter", "--topic", topic, "--partitions", "5")
    grown = _topics(broker, tools, "--describe", "--topic", topic)
    listed = _topics(broker, tools, "--list").split()
    _topics(broker, tools, "--delete", "--topic", topic)

    assert "PartitionCount: 3" in described
    assert "ReplicationFactor: 1" in described
    assert "retention.ms=60000" in described
    assert described.count("Leader: ") == 3
    assert "Leader: none" not in described
    assert "PartitionCount: 5" in grown
    assert topic in listed
    assert topic not in _topics(broker, tools, "--list").split()


def test_a_wrong_topic_is_refused_with_the_reason(broker: RunningServer, topic: str, tools: JavaTools) -> None:
    with pytest.raises(JavaFailedError, match="InvalidTopicException"):
        _topics(broker, tools, "--create", "--topic", "not/legal", "--partitions", "1")
    with pytest.raises(JavaFailedError, match="InvalidReplicationFactorException"):
        _topics(broker, tools, "--create", "--topic", topic, "--partitions", "1", "--replication-factor", "3")
    with pytest.raises(JavaFailedError, match=r"retention\.ms"):
        _topics(broker, tools, "--create", "--topic", topic, "--partitions", "1", "--config", "retention.ms=soon")


def test_topic_settings_are_changed_and_given_back(broker: RunningServer, topic: str, tools: JavaTools) -> None:
    create_topic(broker, topic, partitions=1)
    entity = ("--entity-type", "topics", "--entity-name", topic)
    _configs(broker, tools, "--alter", *entity, "--add-config", "retention.ms=123456,cleanup.policy=[compact,delete]")
    changed = _configs(broker, tools, "--describe", *entity)
    _configs(broker, tools, "--alter", *entity, "--delete-config", "retention.ms,cleanup.policy")
    everything = _configs(broker, tools, "--describe", "--all", *entity)

    assert "retention.ms=123456" in changed
    assert "cleanup.policy=compact,delete" in changed
    assert "DYNAMIC_TOPIC_CONFIG:retention.ms=123456" in changed
    assert "retention.ms=-1 " in everything
    assert "max.message.bytes=1048588" in everything


def test_broker_settings_are_listed_and_changed(broker: RunningServer, tools: JavaTools) -> None:
    node = _node_id(broker, tools)
    entity = ("--entity-type", "brokers", "--entity-name", node)
    _configs(broker, tools, "--alter", *entity, "--add-config", "log.retention.ms=777000")
    changed = _configs(broker, tools, "--describe", *entity)
    _configs(broker, tools, "--alter", *entity, "--delete-config", "log.retention.ms")
    everything = _configs(broker, tools, "--describe", "--all", *entity)

    assert "log.retention.ms=777000" in changed
    assert "DYNAMIC_BROKER_CONFIG:log.retention.ms=777000" in changed
    assert "num.io.threads=" in everything
    assert "777000" not in everything


def test_log_ends_are_reported_by_position_and_time(broker: RunningServer, topic: str, tools: JavaTools) -> None:
    create_topic(broker, topic, partitions=2)
    _fill(broker, topic, 25)

    latest = _offsets(broker, tools, topic, "latest")
    earliest = _offsets(broker, tools, topic, "earliest")
    newest = _offsets(broker, tools, topic, "max-timestamp")

    assert sum(latest.values()) == 25
    assert earliest == {0: 0, 1: 0}
    assert all(0 <= offset < 25 for offset in newest.values())


def test_records_are_deleted_up_to_an_offset(
    broker: RunningServer, topic: str, tools: JavaTools, tmp_path: Path
) -> None:
    create_topic(broker, topic, partitions=1)
    _fill(broker, topic, 25)
    wanted = {"partitions": [{"topic": topic, "partition": 0, "offset": 10}], "version": 1}
    (tmp_path / "delete.json").write_text(json.dumps(wanted))

    output = _run(broker, tools, DELETE_RECORDS, "--offset-json-file", tmp_path / "delete.json")

    assert "low_watermark: 10" in output
    assert _offsets(broker, tools, topic, "earliest") == {0: 10}


def test_log_directories_show_each_partitions_size(broker: RunningServer, topic: str, tools: JavaTools) -> None:
    create_topic(broker, topic, partitions=2)
    _fill(broker, topic, 25)

    output = _run(broker, tools, LOG_DIRS, "--describe", "--topic-list", topic)

    described = json.loads(next(line for line in output.splitlines() if line.startswith("{")))
    partitions = [found for directory in described["brokers"][0]["logDirs"] for found in directory["partitions"]]
    assert {found["partition"] for found in partitions} == {f"{topic}-0", f"{topic}-1"}
    assert sum(found["size"] for found in partitions) > 25


def _topics(broker: RunningServer, tools: JavaTools, *arguments: str) -> str:
    return _run(broker, tools, TOPICS, *arguments)


def _configs(broker: RunningServer, tools: JavaTools, *arguments: str) -> str:
    return _run(broker, tools, CONFIGS, *arguments)


def _offsets(broker: RunningServer, tools: JavaTools, topic: str, time: str) -> dict[int, int]:
    lines = _run(broker, tools, OFFSETS, "--topic", topic, "--time", time).splitlines()
    parts = [line.rsplit(":", 2) for line in lines if line.startswith(f"{topic}:")]
    return {int(partition): int(offset) for _, partition, offset in parts}


def _node_id(broker: RunningServer, tools: JavaTools) -> str:
    output = _run(broker, tools, VERSIONS[tools.bundle])
    return output.partition("(id: ")[2].partition(" ")[0]


def _run(broker: RunningServer, tools: JavaTools, tool: str, *arguments: str | Path) -> str:
    return tools.run(tool, "--bootstrap-server", broker.bootstrap, *arguments)


def _fill(broker: RunningServer, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(count):
        producer.produce(topic, b"%d" % number)
    assert producer.flush(15.0) == 0
