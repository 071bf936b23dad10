"""`kavka registry copy`: a broker that stood alone goes on in ZooKeeper, and the other way round."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kavka.cli.main import main
from kavka.cluster.registry.base import Create
from kavka.cluster.registry.embedded import FILE_NAME, EmbeddedRegistry
from kavka.cluster.registry.tree_copy import MARK_PATH, read_tree, write_tree
from kavka.cluster.registry.zookeeper import ZooKeeperRegistry
from tests.support.processes import wait_until
from tests.support.registries import Clock, new_root, open_zookeeper
from tests.support.running_broker import BROKER_ID, HOST, RunningBroker
from tests.support.wire import RawClient
from tests.support.zookeeper_process import ZooKeeperProcess

pytestmark = [pytest.mark.integration, pytest.mark.java]

Output = pytest.CaptureFixture[str]
PATIENCE_S = 60.0
TO, FROM = "--to-zookeeper", "--from-zookeeper"


@pytest.fixture
def connect(zookeeper: ZooKeeperProcess) -> str:
    return zookeeper.bootstrap + new_root()


@pytest.fixture
def tree(connect: str) -> Iterator[ZooKeeperRegistry]:
    registry = open_zookeeper(connect, "")
    yield registry
    registry.close()


def copy(direction: str, directory: Path, connect: str, *more: str) -> int:
    overrides = [
        f"log.dirs={directory}",
        f"zookeeper.connect={connect}",
        "zookeeper.connection.timeout.ms=60000",
        *more,
    ]
    return main(["registry", "copy", direction, *(word for each in overrides for word in ("--override", each))])


def on_zookeeper(connect: str) -> dict[str, str]:
    return {"zookeeper.connect": connect, "zookeeper.connection.timeout.ms": "60000"}


def read(running: RunningBroker) -> bytes:
    with RawClient(HOST, running.port) as client:
        return client.fetch("visits")


def test_topics_messages_and_settings_go_there_and_back(
    tmp_path: Path, connect: str, tree: ZooKeeperRegistry, capsys: Output
) -> None:
    with RunningBroker(tmp_path) as running:
        cluster_id = running.broker.services.cluster_id
        with RawClient(HOST, running.port) as client:
            client.create_topic("visits", retention_ms="600000000")
            client.produce("visits", b"one")
        running.alter({"num.io.threads": "3"})
        assert copy(TO, tmp_path, connect) == 1
        assert "in use" in capsys.readouterr().err

    assert copy(TO, tmp_path, connect) == 0
    assert "nodes copied" in capsys.readouterr().out
    assert json.loads(tree.get("/cluster/id")[0])["id"] == cluster_id
    assert tree.exists(MARK_PATH) is None
    assert copy(TO, tmp_path, connect) == 1
    assert "something in it" in capsys.readouterr().err

    with RunningBroker(tmp_path, on_zookeeper(connect)) as running:
        # In a cluster no start waits for its partitions to be led.
        wait_until(lambda: b"one" in read(running), PATIENCE_S, "nothing is led")
        assert running.described()["num.io.threads"][0] == "3"
        with RawClient(HOST, running.port) as client:
            client.produce("visits", b"two")
            client.create_topic("made.there")
        assert copy(FROM, tmp_path, connect) == 1
        assert "in use" in capsys.readouterr().err

    tree.create(f"/brokers/ids/{BROKER_ID}", b"somebody", ephemeral=True)
    assert copy(FROM, tmp_path, connect) == 1
    assert f"brokers of the cluster run: {BROKER_ID}" in capsys.readouterr().err
    tree.delete(f"/brokers/ids/{BROKER_ID}")
    assert copy(FROM, tmp_path, connect) == 0

    with RunningBroker(tmp_path) as running:
        assert running.broker.services.cluster_id == cluster_id
        assert b"two" in read(running)
        assert sorted(running.broker.services.metadata.current.topics) == ["made.there", "visits"]
        assert running.described()["num.io.threads"][0] == "3"


def test_a_cluster_of_several_brokers_does_not_go_into_one_brokers_file(
    tmp_path: Path, connect: str, tree: ZooKeeperRegistry, capsys: Output
) -> None:
    with RunningBroker(tmp_path, on_zookeeper(connect)) as running, RawClient(HOST, running.port) as client:
        client.create_topic("visits")
    tree.set("/brokers/topics/visits", tree.get("/brokers/topics/visits")[0].replace(b"[5]", b"[5,6]"))
    assert copy(FROM, tmp_path, connect) == 1
    assert "visits-0 has its replicas on brokers 5, 6" in capsys.readouterr().err
    assert not (tmp_path / FILE_NAME).exists()


def test_a_wrong_place_is_refused(tmp_path: Path, connect: str, capsys: Output) -> None:
    assert copy(TO, tmp_path, connect) == 1
    assert FILE_NAME in capsys.readouterr().err
    assert copy(FROM, tmp_path, connect) == 1
    assert "belongs to no broker" in capsys.readouterr().err
    with RunningBroker(tmp_path):
        pass
    assert copy(FROM, tmp_path, f"{connect}/typo") == 1
    assert "leads to no node" in capsys.readouterr().err


def test_an_interrupted_copy_begins_again(tmp_path: Path, connect: str, tree: ZooKeeperRegistry) -> None:
    source = EmbeddedRegistry(tmp_path / FILE_NAME, Clock())
    source.pipeline([Create("/brokers"), Create("/brokers/seqid"), Create("/config"), Create("/config/changes")])
    source.create("/config/changes/config_change_", b"left out", sequential=True)
    source.create("/brokers/here", ephemeral=True)
    for _ in range(3):
        source.set("/brokers/seqid", b"")
    nodes = read_tree(source)
    source.close()
    tree.multi([Create(MARK_PATH, b'{"version":"1","id":"mine"}'), Create("/brokers", b"half")])

    write_tree(tree, nodes, "mine")

    assert tree.children("/") == ["brokers", "cluster", "config"]
    assert (tree.get("/brokers")[0], tree.get("/brokers/seqid")[1].version) == (b"", 3)
    assert (tree.children("/brokers"), tree.children("/config/changes")) == (["seqid"], [])
