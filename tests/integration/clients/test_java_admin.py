"""Kafka's admin tools (AdminClient), of 3.9 and of 4.3, against a real broker process."""

import json
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.support.java import JavaFailedError, run_java
from tests.support.server import RunningServer
from tests.support.topics import create_topic

pytestmark = pytest.mark.java
TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
OFFSETS = "org.apache.kafka.tools.GetOffsetShell"


@pytest.fixture(params=["kafka-3.9", "kafka-4.3"])
def bundle(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_topics_are_created_described_grown_and_deleted(broker: RunningServer, topic: str, bundle: str) -> None:
    _topics(broker, bundle, "--create", "--topic", topic, "--partitions", "3", "--config", "retention.ms=60000")
    described = _topics(broker, bundle, "--describe", "--topic", topic)
    _topics(broker, bundle, "--alter", "--topic", topic, "--partitions", "5")
    grown = _topics(broker, bundle, "--describe", "--topic", topic)
    listed = _topics(broker, bundle, "--list").split()
    _topics(broker, bundle, "--delete", "--topic", topic)

    assert "PartitionCount: 3" in described
    assert "ReplicationFactor: 1" in described
    assert "retention.ms=60000" in described
    assert described.count("Leader: ") == 3
    assert "Leader: none" not in described
    assert "PartitionCount: 5" in grown
    assert topic in listed
    assert topic not in _topics(broker, bundle, "--list").split()


def test_a_wrong_topic_is_refused_with_the_reason(broker: RunningServer, topic: str, bundle: str) -> None:
    with pytest.raises(JavaFailedError, match="InvalidTopicException"):
        _topics(broker, bundle, "--create", "--topic", "not/legal", "--partitions", "1")
    with pytest.raises(JavaFailedError, match="InvalidReplicationFactorException"):
        _topics(broker, bundle, "--create", "--topic", topic, "--partitions", "1", "--replication-factor", "3")
    with pytest.raises(JavaFailedError, match=r"retention\.ms"):
        _topics(broker, bundle, "--create", "--topic", topic, "--partitions", "1", "--config", "retention.ms=soon")


def test_topic_settings_are_changed_and_given_back(broker: RunningServer, topic: str, bundle: str) -> None:
    create_topic(broker, topic, partitions=1)
    entity = ("--entity-type", "topics", "--entity-name", topic)
    _configs(broker, bundle, "--alter", *entity, "--add-config", "retention.ms=123456,cleanup.policy=[compact,delete]")
    changed = _configs(broker, bundle, "--describe", *entity)
    _configs(broker, bundle, "--alter", *entity, "--delete-config", "retention.ms,cleanup.policy")
    everything = _configs(broker, bundle, "--describe", "--all", *entity)

    assert "retention.ms=123456" in changed
    assert "cleanup.policy=compact,delete" in changed
    assert "DYNAMIC_TOPIC_CONFIG:retention.ms=123456" in changed
    assert "retention.ms=604800000" in everything
    assert "max.message.bytes=1048588" in everything


def test_broker_settings_are_listed_and_changed(broker: RunningServer, bundle: str) -> None:
    node = _node_id(broker, bundle)
    entity = ("--entity-type", "brokers", "--entity-name", node)
    _configs(broker, bundle, "--alter", *entity, "--add-config", "log.retention.ms=777000")
    changed = _configs(broker, bundle, "--describe", *entity)
    _configs(broker, bundle, "--alter", *entity, "--delete-config", "log.retention.ms")
    everything = _configs(broker, bundle, "--describe", "--all", *entity)

    assert "log.retention.ms=777000" in changed
    assert "DYNAMIC_BROKER_CONFIG:log.retention.ms=777000" in changed
    assert "num.io.threads=" in everything
    assert "777000" not in everything


def test_log_ends_are_reported_by_position_and_time(broker: RunningServer, topic: str, bundle: str) -> None:
    create_topic(broker, topic, partitions=2)
    _fill(broker, topic, 25)

    latest = _offsets(broker, bundle, topic, "latest")
    earliest = _offsets(broker, bundle, topic, "earliest")
    newest = _offsets(broker, bundle, topic, "max-timestamp")

    assert sum(latest.values()) == 25
    assert earliest == {0: 0, 1: 0}
    assert all(0 <= offset < 25 for offset in newest.values())


def test_records_are_deleted_up_to_an_offset(broker: RunningServer, topic: str, bundle: str, tmp_path: Path) -> None:
    create_topic(broker, topic, partitions=1)
    _fill(broker, topic, 25)
    wanted = {"partitions": [{"topic": topic, "partition": 0, "offset": 10}], "version": 1}
    (tmp_path / "delete.json").write_text(json.dumps(wanted))

    output = run_java(
        "org.apache.kafka.tools.DeleteRecordsCommand",
        ["--bootstrap-server", broker.bootstrap, "--offset-json-file", tmp_path / "delete.json"],
        bundle=bundle,
    )

    assert "low_watermark: 10" in output
    assert _offsets(broker, bundle, topic, "earliest") == {0: 10}


def test_log_directories_show_each_partitions_size(broker: RunningServer, topic: str, bundle: str) -> None:
    create_topic(broker, topic, partitions=2)
    _fill(broker, topic, 25)

    output = run_java(
        "org.apache.kafka.tools.LogDirsCommand",
        ["--bootstrap-server", broker.bootstrap, "--describe", "--topic-list", topic],
        bundle=bundle,
    )

    described = json.loads(next(line for line in output.splitlines() if line.startswith("{")))
    partitions = [found for directory in described["brokers"][0]["logDirs"] for found in directory["partitions"]]
    assert {found["partition"] for found in partitions} == {f"{topic}-0", f"{topic}-1"}
    assert sum(found["size"] for found in partitions) > 25


def _topics(broker: RunningServer, bundle: str, *arguments: str) -> str:
    return run_java(TOPICS, ["--bootstrap-server", broker.bootstrap, *arguments], bundle=bundle)


def _configs(broker: RunningServer, bundle: str, *arguments: str) -> str:
    return run_java(CONFIGS, ["--bootstrap-server", broker.bootstrap, *arguments], bundle=bundle)


def _offsets(broker: RunningServer, bundle: str, topic: str, time: str) -> dict[int, int]:
    arguments = ["--bootstrap-server", broker.bootstrap, "--topic", topic, "--time", time]
    lines = run_java(OFFSETS, arguments, bundle=bundle).splitlines()
    parts = [line.rsplit(":", 2) for line in lines if line.startswith(f"{topic}:")]
    return {int(partition): int(offset) for _, partition, offset in parts}


def _node_id(broker: RunningServer, bundle: str) -> str:
    output = run_java(
        "org.apache.kafka.tools.BrokerApiVersionsCommand"
        if bundle == "kafka-4.3"
        else "kafka.admin.BrokerApiVersionsCommand",
        ["--bootstrap-server", broker.bootstrap],
        bundle=bundle,
    )
    return output.partition("(id: ")[2].partition(" ")[0]


def _fill(broker: RunningServer, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(count):
        producer.produce(topic, b"%d" % number)
    assert producer.flush(15.0) == 0
