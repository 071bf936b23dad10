"""Who is in sync: how a leader judges its followers, what it asks the controller for, and what it makes of answers."""

import logging
from pathlib import Path

import pytest

from kavka.broker.partitions.replication import EXPANDED, NOT_CHANGED, SHRUNK
from kavka.broker.partitions.role import RECOVERED, RECOVERING, GrantedIsr
from kavka.protocol.errors import BrokerError, ErrorCode
from tests.support.isr_stage import LAG_MS, ME, OTHER, THIRD, Hosted


@pytest.fixture
def hosted(tmp_path: Path) -> Hosted:
    return Hosted(tmp_path)


def test_a_follower_joins_when_it_has_reached_the_high_watermark(hosted: Hosted) -> None:
    hosted.lead(ME, replicas=(ME, OTHER))
    hosted.append()
    hosted.append()
    assert hosted.high_watermark == 4

    hosted.fetched(OTHER, 3, broker_epoch=70)
    assert hosted.asked == []
    hosted.fetched(OTHER, 4, broker_epoch=70)

    (pending,) = hosted.asked
    assert pending.isr == (ME, OTHER)
    assert pending.broker_epochs == (-1, 70)
    assert pending.is_expansion
    assert hosted.partition.role.isr == (ME,)
    assert hosted.partition.role.maximal_isr == (ME, OTHER)


def test_a_follower_joins_only_from_where_the_leader_began(hosted: Hosted) -> None:
    for epoch in (0, 1):
        hosted.lead(ME, OTHER, THIRD, epoch=epoch, partition_epoch=epoch)
        hosted.append()
    hosted.lead(ME, OTHER, epoch=2, replicas=(ME, OTHER, THIRD), partition_epoch=2)
    assert (hosted.high_watermark, hosted.partition.role.epoch_start_offset) == (0, 4)

    hosted.fetched(THIRD, 3)
    assert hosted.asked == []
    hosted.fetched(THIRD, 4)

    assert [pending.isr for pending in hosted.asked] == [(ME, OTHER, THIRD)]


def test_who_is_in_sync_but_not_assigned_any_more_is_left_out_when_others_join(hosted: Hosted) -> None:
    hosted.lead(ME, 4, replicas=(ME, OTHER))
    hosted.fetched(OTHER, 0)
    (pending,) = hosted.asked
    assert pending.isr == (ME, OTHER)


def test_who_may_not_join_is_not_asked_for(hosted: Hosted) -> None:
    hosted.lead(ME, replicas=(ME, OTHER))
    hosted.ineligible.add(OTHER)
    hosted.fetched(OTHER, 0)
    assert hosted.asked == []

    hosted.ineligible.clear()
    hosted.fetched(OTHER, 0)

    assert len(hosted.asked) == 1


def test_who_was_asked_for_holds_the_high_watermark_back_at_once(hosted: Hosted) -> None:
    hosted.lead(ME, replicas=(ME, OTHER))
    hosted.fetched(OTHER, 0)
    hosted.now_ms += 2 * LAG_MS

    hosted.append()

    assert hosted.high_watermark == 0
    hosted.fetched(OTHER, 2)
    assert hosted.high_watermark == 2


def test_who_is_about_to_join_holds_the_high_watermark_back(hosted: Hosted) -> None:
    hosted.lead(ME, OTHER, replicas=(ME, OTHER, THIRD))
    hosted.append()
    hosted.fetched(OTHER, 2)
    hosted.fetched(THIRD, 0)
    hosted.fetched(THIRD, 1, leader_end_offset=1)
    hosted.append()

    hosted.fetched(OTHER, 4)
    assert hosted.high_watermark == 2
    hosted.now_ms += LAG_MS + 1
    hosted.fetched(OTHER, 4)

    assert hosted.high_watermark == 4


def test_who_lags_leaves_only_when_the_controller_agrees(hosted: Hosted) -> None:
    hosted.lead(ME, OTHER)
    hosted.append()
    hosted.now_ms += LAG_MS
    hosted.partition.shrink_isr()
    assert hosted.asked == []

    hosted.now_ms += 1
    hosted.partition.shrink_isr()

    (pending,) = hosted.asked
    assert (pending.isr, pending.is_expansion) == ((ME,), False)
    assert (hosted.partition.role.maximal_isr, hosted.high_watermark) == ((ME, OTHER), 0)
    assert not hosted.grant(pending)
    assert (hosted.partition.role.isr, hosted.partition.role.partition_epoch, hosted.high_watermark) == ((ME,), 1, 2)
    assert hosted.counted == {SHRUNK: 1}


def test_who_has_everything_stays_however_long_it_is_silent(hosted: Hosted) -> None:
    hosted.lead(ME, OTHER)
    hosted.append()
    hosted.fetched(OTHER, 2)
    hosted.now_ms += 100 * LAG_MS

    hosted.partition.shrink_isr()

    assert hosted.asked == []


