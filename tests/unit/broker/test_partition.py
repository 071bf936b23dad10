"""Leaders and followers: what an order changes, who may append, and how followers' fetches move the high watermark."""

from pathlib import Path
from typing import Any

import pytest

from kavka.broker.partitions.partition import Partition
from kavka.broker.waiting.purgatory import DelayedOperation
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.leader_and_isr import LeaderAndIsrPartitionState
from kavka.storage.partition_log import PartitionLog
from tests.support.broker_handlers import topic_id_of
from tests.support.partition_logs import batch_of, open_log

ME, OTHER, THIRD = 1, 2, 3


class Seen(DelayedOperation):
    """Counts how often somebody looked."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    def is_satisfied(self) -> bool:
        self.looks += 1
        return False

    def respond(self) -> None:
        raise AssertionError("never satisfied")


class Hosted:
    def __init__(self, directory: Path, **overrides: Any) -> None:
        self.log: PartitionLog = open_log(directory, **overrides)
        self.partition = Partition(ME, "visits", 0, topic_id_of("visits"))
        self.data, self.watermark = Seen(), Seen()
        self.partition.data_arrived.operations[self.data] = None
        self.partition.high_watermark_moved.operations[self.watermark] = None

    def state(self, leader: int, epoch: int, isr: tuple[int, ...], replicas: tuple[int, ...] | None = None) -> Any:
        return LeaderAndIsrPartitionState(
            partition_index=0,
            controller_epoch=1,
            leader=leader,
            leader_epoch=epoch,
            isr=list(isr),
            partition_epoch=0,
            replicas=list(replicas or isr),
        )

    def lead(self, *isr: int, epoch: int = 0, replicas: tuple[int, ...] | None = None) -> bool:
        return self.partition.make_leader(self.state(ME, epoch, isr, replicas), 1, self.log)

    def follow(self, epoch: int) -> bool:
        return self.partition.make_follower(self.state(OTHER, epoch, (OTHER, ME)), 1, self.log)

    def append(self, acks: int = -1, version: int = 9) -> int:
        return self.partition.append(memoryview(batch_of(b"a", b"b")), acks, version, 1_700_000_000_000).first_offset

    def refusal(self, acks: int = -1) -> ErrorCode:
        with pytest.raises(BrokerError) as refused:
            self.append(acks)
        return refused.value.code


@pytest.fixture
def hosted(tmp_path: Path) -> Hosted:
    return Hosted(tmp_path)


def test_a_leader_alone_sees_its_appends_at_once(hosted: Hosted) -> None:
    assert hosted.lead(ME)
    assert not hosted.lead(ME)

    assert (hosted.append(), hosted.append()) == (0, 2)

    assert hosted.partition.high_watermark == 4


def test_a_partition_refuses_appends_before_it_leads_and_after(hosted: Hosted) -> None:
    assert hosted.refusal() is ErrorCode.KAFKA_STORAGE_ERROR
    hosted.lead(ME)
    hosted.append()
    assert hosted.follow(1)

    assert hosted.refusal() is ErrorCode.NOT_LEADER_OR_FOLLOWER

    hosted.partition.take_offline()
    assert hosted.refusal() is ErrorCode.KAFKA_STORAGE_ERROR


def test_the_high_watermark_waits_for_every_replica_in_sync(hosted: Hosted) -> None:
    hosted.lead(ME, OTHER, THIRD)
    hosted.append()
    assert hosted.partition.high_watermark == 0

    hosted.partition.follower_fetched(OTHER, 2, 10)
    assert hosted.partition.high_watermark == 0
    hosted.partition.follower_fetched(THIRD, 1, 20)
    assert hosted.partition.high_watermark == 1
    hosted.partition.follower_fetched(THIRD, 2, 30)

    assert hosted.partition.high_watermark == 2
    assert {number: each.caught_up_ms for number, each in hosted.partition.followers.items()} == {OTHER: 10, THIRD: 30}


def test_a_replica_out_of_sync_holds_nobody_up(hosted: Hosted) -> None:
    hosted.lead(ME, OTHER, replicas=(ME, OTHER, THIRD))
    hosted.append()
    hosted.partition.follower_fetched(OTHER, 2, 0)

    assert hosted.partition.high_watermark == 2
    hosted.partition.follower_fetched(THIRD, 1, 0)
    assert hosted.partition.high_watermark == 2


def test_the_high_watermark_never_goes_back(hosted: Hosted) -> None:
    hosted.lead(ME, OTHER)
    hosted.append()
    hosted.partition.follower_fetched(OTHER, 2, 0)
    hosted.partition.follower_fetched(OTHER, 0, 0)

    assert hosted.partition.high_watermark == 2


def test_a_shrunk_isr_moves_the_high_watermark(hosted: Hosted) -> None:
    hosted.lead(ME, OTHER)
    hosted.append()

    hosted.lead(ME, replicas=(ME, OTHER))

    assert hosted.partition.high_watermark == 2


def test_a_stranger_is_no_follower(hosted: Hosted) -> None:
    hosted.lead(ME, OTHER)

    with pytest.raises(BrokerError):
        hosted.partition.follower_fetched(THIRD, 0, 0)


@pytest.mark.parametrize(("acks", "refused"), [(1, False), (0, False), (-1, True)])
def test_too_few_in_sync_refuse_acks_all_only(tmp_path: Path, acks: int, refused: bool) -> None:
    hosted = Hosted(tmp_path, min_insync_replicas=2)
    hosted.lead(ME, replicas=(ME, OTHER))

    if refused:
        assert hosted.refusal(acks) is ErrorCode.NOT_ENOUGH_REPLICAS
        assert hosted.log.log_end_offset == 0
    else:
        assert hosted.append(acks) == 0


@pytest.mark.parametrize(
    ("claimed", "error"),
    [(-1, None), (5, None), (4, ErrorCode.FENCED_LEADER_EPOCH), (6, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_clients_epochs_are_compared(hosted: Hosted, claimed: int, error: ErrorCode | None) -> None:
    hosted.lead(ME, epoch=5)
    if error is None:
        hosted.partition.check_leader_epoch(claimed)
        return
    with pytest.raises(BrokerError) as refused:
        hosted.partition.check_leader_epoch(claimed)
    assert refused.value.code is error


def test_every_leadership_starts_an_epoch_where_the_log_ends(hosted: Hosted) -> None:
    hosted.lead(ME, epoch=3)
    hosted.append()
    hosted.follow(4)
    hosted.lead(ME, epoch=7)
    hosted.append()

    assert hosted.log.end_offset_for_epoch(3) == (3, 2)
    assert hosted.log.end_offset_for_epoch(7) == (7, 4)
