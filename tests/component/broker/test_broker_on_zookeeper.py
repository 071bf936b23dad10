"""A broker whose cluster's state is in ZooKeeper: it starts, comes back, and says what keeps it from starting."""

import json
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from kavka.broker.server import Broker, StartError
from kavka.cluster.registry.base import Create, create_path
from kavka.cluster.registry.zookeeper import ZooKeeperRegistry
from kavka.config.broker_config import BrokerConfig
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kavka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.support.cutting_proxy import CuttingProxy
from tests.support.kafka_directory import extract_kafka_directory
from tests.support.processes import free_port, wait_until
from tests.support.registries import expire_session, new_root, open_zookeeper
from tests.support.running_broker import BROKER_ID, HOST, RunningBroker
from tests.support.wire import RawClient
from tests.support.zookeeper_process import ZooKeeperProcess

pytestmark = [pytest.mark.integration, pytest.mark.java]

PATIENCE_S = 60.0
SESSION = {"zookeeper.session.timeout.ms": "30000", "zookeeper.connection.timeout.ms": "60000"}


@pytest.fixture
def connect(zookeeper: ZooKeeperProcess) -> str:
    return zookeeper.bootstrap + new_root()


@pytest.fixture
def tree(zookeeper: ZooKeeperProcess, connect: str) -> Iterator[ZooKeeperRegistry]:
    """What an operator sees of the cluster's tree."""
    registry = open_zookeeper(connect, "")
    yield registry
    registry.close()


def settings(connect: str, **others: str) -> dict[str, str]:
    return {"zookeeper.connect": connect, **SESSION, **{name.replace("_", "."): text for name, text in others.items()}}


def refusal(directory: Path, connect: str, **others: str) -> str:
    """What a start is refused with, in one line."""
    given = {"listeners": f"PLAINTEXT://{HOST}:0", "log.dirs": str(directory), **settings(connect, **others)}
    with pytest.raises(StartError) as refused:
        Broker(BrokerConfig(given)).start()
    assert len(str(refused.value).splitlines()) == 1
    return str(refused.value)


def registry_of(running: RunningBroker) -> ZooKeeperRegistry:
    registry = running.broker.services.registry
    assert isinstance(registry, ZooKeeperRegistry)
    return registry


def test_topics_and_messages_are_there_after_a_restart(tmp_path: Path, connect: str, tree: ZooKeeperRegistry) -> None:
    with RunningBroker(tmp_path, settings(connect)) as running:
        with RawClient(HOST, running.port) as client:
            client.create_topic("visits", 2, retention_ms="60000")
            client.produce("visits", b"one")
        node = json.loads(tree.get(f"/brokers/ids/{BROKER_ID}")[0])
        assert (node["version"], node["endpoints"]) == (5, [f"PLAINTEXT://{HOST}:{running.port}"])
        assert json.loads(tree.get("/cluster/id")[0])["id"] == running.broker.services.cluster_id
        assert json.loads(tree.get("/config/topics/visits")[0])["config"] == {"retention.ms": "60000"}
        assert tree.children("/brokers/topics/visits/partitions") == ["0", "1"]
        assert tree.get("/controller_epoch")[0] == b"1"

        running.restart()

        with RawClient(HOST, running.port) as client:
            wait_until(lambda: b"one" in client.fetch("visits"), PATIENCE_S, "nothing is led")
        assert tree.get("/controller_epoch")[0] == b"2"
    assert tree.children("/brokers/ids") == []
    assert tree.exists("/controller") is None
    assert not list(tmp_path.glob("*.sqlite*"))