def test_steady_load_shrinks_nothing(hosted: Hosted) -> None:
    hosted.lead(ME, OTHER)
    for _ in range(20):
        end_offset = hosted.log.log_end_offset
        hosted.append()
        # It never has all that there is, but always what there was at its fetch before.
        hosted.fetched(OTHER, end_offset)
        hosted.now_ms += LAG_MS // 2
        hosted.partition.shrink_isr()

    assert hosted.asked == []


def test_who_fetches_but_falls_behind_leaves(hosted: Hosted) -> None:
    hosted.lead(ME, OTHER)
    for number in range(6):
        hosted.append()
        hosted.append()
        hosted.fetched(OTHER, number)
        hosted.now_ms += LAG_MS // 2
        hosted.partition.shrink_isr()

    assert [pending.isr for pending in hosted.asked] == [(ME,)]


@pytest.mark.parametrize("was_silent_ms", [0, 50 * LAG_MS])
def test_a_new_leader_gives_its_followers_the_whole_time(hosted: Hosted, was_silent_ms: int) -> None:
    hosted.lead(ME, OTHER)
    hosted.append()
    hosted.now_ms += was_silent_ms
    hosted.lead(ME, OTHER, epoch=1, partition_epoch=1)

    hosted.now_ms += LAG_MS
    hosted.partition.shrink_isr()
    assert hosted.asked == []
    hosted.now_ms += 1
    hosted.partition.shrink_isr()

    assert len(hosted.asked) == 1


def test_a_clock_that_began_just_now_keeps_nobody_out_of_sync_waiting(hosted: Hosted) -> None:
    hosted.now_ms = 0
    hosted.lead(ME, replicas=(ME, OTHER))

    hosted.append()

    assert hosted.high_watermark == 2


def test_a_leader_that_is_elected_again_knows_how_far_its_followers_are(hosted: Hosted) -> None:
    hosted.lead(ME, OTHER, THIRD)
    hosted.append()
    hosted.fetched(OTHER, 2)
    hosted.fetched(THIRD, 1)

    hosted.lead(ME, OTHER, epoch=1, partition_epoch=1, replicas=(ME, OTHER, THIRD))

    assert hosted.high_watermark == 2


def test_a_leader_that_followed_meanwhile_knows_nothing_of_its_followers(hosted: Hosted) -> None:
    hosted.lead(ME, OTHER)
    hosted.append()
    hosted.fetched(OTHER, 1)
    hosted.follow(1, partition_epoch=1)

    hosted.lead(ME, OTHER, epoch=2, partition_epoch=2)

    assert hosted.partition.followers[OTHER].end_offset == -1
    assert hosted.high_watermark == 1


def test_a_fetch_of_another_epoch_counts_for_nothing(hosted: Hosted) -> None:
    hosted.lead(ME, OTHER, epoch=3)
    hosted.append()
    for epoch in (2, 4):
        hosted.fetched(OTHER, 2, leader_epoch=epoch)
    assert hosted.high_watermark == 0

    hosted.fetched(OTHER, 2, leader_epoch=3)

    assert hosted.high_watermark == 2


def test_a_fetch_of_a_broker_that_was_started_again_since_is_refused(hosted: Hosted) -> None:
    hosted.lead(ME, OTHER)
    hosted.append()
    hosted.fetched(OTHER, 0, broker_epoch=8)

    with pytest.raises(BrokerError) as refused:
        hosted.fetched(OTHER, 2, broker_epoch=7)

    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert hosted.high_watermark == 0
    hosted.fetched(OTHER, 2, broker_epoch=-1)
    assert hosted.high_watermark == 2


def test_under_min_isr_the_high_watermark_stands_still(tmp_path: Path) -> None:
    hosted = Hosted(tmp_path, min_insync_replicas=2)
    hosted.lead(ME, OTHER)
    hosted.append()
    hosted.fetched(OTHER, 2)
    hosted.lead(ME, replicas=(ME, OTHER), partition_epoch=1)
    hosted.append(acks=1)
    assert hosted.high_watermark == 2

    hosted.fetched(OTHER, 4)
    (pending,) = hosted.asked
    assert hosted.high_watermark == 2
    hosted.grant(pending)

    assert hosted.high_watermark == 4
    assert hosted.counted == {EXPANDED: 1}


