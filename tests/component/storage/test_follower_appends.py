"""What a follower takes from its leader, and what it refuses before it writes a byte."""

from pathlib import Path

import pytest

from kavka.protocol.errors import ErrorCode
from kavka.protocol.records.batch import patch_offsets
from kavka.storage.append_result import AppendError
from kavka.storage.partition_log import PartitionLog
from tests.support.partition_logs import append, batch_of, open_log, read_all


def copied(*values: bytes, offset: int, epoch: int) -> bytearray:
    """A batch as the leader of `epoch` has it at `offset`."""
    batch = batch_of(*values)
    patch_offsets(batch, 0, offset, epoch)
    return batch


def state_of(log: PartitionLog) -> tuple[object, ...]:
    return log.published[:2], log.epochs.entries, log.high_watermark, log.log_start_offset


def test_batches_of_a_later_epoch_than_the_leaders_are_left_out(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    later = copied(b"c", offset=2, epoch=6)

    log.append_as_follower(copied(b"a", offset=0, epoch=4) + copied(b"b", offset=1, epoch=5) + later, leader_epoch=5)

    assert (log.log_end_offset, log.epochs.entries) == (2, ((4, 0), (5, 1)))
    with pytest.raises(AppendError) as caught:
        log.append_as_follower(later, leader_epoch=5)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    assert log.log_end_offset == 2


@pytest.mark.parametrize("spoilt", [0, 1])
def test_one_bad_batch_keeps_all_of_an_answer_out(tmp_path: Path, spoilt: int) -> None:
    log = open_log(tmp_path)
    batches = [copied(b"a", offset=0, epoch=1), copied(b"b", offset=1, epoch=1)]
    batches[spoilt][-1] ^= 1

    with pytest.raises(AppendError) as caught:
        log.append_as_follower(batches[0] + batches[1], leader_epoch=1)

    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    assert (log.log_end_offset, log.size_bytes, log.epochs.entries) == (0, 0, ())


def test_an_empty_log_takes_the_batch_that_its_start_lies_in(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.truncate_fully_and_start_at(5)
    batch = copied(b"a", b"b", b"c", b"d", offset=3, epoch=2)

    log.append_as_follower(batch + copied(b"e", offset=7, epoch=2), leader_epoch=2)

    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (5, 8, 5)
    assert log.epochs.entries == ((2, 5),)
    log.close(clean=False)
    again = open_log(tmp_path, clean=False, log_start_offset=5)
    assert again.log_end_offset == 8
    assert [value for offset, value in read_all(again) if offset >= 5] == [b"c", b"d", b"e"]


def test_a_log_with_records_takes_no_batch_that_begins_below_its_end(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"a", b"b")
    before = state_of(log)

    with pytest.raises(AppendError) as caught:
        log.append_as_follower(copied(b"b", b"c", offset=1, epoch=0), leader_epoch=0)

    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert state_of(log) == before


def test_a_truncation_to_the_end_forgets_an_epoch_in_which_nothing_was_appended(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"a", leader_epoch=1)
    log.begin_leader_epoch(2)

    log.truncate_to(1)

    assert (log.log_end_offset, log.epochs.entries) == (1, ((1, 0),))