def test_settings_that_others_write_are_heard_in_the_next_session_too(
    tmp_path: Path, connect: str, tree: ZooKeeperRegistry, zookeeper: ZooKeeperProcess
) -> None:
    with RunningBroker(tmp_path, settings(connect)) as running:
        with RawClient(HOST, running.port) as client:
            client.create_topic("visits")
        epoch = tree.get(f"/brokers/ids/{BROKER_ID}")[1].czxid
        # Whose notification is gone, as after a quarter of an hour.
        tree.set("/config/topics/visits", b'{"version":1,"config":{"retention.ms":"654321"}}')
        expire_session(registry_of(running), zookeeper.bootstrap)
        wait_until(lambda: tree.exists(f"/brokers/ids/{BROKER_ID}"), PATIENCE_S, "not registered again")
        assert tree.get(f"/brokers/ids/{BROKER_ID}")[1].czxid > epoch
        tree.multi(
            [
                Create("/config/brokers/<default>", b'{"version":1,"config":{"log.retention.ms":"123456"}}'),
                Create(
                    "/config/changes/config_change_",
                    b'{"version":2,"entity_path":"brokers/<default>"}',
                    sequential=True,
                ),
            ]
        )
        wait_until(
            lambda: running.broker.services.config.current.log_retention_ms == 123456, PATIENCE_S, "nothing was heard"
        )
        overrides = running.broker.services.config.topic_overrides
        wait_until(lambda: overrides("visits") == {"retention.ms": "654321"}, PATIENCE_S, "what was missed is not read")
        wait_until(lambda: int(tree.get("/controller_epoch")[0]) >= 2, PATIENCE_S, "not elected again")
        with RawClient(HOST, running.port) as client:
            client.create_topic("afterwards")


def test_without_zookeeper_messages_go_on_and_a_stop_is_not_held_up(
    tmp_path: Path, connect: str, zookeeper: ZooKeeperProcess
) -> None:
    root = connect.partition("/")[2]
    with CuttingProxy(zookeeper.host, zookeeper.port) as proxy:
        running = RunningBroker(tmp_path, settings(f"{proxy.bootstrap}/{root}"))
        with running:
            with RawClient(HOST, running.port) as client:
                client.create_topic("visits")
                proxy.refuses = True
                proxy.cut()
                state = registry_of(running)
                wait_until(lambda: state.session_state == "CONNECTING", PATIENCE_S, "still connected")
                client.produce("visits", b"one")
                assert b"one" in client.fetch("visits")
            stopped = threading.Event()

            def stop() -> None:
                running.broker.stop()
                stopped.set()

            threading.Thread(target=stop, daemon=True).start()
            assert stopped.wait(PATIENCE_S)


def test_the_session_is_in_the_metrics(tmp_path: Path, connect: str) -> None:
    page = b""
    with RunningBroker(tmp_path, settings(connect, metrics_port="0", metrics_host=HOST)) as running:
        page = urllib.request.urlopen(f"http://{HOST}:{running.broker.metrics_port}/metrics", timeout=PATIENCE_S).read()
    lines = page.decode().splitlines()
    samples = {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}
    assert samples['kafka_server_sessionexpirelistener_sessionstate{state="CONNECTED"}'] == 1
    assert samples["kafka_server_sessionexpirelistener_zookeepersyncconnects_total"] == 1
    assert samples["kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms_count"] > 10
    assert samples['kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms{quantile="0.99"}'] > 0


def test_a_zookeeper_out_of_reach_is_named(tmp_path: Path) -> None:
    connect = f"127.0.0.1:{free_port()}"
    complaint = refusal(tmp_path, connect, zookeeper_connection_timeout_ms="300")
    assert complaint == f"ZooKeeper at {connect} did not answer in 0.3 s"


def test_a_broker_finds_its_cluster_again_or_does_not_start(
    tmp_path: Path, connect: str, tree: ZooKeeperRegistry
) -> None:
    with RunningBroker(tmp_path / "mine", settings(connect)) as running:
        cluster_id = running.broker.services.cluster_id

    complaint = refusal(tmp_path / "mine", f"{connect}/typo")
    assert f"zookeeper.connect={connect}/typo leads to no node /" in complaint
    assert f"belong to cluster {cluster_id}: another root path?" in complaint
    assert tree.exists("/typo") is None

    tree.create("/empty")
    assert "leads to no cluster" in refusal(tmp_path / "mine", f"{connect}/empty")
    assert tree.children("/empty") == []

    with RunningBroker(tmp_path / "theirs", settings(f"{connect}/other")):
        pass
    complaint = refusal(tmp_path / "mine", f"{connect}/other")
    assert f"the log directories belong to {cluster_id}" in complaint