@pytest.mark.parametrize("error", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED])
def test_what_was_surely_not_done_is_taken_back(hosted: Hosted, error: ErrorCode) -> None:
    hosted.lead(ME, replicas=(ME, OTHER))
    hosted.fetched(OTHER, 0)
    hosted.now_ms += 2 * LAG_MS
    hosted.append()

    assert not hosted.partition.isr_answered(hosted.asked[0], error)

    assert (hosted.partition.role.pending, hosted.partition.role.maximal_isr) == (None, (ME,))
    assert hosted.high_watermark == 2
    hosted.fetched(OTHER, 2)
    assert len(hosted.asked) == 2


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    ],
)
def test_what_may_have_been_done_stays_open_until_the_next_order(hosted: Hosted, error: ErrorCode) -> None:
    hosted.lead(ME, replicas=(ME, OTHER))
    hosted.fetched(OTHER, 0)
    hosted.append()

    assert not hosted.partition.isr_answered(hosted.asked[0], error)
    hosted.fetched(OTHER, 0)
    hosted.now_ms += 2 * LAG_MS
    hosted.partition.shrink_isr()

    assert (len(hosted.asked), hosted.high_watermark) == (1, 0)
    hosted.lead(ME, replicas=(ME, OTHER), partition_epoch=1)
    assert (hosted.partition.role.pending, hosted.high_watermark) == (None, 2)


@pytest.mark.parametrize(
    "error", [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT]
)
def test_what_nobody_knows_is_asked_again(hosted: Hosted, error: ErrorCode) -> None:
    hosted.lead(ME, replicas=(ME, OTHER))
    hosted.fetched(OTHER, 0)

    assert hosted.partition.isr_answered(hosted.asked[0], error)

    assert hosted.partition.role.pending is hosted.asked[0]


def test_answers_that_come_late_change_nothing(hosted: Hosted) -> None:
    hosted.lead(ME, replicas=(ME, OTHER))
    hosted.fetched(OTHER, 0)
    hosted.lead(ME, OTHER, epoch=1, partition_epoch=4)
    before = hosted.partition.role

    assert not hosted.grant(hosted.asked[0])
    assert not hosted.partition.isr_answered(hosted.asked[0], ErrorCode.UNKNOWN_SERVER_ERROR)

    assert hosted.partition.role is before


@pytest.mark.parametrize("late", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.UNKNOWN_SERVER_ERROR])
def test_an_error_that_comes_late_does_not_take_back_what_was_asked_since(hosted: Hosted, late: ErrorCode) -> None:
    hosted.lead(ME, replicas=(ME, OTHER))
    hosted.fetched(OTHER, 0)
    hosted.lead(ME, replicas=(ME, OTHER), partition_epoch=1)
    hosted.fetched(OTHER, 0)
    first, second = hosted.asked

    assert not hosted.partition.isr_answered(first, late)

    assert hosted.partition.role.pending is second
    assert hosted.partition.role.maximal_isr == (ME, OTHER)


@pytest.mark.parametrize(("leader_epoch", "partition_epoch"), [(2, 6), (0, 6), (1, 4)])
def test_an_answer_of_another_state_is_not_believed(hosted: Hosted, leader_epoch: int, partition_epoch: int) -> None:
    hosted.lead(ME, replicas=(ME, OTHER), epoch=1, partition_epoch=5)
    hosted.fetched(OTHER, 0)
    answer = GrantedIsr(leader_epoch, (ME,), partition_epoch, RECOVERED)

    assert not hosted.partition.isr_answered(hosted.asked[0], answer)

    role = hosted.partition.role
    assert (role.isr, role.partition_epoch, role.maximal_isr) == ((ME,), 5, (ME, OTHER))
    assert hosted.counted == {NOT_CHANGED: 1}


def test_an_order_older_than_the_answer_changes_nothing(hosted: Hosted) -> None:
    hosted.lead(ME, replicas=(ME, OTHER), partition_epoch=5)
    hosted.fetched(OTHER, 0)
    hosted.grant(hosted.asked[0])

    assert not hosted.lead(ME, replicas=(ME, OTHER), partition_epoch=5)
    assert not hosted.follow(0, partition_epoch=5)

    assert hosted.partition.role.is_leader
    assert hosted.partition.role.isr == (ME, OTHER)
    assert not hosted.lead(ME, OTHER, partition_epoch=6)


def test_an_unclean_leader_says_from_where_on_records_are_lost(
    hosted: Hosted, caplog: pytest.LogCaptureFixture
) -> None:
    hosted.lead(ME, OTHER)
    hosted.append()
    with caplog.at_level(logging.ERROR):
        hosted.lead(ME, epoch=1, replicas=(ME, OTHER), partition_epoch=1, recovery_state=RECOVERING)
        hosted.lead(ME, epoch=1, replicas=(ME, OTHER), partition_epoch=1, recovery_state=RECOVERING)

    (said,) = [record.getMessage() for record in caplog.records]
    assert "visits-0" in said
    assert "from offset 2 in epoch 1, its high watermark is 0" in said
    assert hosted.partition.role.recovery_state == RECOVERED


def test_a_follower_knows_of_an_unclean_election(hosted: Hosted) -> None:
    hosted.follow(3, recovery_state=RECOVERING)

    assert hosted.partition.role.recovery_state == RECOVERING
    assert (hosted.partition.role.isr, hosted.partition.role.epoch_start_offset) == ((), -1)
