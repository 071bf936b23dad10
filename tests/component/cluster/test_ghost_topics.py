"""Topics whose deletion a broker could not be told of: it forgets them when it is next told of all there is."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kavka.cluster.controller.requests import NewTopic
from kavka.cluster.registry.embedded import FILE_NAME
from kavka.cluster.znodes.broker import BrokerInfo
from kavka.cluster.znodes.topic import PartitionState, TopicAssignment
from kavka.protocol.messages.update_metadata import FULL_UPDATE, UpdateMetadataRequest
from tests.support.controller_stage import Stage, wait
from tests.support.processes import wait_until

PATIENCE_S = 60.0
GHOST = ("ghost", 0)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path / FILE_NAME)
    stage.brokers(1, 2, 3)
    first = stage.controller(1)
    wait(first.create_topics([NewTopic("t", assignments={0: [1, 2], 1: [2, 1]})]))
    yield stage
    stage.close()


def forget_to_tell(stage: Stage, broker_id: int) -> None:
    """The controller fell before this broker heard that a topic is gone."""
    stage.cluster.brokers[broker_id].metadata[GHOST] = 1


def take_over(stage: Stage) -> None:
    """Another broker is the controller from now on."""
    stage.controllers.pop().stop()
    stage.controller(2)


def kinds(stage: Stage, broker_id: int) -> list[int]:
    """Of all that the broker was told of metadata."""
    requests = stage.cluster.brokers[broker_id].requests
    return [each.type for each in requests if isinstance(each, UpdateMetadataRequest)]


def test_a_new_controller_has_brokers_forget_what_is_not_there(stage: Stage) -> None:
    forget_to_tell(stage, 3)
    before = len(kinds(stage, 3))
    take_over(stage)
    assert stage.cluster.brokers[3].metadata.keys() == {("t", 0), ("t", 1)}
    first, *later = kinds(stage, 3)[before:]
    assert first == FULL_UPDATE
    assert FULL_UPDATE not in later


def test_a_broker_whose_session_was_lost_forgets_what_went_meanwhile(stage: Stage) -> None:
    known = stage.cluster.brokers[3].metadata
    stage.cluster.kill(3)
    stage.settle(stage.controllers[0])
    stage.cluster.add(3, metadata={**known, GHOST: 1})
    wait_until(lambda: GHOST not in stage.cluster.brokers[3].metadata, PATIENCE_S, "it knows what is gone")
    assert stage.cluster.brokers[3].metadata.keys() == {("t", 0), ("t", 1)}
    # Nobody else has to hear of everything for that.
    assert kinds(stage, 2).count(FULL_UPDATE) == 1


@pytest.mark.parametrize("odd", ["topic", "state", "no state", "stranger"])
def test_nothing_is_forgotten_where_anything_cannot_be_read(stage: Stage, odd: str) -> None:
    """Committed offsets would be forgotten with a topic, and its settings."""
    if odd == "topic":
        stage.registry.create(TopicAssignment.path("spoilt"), b"{")
    elif odd == "state":
        stage.registry.set(PartitionState.path("t", 1), b"{")
    elif odd == "no state":
        stage.registry.delete(PartitionState.path("t", 1))
    else:
        stage.registry.create(TopicAssignment.path("no topic!"), TopicAssignment({0: (1,)}, bytes(range(16))).encode())
    stage.settle(stage.controllers[0])
    forget_to_tell(stage, 3)
    before = len(kinds(stage, 3))
    take_over(stage)
    assert GHOST in stage.cluster.brokers[3].metadata
    assert FULL_UPDATE not in kinds(stage, 3)[before:]


def test_a_topic_that_waits_for_its_deletion_is_no_ghost_and_not_shown(stage: Stage) -> None:
    stage.cluster.brokers[2].refusing_deletion = True
    wait(stage.controllers[0].delete_topics(["t"]))
    forget_to_tell(stage, 3)
    take_over(stage)
    assert stage.cluster.brokers[3].metadata == {}
    assert stage.registry.exists(TopicAssignment.path("t")) is not None
    assert stage.registry.exists(BrokerInfo.path(3)) is not None
