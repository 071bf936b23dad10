"""Kafka's own tools against three brokers: topics, reassignments, elections, log directories, features, offsets."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support import maven
from tests.support.java import QUIET, SHORT_LIVED
from tests.support.java_tools import JavaTools
from tests.support.kavka_process import KavkaProcess
from tests.support.processes import Process, wait_until
from tests.support.tool_cluster import PACKAGE, REASSIGN, TIMEOUT_S, TOPICS, ToolCluster
from tests.support.zookeeper_process import ZooKeeperProcess

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(600)]

BUNDLE = "kafka-3.9"
FEATURES, ELECT = f"{PACKAGE}.FeatureCommand", f"{PACKAGE}.LeaderElectionCommand"
OFFSETS, VERIFY_REPLICAS = f"{PACKAGE}.GetOffsetShell", f"{PACKAGE}.ReplicaVerificationTool"
PRODUCE, CONSUME = f"{PACKAGE}.VerifiableProducer", f"{PACKAGE}.VerifiableConsumer"

IDS = (1, 2, 3)
SLOW_BYTES = 2000
"""A throttle with which nothing of what these tests move comes to an end by itself."""
SETTINGS = {
    # No session is to end by itself, on whatever machine.
    "zookeeper.session.timeout.ms": "30000",
    "controlled.shutdown.enable": "false",
    # Else a controller that began while a broker was dead may give it its leaderships back before a test asks for that.
    "auto.leader.rebalance.enable": "false",
    "min.insync.replicas": "2",
    "replica.fetch.backoff.ms": "100",
    # Else a throttled follower has all before it is first found to be too fast.
    "replica.fetch.max.bytes": "20000",
    "group.initial.rebalance.delay.ms": "100",
    "offsets.topic.num.partitions": "3",
}


@pytest.fixture(scope="module")
def cluster(zookeeper: ZooKeeperProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolCluster]:
    directory = tmp_path_factory.mktemp("tools")
    connect = f"{zookeeper.bootstrap}/tools"
    with ExitStack() as stack:
        brokers = {
            broker_id: KavkaProcess(
                directory / str(broker_id),
                {
                    "broker.id": str(broker_id),
                    "zookeeper.connect": connect,
                    "log.dirs": ",".join(str(directory / str(broker_id) / name) for name in ("a", "b")),
                    **SETTINGS,
                },
            )
            for broker_id in IDS
        }
        for broker in brokers.values():
            stack.enter_context(broker)
        made = ToolCluster(brokers, stack.enter_context(JavaTools(BUNDLE)), connect)
        made.wait_for_brokers()
        yield made


@pytest.fixture(autouse=True)
def _three_live(cluster: ToolCluster) -> Iterator[None]:
    yield
    cluster.start_the_dead()


def written(path: Path, content: Mapping[str, object]) -> Path:
    path.write_text(json.dumps(content))
    return path


def plan(path: Path, topic: str, replicas: Sequence[Sequence[int]], **log_dirs: Sequence[str]) -> Path:
    """A reassignment; `_0=[...]`: the log directories of partition 0."""
    partitions = [
        {
            "topic": topic,
            "partition": index,
            "replicas": list(wanted),
            **({"log_dirs": list(log_dirs[f"_{index}"])} if f"_{index}" in log_dirs else {}),
        }
        for index, wanted in enumerate(replicas)
    ]
    return written(path, {"version": 1, "partitions": partitions})


def test_topics_are_created_described_altered_and_deleted(cluster: ToolCluster) -> None:
    made = cluster.run(
        *(TOPICS, "--create", "--topic", "t.made", "--partitions", "3", "--replication-factor", "3"),
        *("--config", "retention.ms=123456789"),
    )
    assert "Created topic t.made." in made
    cluster.wait_for_isr("t.made", 3)
    assert "t.made" in cluster.run(TOPICS, "--list").split()
    described = cluster.run(TOPICS, "--describe", "--topic", "t.made")
    listed = cluster.run(TOPICS, "--describe", "--under-replicated-partitions")
    assert "PartitionCount: 3\tReplicationFactor: 3" in described
    assert "retention.ms=123456789" in described
    assert sorted(re.findall(r"Leader: (\d)", described)) == ["1", "2", "3"]
    assert "t.made" not in listed
    cluster.run(TOPICS, "--alter", "--topic", "t.made", "--partitions", "5")
    wait_until(lambda: len(cluster.partitions("t.made")) == 5, TIMEOUT_S, "no new partitions")
    cluster.run(TOPICS, "--delete", "--topic", "t.made")
    wait_until(lambda: "t.made" not in cluster.run(TOPICS, "--list").split(), TIMEOUT_S, "it is there still")


def test_a_generated_reassignment_is_executed_and_verified(cluster: ToolCluster, tmp_path: Path) -> None:
    topic = "t.generated"
    cluster.create(topic, "1:2,2:1")
    cluster.fill(topic, 2, 100)
    wanted = written(tmp_path / "topics", {"version": 1, "topics": [{"topic": topic}]})
    text = cluster.run(REASSIGN, "--generate", "--topics-to-move-json-file", wanted, "--broker-list", "2,3")
    current, proposed = (json.loads(line) for line in text.splitlines() if line.startswith("{"))
    assert [each["replicas"] for each in current["partitions"]] == [[1, 2], [2, 1]]
    file = written(tmp_path / "plan", proposed)
    assert "Successfully started partition reassignments" in cluster.run(
        REASSIGN, "--execute", "--reassignment-json-file", file, "--throttle", "10000000"
    )
    replicas = [each["replicas"] for each in proposed["partitions"]]
    # The tool begins with a broker at random. A leader that is among the new replicas, as that of the second is, stays.
    cluster.wait_for(topic, replicas, leaders=[replicas[0][0], 2])
    verified = cluster.verify(file)
    for index in range(2):
        assert f"Reassignment of partition {topic}-{index} is completed." in verified
    assert "Clearing topic-level throttles" in verified


def test_a_reassignment_is_listed_and_cancelled(cluster: ToolCluster, tmp_path: Path) -> None:
    topic = "t.cancelled"
    cluster.create(topic, "1:2")
    cluster.fill(topic, 1, 600)
    file = plan(tmp_path / "plan", topic, [[3, 2]])
    cluster.run(REASSIGN, "--execute", "--reassignment-json-file", file, "--throttle", str(SLOW_BYTES))
    listed = cluster.run(REASSIGN, "--list")
    assert f"{topic}-0: replicas: " in listed
    assert "adding: 3." in listed
    assert f"Reassignment of partition {topic}-0 is still in progress." in cluster.run(
        REASSIGN, "--verify", "--reassignment-json-file", file
    )
    cancelled = cluster.run(REASSIGN, "--cancel", "--reassignment-json-file", file)
    assert f"Successfully cancelled partition reassignment for: {topic}-0" in cancelled
    cluster.wait_until_shown("No partition reassignments found.", REASSIGN, "--list")
    # In the order of the reassignment, as Kafka's controller on ZooKeeper has it.
    cluster.wait_for_replicas(topic, {1, 2})
    cluster.wait_for_directories(topic, {3: []})


def test_moves_between_log_directories_are_executed_verified_and_cancelled(
    cluster: ToolCluster, tmp_path: Path
) -> None:
    topic = "t.directories"
    cluster.create(topic, "1:2:3")
    cluster.fill(topic, 1, 400)
    before = cluster.directories(topic)
    target = {broker_id: "b" if before[broker_id][0][0] == "a" else "a" for broker_id in IDS}
    paths = [str(cluster.brokers[each].directory / target[each]) for each in IDS]
    there = plan(tmp_path / "there", topic, [IDS], _0=paths)
    back = plan(
        tmp_path / "back",
        topic,
        [IDS],
        _0=[str(Path(path).with_name(before[broker_id][0][0])) for broker_id, path in zip(IDS, paths, strict=True)],
    )
    execute = ("--execute", "--reassignment-json-file", there, "--replica-alter-log-dirs-throttle")
    started = cluster.run(REASSIGN, *execute, str(SLOW_BYTES))
    assert started.count("Successfully started moving log directory to") == len(IDS)
    on_the_way = {each: sorted([*before[each], (target[each], f"{topic}-0", True)]) for each in IDS}
    cluster.wait_for_directories(topic, on_the_way)
    assert f"Reassignment of replica {topic}-0-1 is still in progress." in cluster.run(
        REASSIGN, "--verify", "--reassignment-json-file", there, "--preserve-throttles"
    )
    # Back to where they are: that is how a move is given up.
    cluster.run(REASSIGN, "--execute", "--reassignment-json-file", back, "--additional")
    cluster.wait_for_directories(topic, before)
    cluster.run(REASSIGN, *execute, "1000000000", "--additional")
    done = {each: [(target[each], f"{topic}-0", False)] for each in IDS}
    cluster.wait_for_directories(topic, done)
    verified = cluster.verify(there)
    for broker_id in IDS:
        assert f"Reassignment of replica {topic}-0-{broker_id} completed successfully." in verified
    cluster.fill(topic, 1, 50)
    wait_until(partial(_are_equal, paths, topic), TIMEOUT_S, "replicas differ")


def _are_equal(paths: Sequence[str], topic: str) -> bool:
    logs = {b"".join(file.read_bytes() for file in sorted((Path(path) / f"{topic}-0").glob("*.log"))) for path in paths}
    return len(logs) == 1


def test_a_replica_comes_to_the_log_directory_that_its_reassignment_names(cluster: ToolCluster, tmp_path: Path) -> None:
    topic = "t.placed"
    cluster.create(topic, "1:2")
    cluster.fill(topic, 1, 100)
    for name in ("a", "b"):
        target = [3, 2] if name == "a" else [1, 2]
        path = str(cluster.brokers[target[0]].directory / name)
        file = plan(tmp_path / name, topic, [target], _0=[path, "any"])
        cluster.run(REASSIGN, "--execute", "--reassignment-json-file", file)
        cluster.wait_for(topic, [target])
        cluster.wait_for_directories(topic, {target[0]: [(name, f"{topic}-0", False)]})
        verified = cluster.verify(file)
        assert f"Reassignment of partition {topic}-0 is completed." in verified
        assert f"Reassignment of replica {topic}-0-{target[0]} completed successfully." in verified


def test_features_are_shown_lowered_and_raised(cluster: ToolCluster) -> None:
    feature = "transaction.version"
    described = cluster.run(FEATURES, "describe")
    assert re.search(rf"Feature: {feature}\s+SupportedMinVersion: 0\s+SupportedMaxVersion: 2\s", described)
    assert "was downgraded to 1" in cluster.run(FEATURES, "downgrade", "--feature", f"{feature}=1")
    cluster.wait_until_shown(rf"Feature: {feature}.*FinalizedVersionLevel: 1", FEATURES, "describe")
    assert "was upgraded to 2" in cluster.run(FEATURES, "upgrade", "--feature", f"{feature}=2")
    cluster.wait_until_shown(rf"Feature: {feature}.*FinalizedVersionLevel: 2", FEATURES, "describe")


def test_replicas_are_verified_and_offsets_shown(cluster: ToolCluster, tmp_path: Path) -> None:
    topic = "t.verified"
    cluster.create(topic, "1:2:3,2:3:1,3:1:2")
    cluster.fill(topic, 3, 90)
    assert sorted(cluster.run(OFFSETS, "--topic", topic).split()) == [f"{topic}:{index}:30" for index in range(3)]
    earliest = cluster.run(OFFSETS, "--topic-partitions", f"{topic}:1", "--time", "-2")
    assert earliest.split() == [f"{topic}:1:0"]
    arguments = ["--broker-list", cluster.bootstrap, "--topics-include", topic, "--report-interval-ms", "200"]
    with Process(java(VERIFY_REPLICAS, *arguments), tmp_path / "verification") as verification:
        verification.wait_for_log("max lag is 0 for partition .* at offset 30 among 3 partitions", TIMEOUT_S)
        verification.kill()


def test_a_dead_brokers_leaderships_return_to_it_by_a_preferred_election(cluster: ToolCluster) -> None:
    topic = "t.elected"
    cluster.create(topic, "1:2:3,2:3:1")
    cluster.kill(1)
    cluster.wait_for_isr(topic, 2)
    assert {index: each.leader_id for index, each in cluster.partitions(topic).items()} == {0: 2, 1: 2}
    shown = cluster.run(TOPICS, "--describe", "--topic", topic, "--under-replicated-partitions")
    assert shown.count(f"Topic: {topic}") == 2
    cluster.start(1)
    cluster.wait_for_isr(topic, 3)
    elected = cluster.run(ELECT, "--election-type", "preferred", "--topic", topic, "--partition", "0")
    assert f"Successfully completed leader election (PREFERRED) for partitions {topic}-0" in elected
    cluster.wait_for(topic, [[1, 2, 3], [2, 3, 1]])
    again = cluster.run(ELECT, "--election-type", "preferred", "--topic", topic, "--partition", "0")
    assert f"Valid replica already elected for partitions {topic}-0" in again


def test_verifiable_clients_lose_and_double_nothing_through_failovers(cluster: ToolCluster, tmp_path: Path) -> None:
    """kill -9 of a leader, then of the controller; each comes back."""
    topic = "t.failovers"
    cluster.create(topic, "1:2:3,2:3:1,3:1:2")
    settings = tmp_path / "producer.properties"
    settings.write_text("retries=2147483647\nenable.idempotence=true\ndelivery.timeout.ms=120000\n")
    here = ("--bootstrap-server", cluster.bootstrap, "--topic", topic)
    sending = (PRODUCE, *here, "--throughput", "200", "--acks", "-1")
    reading = (CONSUME, *here, "--group-id", "readers", "--verbose")
    with (
        Process(java(*sending, "--producer.config", str(settings)), tmp_path / "produced") as producer,
        Process(java(*reading, "--reset-policy", "earliest"), tmp_path / "consumed") as consumer,
    ):
        for what in ("leader", "controller"):
            wait_for_more(producer, 400)
            broker_id = cluster.partitions(topic)[1].leader_id if what == "leader" else cluster.controller_id
            cluster.kill(broker_id)
            cluster.wait_for_leaders(topic, other_than=broker_id)
            wait_for_more(producer, 400)
            cluster.start(broker_id)
            cluster.wait_for_isr(topic, 3)
        # It sends what it has begun with, and ends.
        producer.stop()
        sent = events(producer)
        acknowledged = {(each["partition"], each["offset"]): each["value"] for each in sent if "offset" in each}
        wait_until(lambda: len(read_by(consumer)) >= len(acknowledged), TIMEOUT_S, "not all is read")
        assert read_by(consumer) == acknowledged
    failed = [each for each in sent if each["name"] == "producer_send_error"]
    # What it was about to send when it was told to end.
    assert [each for each in failed if "after producer has been closed" not in each["message"]] == []
    assert sorted(acknowledged.values(), key=int) == [str(number) for number in range(len(acknowledged))]
    ends = cluster.run(OFFSETS, "--topic", topic).split()
    assert sum(int(each.rpartition(":")[2]) for each in ends) == len(acknowledged)


def java(*command: str) -> list[str]:
    return ["java", "-Xmx128m", *SHORT_LIVED, QUIET, "-cp", maven.classpath(BUNDLE), *command]


def events(process: Process) -> list[dict[str, Any]]:
    """All that it has told whole so far."""
    return [json.loads(line) for line in process.log_text().splitlines() if line.startswith('{"') and line[-1] == "}"]


def read_by(consumer: Process) -> dict[tuple[int, int], str]:
    """By partition and offset; what it was given twice, as after a rebalance it may be, is there once."""
    told = [each for each in events(consumer) if each["name"] == "record_data"]
    return {(each["partition"], each["offset"]): each["value"] for each in told}


def wait_for_more(producer: Process, count: int) -> None:
    """Until so many more are acknowledged."""

    def acknowledged() -> int:
        producer.check_alive()
        return producer.log_text().count("producer_send_success")

    before = acknowledged()
    wait_until(lambda: acknowledged() >= before + count, TIMEOUT_S, "nothing is acknowledged")
