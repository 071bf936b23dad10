"""A leader and its controller about an ISR: what the one asks for, the other writes, and both know the same then."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kavka.broker.partitions.alter_partition_manager import AlterPartitionManager, Answer, downgraded
from kavka.broker.partitions.partition import Partition
from kavka.broker.partitions.replication import Replication
from kavka.cluster.controller.requests import NewTopic
from kavka.cluster.registry.embedded import FILE_NAME
from kavka.cluster.znodes.topic import PartitionState, TopicAssignment
from kavka.protocol.codec import decode, encode
from kavka.protocol.errors import BrokerError
from kavka.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from kavka.protocol.messages.leader_and_isr import LeaderAndIsrPartitionState, LeaderAndIsrRequest
from tests.support.controller_stage import Stage, wait
from tests.support.partition_logs import batch_of, open_log

ME, SECOND, THIRD = 1, 2, 3
LAG_MS = 1000
TOPIC = "visits"


class Rig:
    """Broker 1 leads a partition that brokers 2 and 3 follow; broker 3 is its controller."""

    def __init__(self, directory: Path, version: int) -> None:
        self.stage = Stage(directory / FILE_NAME)
        self.stage.brokers(ME, SECOND, THIRD)
        self.controller = self.stage.controller(THIRD)
        wait(self.controller.create_topics([NewTopic(TOPIC, assignments={0: [ME, SECOND, THIRD]})]))
        self.version = version
        self.now_ms = 0
        self.later: list[Callable[[], None]] = []
        self.asked = 0
        manager = AlterPartitionManager(
            ME, lambda: self.stage.cluster.epoch(ME), self._send, lambda delay_ms, job: self.later.append(job)
        )
        replication = Replication(
            monotonic_ms=lambda: self.now_ms,
            lag_time_max_ms=LAG_MS,
            is_eligible=lambda broker_id, broker_epoch: True,
            propose=manager.propose,
        )
        assignment, _ = self.stage.registry.get(TopicAssignment.path(TOPIC))
        topic_id = TopicAssignment.decode(TOPIC, assignment).topic_id
        assert topic_id is not None
        self.log = open_log(directory / "visits-0")
        self.partition = Partition(ME, TOPIC, 0, topic_id, replication)
        self.obey()

    def _send(self, request: AlterPartitionRequest, on_answer: Callable[[Answer], None]) -> None:
        self.asked += 1
        version = self.version
        sent = decode(AlterPartitionRequest, version, memoryview(encode(downgraded(request, version), version)))
        try:
            answered = wait(self.controller.alter_partition(sent))
            answer: Answer = decode(AlterPartitionResponse, version, memoryview(encode(answered, version)))
        except BrokerError as failure:
            answer = failure
        on_answer(answer)

    def obey(self) -> None:
        """Do as the controller's last order says."""
        broker = self.stage.cluster.brokers[ME]
        orders = [each for each in broker.requests if isinstance(each, LeaderAndIsrRequest)]
        state: LeaderAndIsrPartitionState = orders[-1].topic_states[0].partition_states[0]
        assert state.leader == ME
        self.partition.make_leader(state, orders[-1].controller_epoch, self.log)

    def stored(self) -> PartitionState:
        data, stat = self.stage.registry.get(PartitionState.path(TOPIC, 0))
        return PartitionState.decode(TOPIC, 0, data, stat.version)

    def append(self) -> None:
        self.partition.append(memoryview(batch_of(b"x")), 1, 9, 0)

    def fetch(self, broker_id: int, epoch: int | None = None) -> None:
        self.partition.follower_fetched(
            broker_id,
            self.log.log_end_offset,
            leader_epoch=self.partition.role.leader_epoch,
            leader_end_offset=self.log.log_end_offset,
            broker_epoch=self.stage.cluster.epoch(broker_id) if epoch is None else epoch,
        )

    def agree(self) -> tuple[int, ...]:
        """The ISR, of which both know the same."""
        role, stored = self.partition.role, self.stored()
        assert role.pending is None
        assert (role.isr, role.partition_epoch, role.leader_epoch) == (stored.isr, stored.version, stored.leader_epoch)
        return role.isr


@pytest.fixture(params=[0, 1, 2, 3])
def rig(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Rig]:
    made = Rig(tmp_path, request.param)
    yield made
    made.stage.close()


def test_who_lags_leaves_and_comes_back(rig: Rig) -> None:
    assert rig.agree() == (ME, SECOND, THIRD)
    rig.append()
    rig.fetch(SECOND)
    rig.now_ms += LAG_MS + 1

    rig.partition.shrink_isr()
    assert rig.agree() == (ME, SECOND)
    assert rig.log.high_watermark == 1
    rig.fetch(THIRD)

    assert rig.agree() == (ME, SECOND, THIRD)
    assert rig.asked == 2


def test_who_was_started_again_joins_by_its_new_epoch_alone(rig: Rig) -> None:
    rig.append()
    rig.fetch(SECOND)
    rig.now_ms += LAG_MS + 1
    rig.partition.shrink_isr()
    former = rig.stage.cluster.epoch(THIRD) - 1

    rig.fetch(THIRD, former)

    # Members have epochs from version 3 on; before, nothing tells the two apart.
    assert rig.agree() == ((ME, SECOND) if rig.version >= 3 else (ME, SECOND, THIRD))
    rig.fetch(THIRD)
    assert rig.agree() == (ME, SECOND, THIRD)


def test_a_state_that_changed_meanwhile_is_not_overwritten(rig: Rig) -> None:
    before = rig.stored()
    rig.stage.registry.set(PartitionState.path(TOPIC, 0), before._replace(isr=(ME, THIRD)).encode(), before.version)
    rig.append()
    rig.now_ms += LAG_MS + 1

    rig.partition.shrink_isr()

    assert rig.stored().isr == (ME, THIRD)
    assert rig.partition.role.pending is not None
    assert rig.partition.role.maximal_isr == (ME, SECOND, THIRD)
