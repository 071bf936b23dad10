"""Who may change a log: its leader in its own epoch alone, and a follower for the leader that it follows now."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.storage.log_state import NOBODYS_EPOCH
from kavka.storage.partition_log import PartitionLog
from tests.support.partition_logs import append, open_log, read_all

COPYING: dict[str, Callable[[PartitionLog, PartitionLog, int], object]] = {
    "append": lambda log, source, epoch: log.append_as_follower(copied(source), epoch),
    "truncation": lambda log, source, epoch: log.truncate_to(0, epoch),
    "starting anew": lambda log, source, epoch: log.truncate_fully_and_start_at(7, epoch),
    "high watermark": lambda log, source, epoch: log.follow(1, 0, epoch),
}


def copied(source: PartitionLog) -> bytearray:
    return bytearray(source.read(0, 1 << 20, min_one=True, end_offset=source.log_end_offset).read_bytes())


def state(log: PartitionLog) -> tuple[object, ...]:
    return log.log_start_offset, log.log_end_offset, log.high_watermark, read_all(log)


@pytest.mark.parametrize("epoch", [4, 6])
def test_a_leader_of_another_epoch_does_not_append(tmp_path: Path, epoch: int) -> None:
    log = open_log(tmp_path)
    assert log.begin_leader_epoch(5) == 0
    append(log, b"own", leader_epoch=5)

    with pytest.raises(BrokerError) as refused:
        append(log, b"other", leader_epoch=epoch)

    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert read_all(log) == [(0, b"own")]
    assert log.begin_leader_epoch(6) == 1


@pytest.mark.parametrize("followed", [6, NOBODYS_EPOCH])
@pytest.mark.parametrize("epoch", [5, 6])
def test_a_follower_appends_as_no_leader(tmp_path: Path, followed: int, epoch: int) -> None:
    log = open_log(tmp_path)
    log.begin_leader_epoch(5)
    log.stand_alone(True)
    append(log, b"own", leader_epoch=5)
    log.follow_leader_epoch(followed)

    with pytest.raises(BrokerError) as refused:
        append(log, b"late", leader_epoch=epoch)
    log.advance_alone()

    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (log.log_end_offset, log.high_watermark) == (1, 0)


@pytest.mark.parametrize("step", COPYING)
@pytest.mark.parametrize("epoch", [4, 6])
@pytest.mark.parametrize("leads", [False, True])
def test_what_was_fetched_for_another_leader_changes_nothing(
    tmp_path: Path, step: str, epoch: int, leads: bool
) -> None:
    source, log = open_log(tmp_path / "leader"), open_log(tmp_path / "follower")
    append(log, b"kept")
    for _ in range(2):
        append(source, b"x")
    log.follow_leader_epoch(5)
    if leads:
        log.begin_leader_epoch(epoch)
    before = state(log)

    with pytest.raises(BrokerError) as refused:
        COPYING[step](log, source, epoch)

    assert refused.value.code is ErrorCode.FENCED_LEADER_EPOCH
    assert state(log) == before


def test_a_follower_copies_and_hears_of_both_ends(tmp_path: Path) -> None:
    source, log = open_log(tmp_path / "leader"), open_log(tmp_path / "follower")
    for _ in range(4):
        append(source, b"x")
    log.follow_leader_epoch(5)

    log.append_as_follower(copied(source), 5)
    log.follow(3, 2, 5)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (2, 3, 4)
    log.truncate_to(3, 5)
    log.follow(9, 9, 5)

    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (3, 3, 3)
    log.truncate_fully_and_start_at(8, 5)
    assert (log.log_start_offset, log.log_end_offset) == (8, 8)


def test_only_who_stands_alone_commits_alone(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.begin_leader_epoch(0)
    append(log, b"x")
    log.advance_alone()
    assert log.high_watermark == 0

    log.stand_alone(True)
    log.advance_alone()
    assert log.high_watermark == 1
    append(log, b"y")
    log.stand_alone(False)
    log.advance_alone()

    assert log.high_watermark == 1