def test_a_cluster_whose_id_is_spoilt_is_named_and_not_joined(
    tmp_path: Path, connect: str, tree: ZooKeeperRegistry
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=known\n")
    create_path(tree, "/cluster")
    tree.create("/cluster/id")
    for data in (b"", b"[]", b'{"version":"1"}', b'{"id":5}', b'{"id":""}', b'{"id":"\\ud800"}', b'{"id":"a\\nb"}'):
        tree.set("/cluster/id", data)
        for directory in ("mine", "new"):
            complaint = refusal(tmp_path / directory, connect)
            assert complaint.startswith("/cluster/id cannot be read: ")
            assert """belongs there is {"version":"1","id":"..."} with the cluster.id of the brokers'""" in complaint
    assert not (tmp_path / "new" / "meta.properties").exists()

    tree.set("/cluster/id", b'{"version":"1","id":"known"}')
    with RunningBroker(tmp_path / "mine", {**settings(connect), "broker.id": "1"}) as running:
        assert running.broker.services.cluster_id == "known"


def test_an_id_that_another_broker_has_is_waited_for_and_refused(
    tmp_path: Path, connect: str, tree: ZooKeeperRegistry
) -> None:
    with RunningBroker(tmp_path / "first", settings(connect)) as first:
        complaint = refusal(tmp_path / "second", connect, broker_id=BROKER_ID, zookeeper_session_timeout_ms="1000")
        assert f"a live broker has the id {BROKER_ID}, at PLAINTEXT://{HOST}:{first.port}" in complaint


def test_a_login_that_is_none_is_not_shown(tmp_path: Path, connect: str) -> None:
    complaint = refusal(tmp_path, connect, kavka_zookeeper_digest="hunter2")
    assert "kavka.zookeeper.digest" in complaint
    assert "must be user:password" in complaint
    assert "hunter2" not in complaint


@pytest.mark.parametrize(
    ("connect_text", "reason"),
    [("127.0.0.1:port", "no port"), ("127.0.0.1:1/a//b", "root path"), ("127.0.0.1:1,", "no host")],
)
def test_what_is_no_address_of_a_zookeeper_is_named(tmp_path: Path, connect_text: str, reason: str) -> None:
    complaint = refusal(tmp_path, connect_text)
    assert "zookeeper.connect" in complaint
    assert reason in complaint


def test_a_wrong_login_ends_the_start(tmp_path: Path, connect: str) -> None:
    protected = {"zookeeper_set_acl": "true", "kavka_zookeeper_digest": "kavka:secret"}
    with RunningBroker(tmp_path / "first", settings(connect, **protected)):
        pass
    for login in ({}, {"kavka_zookeeper_digest": "kavka:wrong"}):
        complaint = refusal(tmp_path / "second", connect, **login)
        assert "does not permit it to this login (kavka.zookeeper.digest)" in complaint
        assert "wrong" not in complaint


def test_a_topic_too_large_for_a_node_is_refused_to_its_asker_alone(
    tmp_path: Path, connect: str, tree: ZooKeeperRegistry
) -> None:
    with RunningBroker(tmp_path, settings(connect)) as running:
        with RawClient(HOST, running.port, timeout_s=240) as client:
            topic = CreatableTopic(
                name="huge", num_partitions=100_000, replication_factor=1, assignments=[], configs=[]
            )
            (result,) = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=200_000), 7).topics
            assert result.error_code == ErrorCode.INVALID_REQUEST
            assert "bytes are more than the 1048575" in result.error_message
            client.create_topic("small")
            growth = CreatePartitionsTopic(name="small", count=100_000, assignments=None)
            (result,) = client.ask(
                CreatePartitionsRequest(topics=[growth], timeout_ms=200_000, validate_only=False), 2
            ).results
            assert result.error_code == ErrorCode.INVALID_REQUEST
            assert "bytes are more than the 1048575" in result.error_message
            client.produce("small", b"one")
        assert registry_of(running).session_counts.disconnects == 0
        assert tree.get("/controller_epoch")[0] == b"1"
        assert tree.children("/brokers/topics") == tree.children("/config/topics") == ["small"]
        assert tree.children("/brokers/topics/small/partitions") == ["0"]


def test_topics_in_the_directories_are_not_entered(tmp_path: Path, connect: str, tree: ZooKeeperRegistry) -> None:
    directory = extract_kafka_directory(tmp_path / "kafka-logs")
    folders = sorted(each.name for each in directory.iterdir() if each.is_dir())
    (directory / "meta.properties").unlink()
    with RunningBroker(directory, settings(connect)):
        assert tree.children("/brokers/topics") == []
        assert "log_dirs_surveyed" not in tree.children("/")
    assert sorted(each.name for each in directory.iterdir() if each.is_dir()) == folders
