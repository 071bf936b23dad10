"""What a leader's answer means for a follower's log: where to cut, where to begin, when to give up."""

import pytest

from kavka.broker.replication.fetch_state import (
    Phase,
    Position,
    Reset,
    Verdict,
    beginning,
    judge,
    moved,
    reset_by_end,
    reset_by_start,
    truncation_offset,
)
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.fetch import EpochEndOffset, PartitionData
from kavka.storage.leader_epochs import LeaderEpochs

TOPIC_ID = bytes(16)
LOG = Position(end_offset=100, start_offset=10, high_watermark=70, latest_epoch=5)


def answer(code: int = ErrorCode.NONE, diverging: tuple[int, int] = (-1, -1)) -> PartitionData:
    return PartitionData(
        partition_index=0,
        error_code=code,
        high_watermark=0,
        diverging_epoch=EpochEndOffset(epoch=diverging[0], end_offset=diverging[1]),
        records=None,
    )


def test_a_log_with_epochs_is_fetched_from_its_end_and_lets_the_leader_find_where_histories_part() -> None:
    state = beginning(TOPIC_ID, 6, LOG)

    assert (state.phase, state.fetch_offset, state.last_fetched_epoch) == (Phase.FETCHING, 100, 5)
    assert not state.is_in_sync


@pytest.mark.parametrize(
    ("end_offset", "high_watermark", "phase"), [(100, 70, Phase.TRUNCATING), (70, 70, Phase.FETCHING)]
)
def test_a_log_without_epochs_is_cut_to_its_high_watermark_first(
    end_offset: int, high_watermark: int, phase: Phase
) -> None:
    log = Position(end_offset, 0, high_watermark, -1)

    assert beginning(TOPIC_ID, 6, log).phase is phase


def test_after_an_append_the_next_fetch_begins_at_the_end_and_knows_how_far_behind_it_is() -> None:
    state = beginning(TOPIC_ID, 6, LOG)

    state = moved(state, Position(110, 12, 105, 6), lag=0)

    assert (state.fetch_offset, state.last_fetched_epoch, state.log_start_offset) == (110, 6, 12)
    assert state.is_in_sync


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        (ErrorCode.NONE, Verdict.APPEND),
        (ErrorCode.OFFSET_OUT_OF_RANGE, Verdict.RESET),
        (ErrorCode.FENCED_LEADER_EPOCH, Verdict.FAIL),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, Verdict.RETRY),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, Verdict.RETRY),
        (ErrorCode.UNKNOWN_TOPIC_ID, Verdict.RETRY),
        (ErrorCode.KAFKA_STORAGE_ERROR, Verdict.RETRY),
        (12345, Verdict.RETRY),
    ],
)
def test_only_an_epoch_that_is_over_ends_the_following(code: int, verdict: Verdict) -> None:
    assert judge(answer(code)) is verdict


def test_an_answer_with_another_history_is_for_cutting_not_for_appending() -> None:
    assert judge(answer(diverging=(3, 40))) is Verdict.TRUNCATE


EPOCHS = LeaderEpochs([(1, 10), (3, 40), (5, 80)])


@pytest.mark.parametrize(
    ("epoch", "end_offset", "cut_to"),
    [
        (5, 90, 90),  # the same epoch ended earlier there
        (5, 120, 100),  # or goes on: nothing to cut
        (4, 95, 80),  # an epoch that is not known here: what there is of smaller ones
        (3, 60, 60),
        (3, 95, 80),
        (2, 30, 30 + 10),  # epoch 2 is not known: this log's epoch 1 ends at 40
        (0, 5, 5),  # before all that is known here
        (7, 85, 85),  # beyond all: only a leader that lies says so
        (5, -1, 70),  # the leader knows no epochs: to the high watermark
    ],
)
def test_a_log_is_cut_where_its_history_and_the_leaders_part(epoch: int, end_offset: int, cut_to: int) -> None:
    offset = truncation_offset(epoch, end_offset, LOG, lambda asked: EPOCHS.end_offset_for(asked, 100))

    assert offset == cut_to


def test_a_log_beyond_the_leaders_end_is_cut_and_one_before_its_start_begins_anew() -> None:
    assert reset_by_end(90, LOG) == Reset(cut_to=90)
    assert reset_by_end(100, LOG) is None
    assert reset_by_start(101, LOG) == Reset(begin_at=101)
    assert reset_by_start(100, LOG) == Reset()
