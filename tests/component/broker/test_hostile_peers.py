"""Brokers and controllers that are none, or no more: what they send changes nothing that was acknowledged."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from kavka.broker.partitions.role import PartitionRole
from kavka.protocol.api import ApiKey
from kavka.protocol.codec import encode
from kavka.protocol.headers import encode_request_header
from kavka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from tests.support.broker_core import BrokerCore, produce_frame
from tests.support.broker_handlers import topic_id_of
from tests.support.hostile_peers import HOSTILITIES, Sends, Truth, frame_of
from tests.support.partition_logs import batch_of

TOPIC, ME, FOLLOWER = "visits", 1, 2
PARTITIONS = 2
EPOCH = 4
"""Of the leader."""
CONTROLLER_EPOCH = 5
BROKER_EPOCH = 1000
TRUTH = Truth(
    target=ME,
    follower=FOLLOWER,
    topic=TOPIC,
    topic_id=topic_id_of(TOPIC),
    partitions=PARTITIONS,
    leader_epoch=EPOCH,
    controller_epoch=CONTROLLER_EPOCH,
    broker_epoch=BROKER_EPOCH,
    end_offset=3,
)


class Scene:
    """A leader with a follower that has all, and what must stay as it is."""

    def __init__(self, directory: Path) -> None:
        self.core = core = BrokerCore(directory)
        core.broker_epoch = BROKER_EPOCH
        core.create(TOPIC, PARTITIONS, leader_epoch=EPOCH, isr=(ME, FOLLOWER))
        assert core.replicas._controller_epoch.admits(CONTROLLER_EPOCH)
        for index in range(PARTITIONS):
            core.ask(produce_frame(9, 1, {(TOPIC, index): bytes(batch_of(b"a", b"b", b"c"))}))
            core.replicate(TOPIC, FOLLOWER, 3, index)
        self.before = self.state()
        assert [each[2] for each in self.before[0]] == [3, 3]

    def state(self) -> tuple[list[tuple[PartitionRole, bytes, int, int, int]], object]:
        core = self.core
        partitions = [core.replicas.partitions[TOPIC, index] for index in range(PARTITIONS)]
        assert len(core.replicas.partitions) == PARTITIONS
        return [
            (
                partition.role,
                core.log_bytes(TOPIC, index),
                core.log(TOPIC, index).high_watermark,
                core.log(TOPIC, index).log_start_offset,
                partition.followers[FOLLOWER].end_offset,
            )
            for index, partition in enumerate(partitions)
        ], core.services.metadata.current.token

    def goes_on(self) -> None:
        """It takes records, and commits them when its follower has them."""
        for index in range(PARTITIONS):
            answer = self.core.ask(produce_frame(9, 7, {(TOPIC, index): bytes(batch_of(b"d"))}))
            assert answer
            assert self.core.log(TOPIC, index).log_end_offset == 4
            self.core.replicate(TOPIC, FOLLOWER, 4, index)
            assert self.core.log(TOPIC, index).high_watermark == 4


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.core.close()


@pytest.mark.parametrize("sends", HOSTILITIES)
@pytest.mark.parametrize("seed", range(3))
def test_what_hostile_peers_send_changes_nothing(
    scene: Scene, sends: Sends, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    dice = random.Random(seed)
    for number in range(100):
        frame = frame_of(sends, TRUTH, dice, number)
        scene.core.ask(frame)
        assert scene.state() == scene.before, (number, frame)

    assert "Traceback" not in caplog.text
    scene.goes_on()


def test_a_fetch_for_an_earlier_start_of_a_follower_commits_nothing(scene: Scene) -> None:
    core = scene.core
    partition = core.replicas.partitions[TOPIC, 0]
    core.ask(produce_frame(9, 1, {(TOPIC, 0): bytes(batch_of(b"not copied"))}))
    partition.followers[FOLLOWER].broker_epoch = 50

    part = FetchPartition(
        partition=0, current_leader_epoch=EPOCH, fetch_offset=4, log_start_offset=0, partition_max_bytes=1 << 20
    )
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        session_epoch=-1,
        replica_state=ReplicaState(replica_id=FOLLOWER, replica_epoch=49),
        topics=[FetchTopic(topic_id=topic_id_of(TOPIC), partitions=[part])],
    )
    core.ask(encode_request_header(ApiKey.FETCH, 17, 1, "peer") + encode(request, 17))

    assert core.log(TOPIC, 0).high_watermark == 3
