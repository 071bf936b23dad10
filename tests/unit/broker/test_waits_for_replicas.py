"""What waits for the high watermark is told so only by the leadership under which it was appended."""

from pathlib import Path
from typing import Any

import pytest

from kavka.broker.coordination.coordinated_log import CoordinatedLog
from kavka.broker.waiting.delayed_produce import Awaited
from kavka.broker.waiting.purgatory import Purgatory
from kavka.broker.waiting.timer import Timer
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.produce import PartitionProduceResponse
from tests.support.isr_stage import ME, OTHER, Hosted
from tests.support.partition_logs import batch_of


@pytest.fixture
def hosted(tmp_path: Path) -> Hosted:
    made = Hosted(tmp_path)
    made.lead(ME, OTHER)
    return made


def lose_and_regain(hosted: Hosted) -> None:
    """Another broker led meanwhile, and everybody has its records."""
    hosted.follow(1, partition_epoch=1)
    hosted.lead(ME, OTHER, epoch=2, partition_epoch=2)
    hosted.append()
    hosted.fetched(OTHER, hosted.log.log_end_offset)


def awaited(hosted: Hosted) -> Awaited:
    role = hosted.partition.role
    hosted.append()
    answer = PartitionProduceResponse(index=0, error_code=0, base_offset=0)
    return Awaited(hosted.partition, role.leader_epoch, hosted.log.log_end_offset, answer)


def test_a_produce_is_not_acknowledged_for_what_another_leader_committed(hosted: Hosted) -> None:
    waiting = awaited(hosted)
    assert not waiting.look()

    lose_and_regain(hosted)

    assert waiting.look()
    assert waiting.answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_produce_goes_on_waiting_when_its_leader_stays_under_another_epoch(hosted: Hosted) -> None:
    """So the controller takes a dead broker from the ISR: who produced must not hear of an error, and send again."""
    waiting = awaited(hosted)

    hosted.lead(ME, OTHER, epoch=1, partition_epoch=1)
    assert not waiting.look()
    hosted.lead(ME, epoch=2, partition_epoch=2)

    assert waiting.look()
    assert waiting.answer.error_code == ErrorCode.NONE


def test_a_leadership_that_ends_while_it_is_looked_at_acknowledges_nothing(hosted: Hosted) -> None:
    waiting = awaited(hosted)
    partition: Any = hosted.partition

    class ChangingLog:
        """The leadership is lost, and another leader's high watermark taken over, just before somebody looks."""

        @property
        def high_watermark(self) -> int:
            if partition.role.is_leader:
                hosted.follow(1, partition_epoch=1)
                partition.log = self
            return 100

    partition.log = ChangingLog()

    assert waiting.look()
    assert waiting.answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_coordinator_is_told_of_its_own_leadership_alone(hosted: Hosted) -> None:
    purgatory = Purgatory(Timer(lambda failure: None))
    told: list[BrokerError | None] = []
    internal = CoordinatedLog(hosted.partition, purgatory, lambda: 0, lambda: 1000, lambda job: job())
    end_offset = internal.append(batch_of(b"a"), 0)

    lose_and_regain(hosted)
    internal.when_committed(end_offset, told.append, leader_epoch=0)

    (failure,) = told
    assert failure is not None
    assert failure.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_commit_goes_on_waiting_when_its_leader_stays_under_another_epoch(hosted: Hosted) -> None:
    told: list[BrokerError | None] = []
    purgatory = Purgatory(Timer(lambda failure: None))
    internal = CoordinatedLog(hosted.partition, purgatory, lambda: 0, lambda: 1000, lambda job: job())
    end_offset = internal.append(batch_of(b"a"), 0)
    internal.when_committed(end_offset, told.append)

    hosted.lead(ME, OTHER, epoch=1, partition_epoch=1)
    hosted.partition.wake_all()
    assert told == []
    hosted.fetched(OTHER, end_offset)

    assert told == [None]


def test_a_coordinator_appends_in_its_own_leadership_alone(hosted: Hosted) -> None:
    """However late it is that the epoch changes."""
    lose_and_regain(hosted)
    end_offset = hosted.log.log_end_offset

    with pytest.raises(BrokerError) as refused:
        hosted.partition.append(memoryview(batch_of(b"a")), -1, 9, 0, leader_epoch=0)

    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert hosted.log.log_end_offset == end_offset


def test_a_coordinator_appends_on_before_it_has_heard_of_its_next_epoch(hosted: Hosted) -> None:
    purgatory = Purgatory(Timer(lambda failure: None))
    internal = CoordinatedLog(hosted.partition, purgatory, lambda: 0, lambda: 1000, lambda job: job())
    first = internal.append(batch_of(b"a"), 0)
    hosted.lead(ME, OTHER, epoch=1, partition_epoch=1)

    assert internal.append(batch_of(b"b"), 0) == first + 1

    hosted.follow(2, partition_epoch=2)
    hosted.lead(ME, OTHER, epoch=3, partition_epoch=3)
    with pytest.raises(BrokerError) as refused:
        internal.append(batch_of(b"c"), 0)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert hosted.log.log_end_offset == first + 1
