"""Leaders and followers: what an order changes, who may append, and how followers' fetches move the high watermark."""

from pathlib import Path
from typing import Any

import pytest

from kavka.broker.waiting.purgatory import DelayedOperation
from kavka.protocol.errors import BrokerError, ErrorCode
from tests.support.isr_stage import ME, OTHER, THIRD, Hosted


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


class WatchedHosted(Hosted):
    def __init__(self, directory: Path, **overrides: Any) -> None:
        super().__init__(directory, **overrides)
        self.data, self.watermark = Seen(), Seen()
        self.partition.data_arrived.operations[self.data] = None
        self.partition.high_watermark_moved.operations[self.watermark] = None


def refusal(hosted: Hosted, acks: int = -1) -> ErrorCode:
    with pytest.raises(BrokerError) as refused:
        hosted.append(acks)
    return refused.value.code


@pytest.fixture
def hosted(tmp_path: Path) -> Hosted:
    return WatchedHosted(tmp_path)


def test_a_leader_alone_sees_its_appends_at_once(hosted: Hosted) -> None:
    assert hosted.lead(ME)
    assert not hosted.lead(ME)

    assert (hosted.append(), hosted.append()) == (0, 2)

    assert hosted.partition.high_watermark == 4


def test_a_partition_refuses_appends_before_it_leads_and_after(hosted: Hosted) -> None:
    assert refusal(hosted) is ErrorCode.KAFKA_STORAGE_ERROR
    hosted.lead(ME)
    hosted.append()
    assert hosted.follow(1)

    assert refusal(hosted) is ErrorCode.NOT_LEADER_OR_FOLLOWER

    hosted.partition.take_offline()
    assert refusal(hosted) is ErrorCode.KAFKA_STORAGE_ERROR


def test_the_high_watermark_waits_for_every_replica_in_sync(hosted: Hosted) -> None:
    hosted.lead(ME, OTHER, THIRD)
    hosted.append()
    assert hosted.partition.high_watermark == 0

    hosted.fetched(OTHER, 2)
    assert hosted.partition.high_watermark == 0
    hosted.fetched(THIRD, 1)
    assert hosted.partition.high_watermark == 1
    hosted.fetched(THIRD, 2)

    assert hosted.partition.high_watermark == 2


def test_a_replica_out_of_sync_holds_nobody_up(hosted: Hosted) -> None:
    hosted.lead(ME, OTHER, replicas=(ME, OTHER, THIRD))
    hosted.append()
    hosted.fetched(OTHER, 2)

    assert hosted.partition.high_watermark == 2
    hosted.fetched(THIRD, 1)
    assert hosted.partition.high_watermark == 2


def test_the_high_watermark_never_goes_back(hosted: Hosted) -> None:
    hosted.lead(ME, OTHER)
    hosted.append()
    hosted.fetched(OTHER, 2)
    hosted.fetched(OTHER, 0)

    assert hosted.partition.high_watermark == 2


def test_a_shrunk_isr_moves_the_high_watermark(hosted: Hosted) -> None:
    hosted.lead(ME, OTHER)
    hosted.append()

    hosted.lead(ME, replicas=(ME, OTHER))

    assert hosted.partition.high_watermark == 2


@pytest.mark.parametrize(
    ("claimed", "error"), [(0, ErrorCode.UNKNOWN_LEADER_EPOCH), (-1, ErrorCode.NOT_LEADER_OR_FOLLOWER)]
)
@pytest.mark.parametrize("stranger", [THIRD, ME])
def test_a_stranger_is_no_follower(hosted: Hosted, stranger: int, claimed: int, error: ErrorCode) -> None:
    hosted.lead(ME, OTHER)
    hosted.append()

    with pytest.raises(BrokerError) as refused:
        hosted.partition.check_follower(stranger, claimed)
    hosted.fetched(stranger, 2)

    assert refused.value.code is error
    assert hosted.high_watermark == 0


@pytest.mark.parametrize(("acks", "refused"), [(1, False), (0, False), (-1, True)])
def test_too_few_in_sync_refuse_acks_all_only(tmp_path: Path, acks: int, refused: bool) -> None:
    hosted = Hosted(tmp_path, min_insync_replicas=2)
    hosted.lead(ME, replicas=(ME, OTHER))

    if refused:
        assert refusal(hosted, acks) is ErrorCode.NOT_ENOUGH_REPLICAS
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


@pytest.mark.parametrize(("isr", "is_missing"), [((ME,), True), ((ME, OTHER), False), ((ME, OTHER, THIRD), False)])
def test_replicas_that_are_being_added_are_not_missing(hosted: Hosted, isr: tuple[int, ...], is_missing: bool) -> None:
    state = hosted.state(ME, 0, isr, (ME, OTHER, THIRD))
    state.adding_replicas = [THIRD]

    hosted.partition.make_leader(state, 1, hosted.log)

    assert hosted.partition.role.is_under_replicated is is_missing
    hosted.follow(1, partition_epoch=1)
    assert not hosted.partition.role.is_under_replicated
