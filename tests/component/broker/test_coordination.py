"""The coordinators in their broker: made when first needed, told of leaderships and topics, ended with the broker."""

from collections.abc import Iterator
from typing import Any

import pytest

from kavka.broker.coordination.coordination import Coordination
from kavka.broker.coordination.gauges import register_coordination_gauges
from kavka.broker.coordination.internal_topics import GROUP_METADATA
from kavka.broker.coordination.topics import KnownTopics
from kavka.broker.coordination.workers import Workers
from kavka.broker.metadata.metadata_cache import LEADER_DURING_DELETE, MetadataCache
from kavka.broker.metrics.registry import Metrics
from kavka.coordinator.partitioning import partition_for
from kavka.coordinator.ports import Surroundings
from kavka.coordinator.runtime.runtime import CoordinatorRuntime
from kavka.coordinator.runtime.shard_runner import ShardState
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.update_metadata import UpdateMetadataRequest
from tests.support.broker_handlers import BROKER_ID, Broker, FakePartition, topic_id_of, update_metadata
from tests.support.tiny_shard import NOW_MS, Answers, TinyShard, TinyWorld

TOPIC = "__consumer_offsets"


class Scene:
    """A coordination of tiny shards on a broker whose partitions are fakes; nothing is to be read from their logs."""

    def __init__(self) -> None:
        self.broker = Broker({"offsets.topic.num.partitions": "7"})
        self.broker.services.now_ms = lambda: NOW_MS
        self.world = TinyWorld()
        self.made: list[Surroundings] = []
        execute = self.world.jobs.append
        self.coordination = Coordination[TinyShard](
            GROUP_METADATA,
            self.broker.services,
            lambda: self.world.surroundings,
            Workers(execute, execute, execute),
            self._make_runtime,
        )

    def _make_runtime(self, surroundings: Surroundings) -> CoordinatorRuntime[TinyShard]:
        self.made.append(surroundings)
        return self.world.runtime

    def lead(self, index: int = 0, *, is_leader: bool = True) -> FakePartition:
        partition = FakePartition(TOPIC, index, is_leader=is_leader)
        partition.log.log_start_offset = partition.log.log_end_offset = 0
        stand_in: Any = partition
        self.coordination.leadership_changed(stand_in, is_leader)
        return partition

    def gauges(self) -> dict[str, float]:
        metrics = Metrics()
        register_coordination_gauges(metrics, "group", self.coordination)
        return {
            gauge.name.removeprefix("kafka_server_group_coordinator_metrics_") + "".join(labels.values()): value
            for gauge in metrics.gauges()
            for labels, value in gauge.read()
        }


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene = Scene()
    yield scene
    scene.coordination.stop()
    scene.world.runtime.stop()


def test_nothing_is_made_before_it_is_needed(scene: Scene) -> None:
    scene.lead(is_leader=False)
    scene.coordination.topics_changed()
    assert (scene.made, scene.coordination.existing_runtime) == ([], None)
    assert scene.gauges()["num_partitionsactive"] == 0

    scene.lead(0)
    scene.lead(1)

    assert len(scene.made) == 1
    scene.world.wait_for(ShardState.ACTIVE, 0)
    scene.world.wait_for(ShardState.ACTIVE, 1)
    shown = scene.gauges()
    assert (shown["num_partitionsactive"], shown["num_partitionsloading"]) == (2, 0)
    assert shown["partition_load_time_max"] >= shown["partition_load_time_avg"] > 0


def test_requests_reach_the_shard_of_their_key(scene: Scene) -> None:
    assert scene.coordination.partition_of("g") == partition_for("g", 7)
    scene.broker.metadata.apply(update_metadata({TOPIC: [BROKER_ID] * 3}))
    index = scene.coordination.partition_of("g")
    assert index == partition_for("g", 3)
    scene.lead(index)
    scene.world.wait_for(ShardState.ACTIVE, index)
    here, elsewhere = Answers(), Answers()
    other = next(key for key in map(str, range(99)) if partition_for(key, 3) != index)

    scene.coordination.run("g", lambda shard: shard.get("g", here.reply), here.refuse)
    scene.coordination.run(other, lambda shard: shard.get("g", elsewhere.reply), elsewhere.refuse)

    assert (here.replies, here.errors) == ([None], [])
    assert (elsewhere.replies, elsewhere.errors) == ([], [ErrorCode.NOT_COORDINATOR])


