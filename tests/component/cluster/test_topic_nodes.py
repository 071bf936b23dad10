"""Topics and partitions that others write into the tree are led like those that this controller made."""

import json
from collections.abc import Sequence

import pytest

from kavka.cluster.controller.controller import Controller
from kavka.cluster.controller.requests import NewPartitions, NewTopic
from kavka.cluster.registry.base import Check, Operation, RegistryError, Result
from kavka.cluster.registry.embedded import EmbeddedRegistry
from kavka.cluster.znodes.topic import TopicAssignment
from tests.support.controller_stage import Stage, wait


@pytest.fixture
def controller(stage: Stage) -> Controller:
    stage.brokers(1, 2)
    controller = stage.controller()
    assert wait(controller.create_topics([NewTopic("t", assignments={0: [1, 2]})]))[0].error is None
    return controller


def write(stage: Stage, topic: str, replicas: dict[int, tuple[int, ...]]) -> None:
    stored = stage.assignment(topic)
    stage.registry.set(TopicAssignment.path(topic), stored._replace(replicas=replicas).encode())


def test_partitions_that_others_add_are_led_each_time(stage: Stage, controller: Controller) -> None:
    write(stage, "t", {0: (1, 2), 1: (2, 1)})
    stage.settle(controller)
    assert stage.cluster.brokers[1].metadata == {("t", 0): 1, ("t", 1): 2}
    write(stage, "t", {0: (1, 2), 1: (2, 1), 2: (1, 2)})
    stage.settle(controller)
    assert stage.cluster.brokers[2].metadata == {("t", 0): 1, ("t", 1): 2, ("t", 2): 1}
    assert stage.state("t", 2).isr == (1, 2)
    assert wait(controller.create_partitions([NewPartitions("t", 4)])) == {"t": None}
    assert sorted(stage.cluster.brokers[1].hosted) == [("t", each) for each in range(4)]


def test_a_topic_that_others_made_may_grow_too(stage: Stage, controller: Controller) -> None:
    stage.registry.create("/brokers/topics/old", b'{"version":1,"partitions":{"0":[1]}}')
    stage.settle(controller)
    topic_id = stage.assignment("old").topic_id
    write(stage, "old", {0: (1,), 1: (2,)})
    stage.settle(controller)
    assert stage.cluster.brokers[1].metadata[("old", 1)] == 2
    assert stage.assignment("old").topic_id == topic_id


def test_topics_of_an_earlier_term_are_watched_too(stage: Stage, controller: Controller) -> None:
    controller.stop()
    second = stage.controller(2)
    write(stage, "t", {0: (1, 2), 1: (2, 1)})
    stage.settle(second)
    assert stage.cluster.brokers[1].metadata == {("t", 0): 1, ("t", 1): 2}


def test_growth_that_others_write_at_the_same_moment_is_kept(
    stage: Stage, controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    overtaken: list[Sequence[Operation]] = []
    pipeline = EmbeddedRegistry.pipeline

    def race(
        registry: EmbeddedRegistry, operations: Sequence[Operation], guard: Check | None = None
    ) -> list[Result | RegistryError]:
        if not overtaken:
            overtaken.append(operations)
            write(stage, "t", {0: (1, 2), 1: (2, 1)})
        return pipeline(registry, operations, guard)

    monkeypatch.setattr(EmbeddedRegistry, "pipeline", race)
    assert wait(controller.create_partitions([NewPartitions("t", 3, [[1, 2], [1, 2]])])) == {"t": None}
    stage.settle(controller)
    assert stage.assignment().replicas == {0: (1, 2), 1: (2, 1), 2: (1, 2)}
    assert stage.cluster.brokers[1].metadata == {("t", 0): 1, ("t", 1): 2, ("t", 2): 1}


def test_a_topic_on_its_way_out_is_given_no_partitions(stage: Stage, controller: Controller) -> None:
    stage.cluster.kill(2)
    stage.settle(controller)
    wait(controller.delete_topics(["t"]))
    assert stage.registry.children("/admin/delete_topics") == ["t"], "it waits for broker 2"
    write(stage, "t", {0: (1, 2), 1: (1, 2)})
    stage.settle(controller)
    assert stage.assignment().replicas == {0: (1, 2)}
    assert stage.cluster.brokers[1].hosted == {}
    stage.cluster.add(2)
    stage.settle(controller)
    assert stage.registry.children("/brokers/topics") == []


def test_a_topic_that_others_removed_is_forgotten_and_may_come_back(stage: Stage, controller: Controller) -> None:
    for path in ("/partitions/0/state", "/partitions/0", "/partitions", ""):
        stage.registry.delete(f"/brokers/topics/t{path}")
    stage.settle(controller)
    assert controller.stats().topics == 0
    stage.registry.create("/brokers/topics/t", json.dumps({"version": 1, "partitions": {"0": [2]}}).encode())
    stage.settle(controller)
    assert stage.state().leader == 2
    write(stage, "t", {0: (2,), 1: (1,)})
    stage.settle(controller)
    assert stage.state("t", 1).leader == 1


def test_a_node_that_is_broken_for_a_while_changes_nothing(stage: Stage, controller: Controller) -> None:
    good = stage.registry.get("/brokers/topics/t")[0]
    stage.registry.set("/brokers/topics/t", b"{broken")
    stage.settle(controller)
    stage.registry.set("/brokers/topics/t", good)
    stage.settle(controller)
    write(stage, "t", {0: (1, 2), 1: (2, 1)})
    stage.settle(controller)
    assert stage.cluster.brokers[1].metadata == {("t", 0): 1, ("t", 1): 2}
