"""A tree in which somebody has put what does not belong there: it stops no term, and no topic but its own."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kavka.cluster.broker_registration import prepare_tree
from kavka.cluster.controller.requests import ElectionType, NewPartitions, NewTopic
from kavka.cluster.registry.base import Create
from kavka.cluster.registry.memory import MemoryEnsemble, MemoryRegistry
from kavka.cluster.znodes.notifications import IsrChange, LogDirEvent
from kavka.cluster.znodes.topic import PartitionState
from kavka.protocol.errors import BrokerError
from tests.support.controller_stage import Stage, wait
from tests.support.fake_brokers import FakeCluster
from tests.support.registries import KINDS, Clock, new_root, open_zookeeper
from tests.support.zookeeper_process import ZooKeeperProcess

MANY_BYTES = 1_000_000
"""As much as a node in ZooKeeper holds, with its path and what is around it."""

ODD_DATA = {
    "nothing": b"",
    "no text": b"\xff\xfe\x00",
    "no json": b"{garbage",
    "deep": b"[" * 200_000,
    "a list": b"[]",
    "null": b"null",
    "empty": b"{}",
    "other fields": b'{"version":1,"strange":true}',
    "a later version": b'{"version":99,"partitions":7,"isr":{},"endpoints":"none","broker":[],"config":3}',
    "a huge number": b'{"version":1,"leader":1e999,"broker":' + b"9" * 5_000 + b"}",
    "the last epoch": b'{"version":1,"leader":1,"leader_epoch":2147483647,"isr":[1],"controller_epoch":1}',
    "beyond int32": b'{"version":1,"broker":4294967296,"leader":4294967296,"leader_epoch":1,"isr":[4294967296]}',
    "large": b"x" * MANY_BYTES,
    "large json": json.dumps({"version": 1, "config": {"x": "y" * MANY_BYTES}}).encode(),
}
ODD_TOPICS = {
    "no-partitions": b'{"version":3,"partitions":{}}',
    "no-replicas": b'{"version":3,"partitions":{"0":[]}}',
    "twice": b'{"version":3,"partitions":{"0":[1,1]}}',
    "nobody": b'{"version":3,"partitions":{"0":[77]}}',
    "far-away": b'{"version":3,"partitions":{"0":[2147483647]}}',
    "gaps": b'{"version":3,"partitions":{"3":[1],"2147483647":[1]}}',
    "moving": b'{"version":3,"partitions":{"0":[1]},"adding_replicas":{"0":[1,5]},"removing_replicas":{"4":[1]}}',
    "bad-id": b'{"version":3,"partitions":{"0":[1]},"topic_id":"!"}',
    "no-id": b'{"version":3,"partitions":{"0":[1]},"topic_id":"AAAAAAAAAAAAAAAAAAAAAA"}',
    "later": b'{"version":99,"partitions":{"0":[1]},"new":1}',
    "a\u00a0b": b'{"version":1,"partitions":{"0":[1]}}',
    "\u00e9t\u00e9": b'{"version":1,"partitions":{"0":[1]}}',
    "x" * 300: b'{"version":1,"partitions":{"0":[1]}}',
}
ODD_BROKERS = ["\u00b2", "01", "-1", "one", "99999999999", "2147483648", "77"]
FOLDERS = ["/admin/delete_topics", "/isr_change_notification", "/log_dir_event_notification"]


@pytest.fixture(params=KINDS)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path / "registry.sqlite")
    if request.param == "zookeeper":
        zookeeper: ZooKeeperProcess = request.getfixturevalue("zookeeper")
        stage.registry.close()
        stage.registry = open_zookeeper(zookeeper.bootstrap, new_root())  # type: ignore[assignment]  # a Registry, too
    elif request.param == "memory":
        stage.registry.close()
        stage.registry = MemoryRegistry(MemoryEnsemble(Clock()))  # type: ignore[assignment]  # a Registry, too
    if request.param != "embedded":
        prepare_tree(stage.registry)
        stage.cluster = FakeCluster(stage.registry)
    stage.brokers(1, 2)
    yield stage
    stage.close()


def epoch(stage: Stage) -> int:
    return int(stage.registry.get("/controller_epoch")[0])


def works_on(stage: Stage, name: str) -> None:
    """The same controller in the same term makes, grows, moves and deletes a topic."""
    [controller] = stage.controllers
    before = epoch(stage)
    assert controller.is_active
    assert wait(controller.create_topics([NewTopic(name, 1, 2)]))[0].error is None
    assert wait(controller.create_partitions([NewPartitions(name, 2)])) == {name: None}
    assert wait(controller.alter_reassignments({(name, 0): [2]})) == {(name, 0): None}
    assert stage.state(name).leader == 2
    wait(controller.elect_leaders(ElectionType.PREFERRED, None))
    stage.cluster.kill(2)
    stage.settle(controller)
    stage.cluster.add(2)
    stage.settle(controller)
    assert stage.state(name).leader == 2
    assert wait(controller.delete_topics([name])) == {name: None}
    stage.settle(controller)
    assert stage.registry.exists(f"/brokers/topics/{name}") is None
    assert epoch(stage) == before


def elect_anew(stage: Stage) -> None:
    stage.controllers.pop().stop()
    assert stage.controller(1).is_active


def put(stage: Stage, path: str, data: bytes) -> None:
    if stage.registry.exists(path) is None:
        stage.registry.create(path, data)
    else:
        stage.registry.set(path, data)


def test_odd_topics_harm_no_other(stage: Stage) -> None:
    controller = stage.controller(1)
    wait(controller.create_topics([NewTopic("t", 1)]))
    for name, data in (ODD_TOPICS | {f"odd-{number}": each for number, each in enumerate(ODD_DATA.values())}).items():
        stage.registry.create(f"/brokers/topics/{name}", data)
    stage.settle(controller)
    works_on(stage, "u")
    elect_anew(stage)
    works_on(stage, "u")
    [controller] = stage.controllers
    existing = ["no-partitions", "nobody", "far-away", "gaps", "moving", "no-id", "later", "t"]
    outcomes = wait(controller.delete_topics(existing))
    assert set(outcomes.values()) == {None}
    stage.settle(controller)
    left = set(stage.registry.children("/brokers/topics"))
    assert left.isdisjoint({"no-partitions", "gaps", "moving", "no-id", "later", "t"})
    assert {"nobody", "far-away"} < left


@pytest.mark.parametrize("data", ODD_DATA.values(), ids=ODD_DATA)
def test_odd_data_in_any_node_harms_no_other(stage: Stage, data: bytes) -> None:
    controller = stage.controller(1)
    wait(controller.create_topics([NewTopic("odd", 1), NewTopic("t", 1)]))
    for path in (
        "/brokers/ids/2",
        PartitionState.path("odd", 0),
        "/config/topics/odd",
        "/feature",
        "/admin/reassign_partitions",
        "/admin/preferred_replica_election",
        "/admin/delete_topics/t2",
        "/latest_producer_id_block",
    ):
        put(stage, path, data)
    for prefix in (IsrChange.PREFIX, LogDirEvent.PREFIX):
        stage.registry.create(prefix, data, sequential=True)
    stage.settle(controller)
    # What was known of a broker stays, as long as its registration does.
    assert wait(controller.create_topics([NewTopic("on-two", assignments={0: [2]})]))[0].error is None
    assert stage.state("on-two").leader == 2
    stage.cluster.kill(2)
    stage.cluster.add(2)
    works_on(stage, "u")
    if data:
        with pytest.raises(BrokerError):
            wait(controller.allocate_producer_id_block(1))
    stage.registry.delete("/admin/reassign_partitions")
    put(stage, "/admin/reassign_partitions", data)
    put(stage, "/controller_epoch", data)
    elect_anew(stage)
    works_on(stage, "u")


def test_strangers_and_folders_where_nodes_are_expected_harm_nobody(stage: Stage) -> None:
    controller = stage.controller(1)
    for name in ODD_BROKERS:
        stage.registry.create(f"/brokers/ids/{name}", b"{}")
    for folder in FOLDERS:
        for name in ("a\u00a0b", "\u2028", "x" * 1000):
            stage.registry.create(f"{folder}/{name}", b"{}")
        # At once: the controller takes what it finds there out.
        stage.registry.multi([Create(f"{folder}/folder", b"{}"), Create(f"{folder}/folder/below")])
    for path in ("/admin/reassign_partitions", "/admin/preferred_replica_election"):
        data = b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1]}]}'
        stage.registry.multi([Create(path, data), Create(f"{path}/below")])
    stage.settle(controller)
    works_on(stage, "u")
    elect_anew(stage)
    works_on(stage, "u")
    assert wait(stage.controllers[0].allocate_producer_id_block(1)).first == 0


def test_a_missing_folder_stops_nobody_and_is_made_when_it_is_needed(stage: Stage) -> None:
    controller = stage.controller(1)
    wait(controller.create_topics([NewTopic("t", 1)]))
    for folder in FOLDERS:
        stage.registry.delete(folder)
    stage.settle(controller)
    works_on(stage, "u")
    elect_anew(stage)
    works_on(stage, "u")
    # Whoever makes it anew is heard.
    stage.registry.delete("/admin/delete_topics")
    stage.settle(stage.controllers[0])
    stage.registry.create("/admin/delete_topics")
    stage.registry.create("/admin/delete_topics/t")
    stage.settle(stage.controllers[0])
    assert stage.registry.children("/brokers/topics") == []


def test_a_copy_of_a_topics_node_does_not_take_its_id(stage: Stage) -> None:
    controller = stage.controller(1)
    wait(controller.create_topics([NewTopic("t", 1)]))
    data = stage.registry.get("/brokers/topics/t")[0]
    stage.registry.create("/brokers/topics/a-copy", data)
    stage.settle(controller)
    for _ in range(2):
        [controller] = stage.controllers
        hosted = {name for broker in stage.cluster.brokers.values() for name, _ in broker.hosted}
        assert "a-copy" not in hosted
        assert wait(controller.create_partitions([NewPartitions("a-copy", 2)]))["a-copy"] is not None
        assert stage.alter_isr(controller, stage.state().leader).name == "NONE"
        elect_anew(stage)
    works_on(stage, "u")