def test_keys_keep_their_partitions_when_the_topic_grows(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.broker.metadata.on_change(lambda old, new: scene.coordination.topics_changed())
    scene.broker.metadata.apply(update_metadata({TOPIC: [BROKER_ID] * 3}))

    # Nobody has asked for a partition by now.
    scene.broker.metadata.apply(update_metadata({TOPIC: [BROKER_ID] * 5}))
    scene.broker.metadata.apply(update_metadata({"other": [BROKER_ID]}))

    keys = [f"g{number}" for number in range(20)]
    assert [scene.coordination.partition_of(key) for key in keys] == [partition_for(key, 3) for key in keys]
    (told,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert "used=3 partitions=5" in told.getMessage()


def test_a_topic_that_was_made_anew_is_counted_anew(scene: Scene) -> None:
    scene.broker.metadata.apply(update_metadata({TOPIC: [BROKER_ID] * 3}))
    assert scene.coordination.partition_count() == 3
    scene.broker.metadata.apply(update_metadata({TOPIC: [LEADER_DURING_DELETE] * 3}))
    assert scene.coordination.partition_count() == 7

    anew = update_metadata({TOPIC: [BROKER_ID] * 5})
    anew.topic_states[0].topic_id = bytes(15) + b"\2"
    scene.broker.metadata.apply(anew)

    assert scene.coordination.partition_count() == 5


def test_a_partition_that_was_made_anew_has_another_log(scene: Scene) -> None:
    scene.lead()
    scene.world.wait_for(ShardState.ACTIVE)
    (first,) = scene.world.runtime.shards()

    scene.lead(is_leader=False)
    scene.lead()
    scene.world.wait_for(ShardState.ACTIVE)

    (second,) = scene.world.runtime.shards()
    assert first is not second


def test_after_the_end_everything_is_refused(scene: Scene) -> None:
    scene.coordination.stop()
    answers = Answers()

    scene.lead()
    scene.coordination.run("g", lambda shard: shard.get("g", answers.reply), answers.refuse)

    assert answers.errors == [ErrorCode.NOT_COORDINATOR]
    assert scene.world.runtime.states() == {}


@pytest.mark.parametrize(
    ("update", "changes"),
    [
        (update_metadata({"new": [1]}), True),
        (update_metadata({"old": [1, 1]}), True),
        (update_metadata({"old": [-2]}), True),
        (update_metadata({"old": [1]}, replicas=(1, 2)), True),
        (update_metadata({"old": [-1]}), False),
        (update_metadata({}, brokers={1: ("moved.example", 1)}), False),
    ],
    ids=["a topic comes", "one grows", "one goes", "one moves", "a leader goes", "a broker moves"],
)
def test_topics_have_another_version_when_they_come_go_grow_or_move(
    update: UpdateMetadataRequest, changes: bool
) -> None:
    metadata = MetadataCache(BROKER_ID)
    metadata.apply(update_metadata({"old": [1]}))
    topics = KnownTopics(metadata)
    told: list[bool] = []
    metadata.on_change(lambda old, new: told.append(topics.changed(old, new)))

    metadata.apply(update)

    assert (told, topics.version) == ([changes], int(changes))


def test_topics_are_those_of_the_metadata() -> None:
    metadata = MetadataCache(BROKER_ID)
    topics = KnownTopics(metadata)
    request = update_metadata({"visits": [1, 2]}, brokers={1: ("a", 1), 2: ("b", 2)}, replicas=(1, 2, 3))
    for broker, rack in zip(request.live_brokers, ("r1", None), strict=True):
        broker.rack = rack
    metadata.apply(request)

    assert list(topics.names()) == ["visits"]
    assert topics.topic_id("visits") == topic_id_of("visits")
    assert topics.name_of(topic_id_of("visits")) == "visits"
    assert (topics.partition_count("visits"), topics.partition_count("x")) == (2, None)
    assert topics.racks("visits", 1) == {"r1"}
    assert (topics.racks("visits", 9), topics.topic_id("x"), topics.name_of(bytes(16))) == (frozenset(), None, None)
