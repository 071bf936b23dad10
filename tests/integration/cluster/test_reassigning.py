"""`kavka reassign` against three brokers, beside Kafka's own tool: plans, throttles, progress, cancelling, Ctrl-C."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kavka.cli.main import main
from kavka.client import Admin
from kavka.client.admin import ConfigResource, TopicPartition, TopicPartitionReplica
from tests.support.java_tools import JavaTools
from tests.support.json_documents import document
from tests.support.kavka_process import KavkaProcess
from tests.support.processes import wait_until
from tests.support.terminal import CTRL_C, Terminal
from tests.support.tool_cluster import REASSIGN, TIMEOUT_S, ToolCluster
from tests.support.zookeeper_process import ZooKeeperProcess

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(600)]

IDS = (1, 2, 3)
SLOW = "2000"
"""A throttle with which nothing of what these tests move comes to an end by itself."""
SETTINGS = {
    # No session is to end by itself, on whatever machine.
    "zookeeper.session.timeout.ms": "30000",
    "controlled.shutdown.enable": "false",
    "auto.leader.rebalance.enable": "false",
    "replica.fetch.backoff.ms": "100",
    # Else a throttled follower has all before it is first found to be too fast.
    "replica.fetch.max.bytes": "20000",
}
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
REPLICAS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
LOG_DIR_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"


@pytest.fixture(scope="module")
def cluster(zookeeper: ZooKeeperProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolCluster]:
    directory = tmp_path_factory.mktemp("reassign")
    connect = f"{zookeeper.bootstrap}/reassign"
    with ExitStack() as stack:
        brokers = {}
        for broker_id in IDS:
            folders = ",".join(str(directory / str(broker_id) / name) for name in ("a", "b"))
            settings = {"broker.id": str(broker_id), "zookeeper.connect": connect, "log.dirs": folders, **SETTINGS}
            brokers[broker_id] = stack.enter_context(KavkaProcess(directory / str(broker_id), settings))
        made = ToolCluster(brokers, stack.enter_context(JavaTools("kafka-3.9")), connect)
        made.wait_for_brokers()
        yield made


@pytest.fixture
def admin(cluster: ToolCluster) -> Iterator[Admin]:
    with Admin(bootstrap_servers=cluster.bootstrap) as made:
        yield made


Reassign = Callable[..., tuple[int, str, str]]


@pytest.fixture
def reassign(cluster: ToolCluster, capsys: pytest.CaptureFixture[str]) -> Reassign:
    """Runs `kavka reassign ...`; gives its code and what it printed."""

    def run(*words: str | Path) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(["reassign", *map(str, words), "--bootstrap-server", cluster.bootstrap])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def throttles(admin: Admin, topic: str) -> dict[str, str]:
    """What is set of the throttles, of the topic and of the brokers."""
    resources = [ConfigResource.topic(topic), *map(ConfigResource.broker, IDS)]
    return {
        f"{resource.name} {name}": entry.value or ""
        for resource, entries in admin.describe_configs(resources).items()
        for name, entry in entries.items()
        if name in (*RATES, *REPLICAS, LOG_DIR_RATE) and not entry.is_default
    }


def wait_for_throttles(admin: Admin, topic: str, wanted: dict[str, str]) -> None:
    """Until it is these that are set: a broker hears of what others were told a little later."""
    wait_until(lambda: throttles(admin, topic) == wanted, TIMEOUT_S, lambda: f"it is {throttles(admin, topic)}")


def written(path: Path, replicas: dict[int, list[int]], topic: str, **log_dirs: list[str]) -> Path:
    rows: list[dict[str, Any]] = [
        {"topic": topic, "partition": index, "replicas": brokers} for index, brokers in replicas.items()
    ]
    for row in rows:
        if f"_{row['partition']}" in log_dirs:
            row["log_dirs"] = log_dirs[f"_{row['partition']}"]
    path.write_text(json.dumps({"version": 1, "partitions": rows}))
    return path


def test_a_broker_is_drained_by_a_plan_and_no_throttle_stays(
    cluster: ToolCluster, admin: Admin, reassign: Reassign, tmp_path: Path
) -> None:
    topic = "r.drained"
    cluster.create(topic, "1:2,2:3,3:1")
    cluster.fill(topic, 3, 60)
    file, before = tmp_path / "plan.json", tmp_path / "before.json"
    plan = ("plan", "--drain-brokers", "3", "--topic", topic)
    code, out, _ = reassign(*plan, "--out", file, "--output", "json")
    rows = document("reassign-plan", out)
    assert (code, [(row["partition"], sorted(row["replicas"])) for row in rows]) == (0, [(1, [1, 2]), (2, [1, 2])])
    sizes = {
        name.partition: info.size_bytes
        for log_dir in admin.describe_log_dirs([3])[3].values()
        for name, info in log_dir.replicas.items()
        if name.topic == topic
    }
    assert {row["partition"]: row["bytes_to_move"] for row in rows} == sizes
    code, out, _ = reassign(*plan)
    assert "2 partitions move, 0 partitions change their preferred leader only: " in out
    assert re.search(r"^ *3 +- +2 -> 0 +1 -> 0 +", out, re.MULTILINE)

    execute = ("execute", "--reassignment-json-file", file, "--throttle", "100000000", "--rollback-json-file", before)
    code, out, err = reassign(*execute, "--dry-run")
    assert (code, throttles(admin, topic), before.exists()) == (0, {}, False)
    code, out, err = reassign(*execute)
    assert code == 0
    wait_for_throttles(admin, topic, {})
    assert f"throttles are removed from brokers 1,2,3 and topics {topic}" in err
    assert "Reassignment of partition r.drained-2 is completed." in cluster.verify(file)
    # All brokers have heard of it: any of them may be asked where replicas are.
    cluster.wait_for_replicas(topic, {1, 2}, {1, 2}, {1, 2})
    assert reassign(*plan)[1] == "nothing is to move\n"
    # What it had been is there to go back to.
    code, out, _ = reassign("cancel", "--reassignment-json-file", file, "--rollback-json-file", before)
    assert code == 0
    cluster.wait_for_replicas(topic, {1, 2}, {2, 3}, {3, 1})


def test_what_kafkas_tool_generates_is_begun_listed_and_cancelled_as_that_does(
    cluster: ToolCluster, admin: Admin, reassign: Reassign, tmp_path: Path
) -> None:
    topic = "r.generated"
    cluster.create(topic, "1:2")
    cluster.fill(topic, 1, 600)
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    generate = ("--topics-to-move-json-file", topics, "--broker-list", "1,2,3")
    theirs = [line for line in cluster.run(REASSIGN, "--generate", *generate).splitlines() if line.startswith("{")]
    code, out, _ = reassign("generate", *generate)
    ours = [line for line in out.splitlines() if line.startswith("{")]
    assert code == 0
    assert json.loads(ours[0]) == json.loads(theirs[0])
    assert ours[0].replace(" ", "") == theirs[0].replace(" ", "")
    assert len(json.loads(ours[1])["partitions"][0]["replicas"]) == 2

    file = written(tmp_path / "plan.json", {0: [3, 2]}, topic)
    execute = ("--reassignment-json-file", file, "--throttle", SLOW)
    code, _, err = reassign("execute", *execute, "--no-wait")
    assert (code, "throttles stay until kavka reassign verify" in err) == (0, True)
    assert cluster.run(REASSIGN, "--list").splitlines()[1] == f"{topic}-0: replicas: 3,2,1. adding: 3. removing: 1."
    (listed,) = document("reassign-list", reassign("list", "--output", "json")[1])
    assert (listed["replicas"], listed["adding"], listed["removing"]) == ([3, 2, 1], [3], [1])
    assert listed["bytes_left"] > 100_000
    wait_until(lambda: len(throttles(admin, topic)) == 8, TIMEOUT_S, "throttles are not seen")
    set_by_us = throttles(admin, topic)
    code, out, err = reassign("verify", *execute[:2], "--output", "json")
    assert (code, document("reassign-verify", out)[0]["state"], err) == (1, "in progress", "")
    wait_for_throttles(admin, topic, set_by_us)
    code, _, err = reassign("execute", *execute)
    assert (code, "1 partition moves already: r.generated-0; --additional begins" in err) == (1, True)

    code, out, err = reassign("cancel", *execute[:2], "--output", "json")
    assert (code, document("reassign-verify", out)[0]["state"]) == (0, "completed")
    wait_for_throttles(admin, topic, {})
    cluster.wait_for_replicas(topic, {1, 2})
    cluster.run(REASSIGN, "--execute", *execute)
    wait_for_throttles(admin, topic, set_by_us)
    cluster.run(REASSIGN, "--cancel", "--reassignment-json-file", file)
    cluster.wait_for_replicas(topic, {1, 2})


def test_ctrl_c_leaves_the_bar_and_says_what_goes_on_and_what_stays_set(
    cluster: ToolCluster, admin: Admin, reassign: Reassign, tmp_path: Path
) -> None:
    topic = "r.interrupted"
    cluster.create(topic, "1:2")
    cluster.fill(topic, 1, 600)
    file = written(tmp_path / "plan.json", {0: [3, 2]}, topic)
    command = [sys.executable, "-m", "kavka", "reassign", "execute", "--reassignment-json-file", str(file)]
    with Terminal([*command, "--throttle", SLOW, "--bootstrap-server", cluster.bootstrap]) as terminal:
        terminal.wait_for("1 partition left, ", TIMEOUT_S)
        terminal.press(CTRL_C)
        assert terminal.wait(TIMEOUT_S) == 130
    assert "%" in terminal.shown
    assert "Traceback" not in terminal.shown
    told = " ".join(terminal.shown.split())
    assert (
        "kavka reassign execute: what has begun goes on and throttles stay set; `kavka reassign verify --wait" in told
    )
    wait_until(lambda: len(throttles(admin, topic)) == 8, TIMEOUT_S, "throttles do not stay")
    # Whoever waits again, with more speed, sees its end and has the throttles removed.
    again = ("execute", "--reassignment-json-file", file, "--additional", "--throttle", "100000000")
    assert reassign(*again)[0] == 0
    cluster.wait_for_replicas(topic, {2, 3})
    wait_for_throttles(admin, topic, {})


def test_replicas_come_to_the_log_directories_that_the_file_names(
    cluster: ToolCluster, admin: Admin, reassign: Reassign, tmp_path: Path
) -> None:
    topic = "r.directories"
    cluster.create(topic, "1:2")
    cluster.fill(topic, 1, 100)
    here = cluster.directories(topic)[1][0][0]
    other = "b" if here == "a" else "a"
    path = str(cluster.brokers[1].directory / other)
    file = written(tmp_path / "plan.json", {0: [1, 2]}, topic, _0=[path, "any"])
    code, _, _ = reassign("execute", "--reassignment-json-file", file, "--replica-alter-log-dirs-throttle", "100000000")
    assert code == 0
    wait_for_throttles(admin, topic, {})
    replica = TopicPartitionReplica(topic, 0, 1)
    assert admin.describe_replica_log_dirs([replica])[replica].current_dir == path
    assert "Reassignment of replica r.directories-0-1 completed successfully." in cluster.verify(file)
    code, out, _ = reassign("verify", "--reassignment-json-file", file)
    assert code == 0
    assert re.search(rf"^r.directories +0 +1 +completed +{path} +{path}$", out, re.MULTILINE)


def test_moves_between_log_directories_are_cancelled(
    cluster: ToolCluster, admin: Admin, reassign: Reassign, tmp_path: Path
) -> None:
    topic = "r.stays"
    cluster.create(topic, "1:2")
    cluster.fill(topic, 1, 400)
    here = cluster.directories(topic)
    other = "b" if here[1][0][0] == "a" else "a"
    file = written(tmp_path / "plan.json", {0: [1, 2]}, topic, _0=[str(cluster.brokers[1].directory / other), "any"])
    given = ("--reassignment-json-file", file)
    assert reassign("execute", *given, "--replica-alter-log-dirs-throttle", SLOW, "--no-wait")[0] == 0
    wait_until(lambda: list(throttles(admin, topic)) == [f"1 {LOG_DIR_RATE}"], TIMEOUT_S, "no throttle is seen")
    code, out, _ = reassign("verify", *given)
    assert (code, "in progress" in out) == (1, True)
    code, _, err = reassign("cancel", *given)
    assert (code, err.splitlines()[0]) == (0, "cancelled: 0 partitions, 1 log directory move")
    wait_for_throttles(admin, topic, {})
    cluster.wait_for_directories(topic, here)


def test_what_cannot_be_begun_leaves_no_throttles(
    cluster: ToolCluster, admin: Admin, reassign: Reassign, tmp_path: Path
) -> None:
    topic = "r.refused"
    cluster.create(topic, "1:2")
    nobody = written(tmp_path / "nobody.json", {0: [1, 9]}, topic)
    assert reassign("execute", "--reassignment-json-file", nobody, "--throttle", SLOW)[::2] == (
        1,
        "kavka reassign execute: no broker 9\n",
    )
    nothing = written(tmp_path / "nothing.json", {0: [1, 2], 7: [1, 2]}, topic)
    assert reassign("execute", "--reassignment-json-file", nothing)[::2] == (
        1,
        "kavka reassign execute: there is no partition r.refused-7\n",
    )
    wait_for_throttles(admin, topic, {})
    assert admin.list_partition_reassignments([TopicPartition(topic, 0)]) == {}
    wait_until(lambda: reassign("list")[:2] == (0, ""), TIMEOUT_S, "something moves")
