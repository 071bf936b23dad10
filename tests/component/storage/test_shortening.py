"""Truncation from the end, retention and DeleteRecords from the start."""

import errno
import random
from pathlib import Path
from typing import Any

import pytest

from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.records.batch import Record, build_batch
from kavka.storage.append_result import AppendError
from kavka.storage.partition_log import PartitionLog
from tests.support.compaction import roll
from tests.support.crash_files import CrashFiles
from tests.support.log_managers import FailingFiles
from tests.support.partition_logs import (
    START_MS,
    Jobs,
    append,
    append_batch,
    batch_of,
    open_log,
    read_all,
)

BATCH_BYTES = len(batch_of(b"0"))
SEGMENT: dict[str, Any] = {"segment_bytes": 3 * BATCH_BYTES}


def filled(directory: Path, batches: int = 9, *, jobs: Jobs | None = None, **settings: Any) -> PartitionLog:
    log = open_log(directory, jobs=jobs, **{**SEGMENT, **settings})
    for number in range(batches):
        append(log, b"%d" % number, leader_epoch=number // 4, timestamp_ms=START_MS + number)
    log.advance_high_watermark(batches)
    return log


@pytest.mark.parametrize("offset", range(11))
def test_a_truncated_log_goes_on_from_there_and_after_a_restart_too(tmp_path: Path, offset: int) -> None:
    log = filled(tmp_path)

    log.truncate_to(offset)

    end = min(offset, 9)
    assert [number for number, _ in read_all(log)] == list(range(end))
    assert log.high_watermark == end
    assert all(start < end for _, start in log.epochs.entries)
    assert append(log, b"new").first_offset == end
    log.close(clean=False)
    assert read_all(open_log(tmp_path, clean=False, **SEGMENT))[-1] == (end, b"new")


def test_truncation_inside_a_batch_takes_the_whole_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"a")
    append(log, b"b", b"c", b"d")

    log.truncate_to(3)

    assert log.log_end_offset == 1


@pytest.mark.parametrize(("start", "newest"), [(0, 1), (2, 6), (6, 6), (7, 9), (10, 10), (11, None)])
def test_the_newest_record_is_one_that_is_still_there(tmp_path: Path, start: int, newest: int | None) -> None:
    log = open_log(tmp_path)
    ages = [0, 90, 10, 20, 30, 40, 80, 5, 6, 70, 60]
    append(log, b"0", timestamp_ms=START_MS + ages[0])
    append(log, b"1", timestamp_ms=START_MS + ages[1])
    # One batch whose newest record comes in the middle of it.
    records = [Record(timestamp_ms=START_MS + age, value=b"v") for age in ages[2:9]]
    append_batch(log, bytearray(build_batch(records)))
    append(log, b"9", timestamp_ms=START_MS + ages[9])
    log.roll(log.environment.now_ms(), log.log_end_offset)
    append(log, b"10", timestamp_ms=START_MS + ages[10])
    log.advance_high_watermark(log.log_end_offset)
    log.delete_records_before(start)

    found = log.max_timestamp_offset()

    assert (None if found is None else found.offset) == newest
    assert found is None or found.timestamp_ms == START_MS + ages[found.offset]


def test_truncation_takes_back_what_producers_wrote(tmp_path: Path) -> None:
    log = open_log(tmp_path, **SEGMENT)
    for number in range(10):
        append(log, b"v", producer_id=1, producer_epoch=0, base_sequence=number)

    log.truncate_to(4)

    assert append(log, b"v", producer_id=1, producer_epoch=0, base_sequence=4).first_offset == 4


def test_a_log_starts_anew_at_an_offset_of_its_own(tmp_path: Path) -> None:
    log = filled(tmp_path)
    for offset in (6, 100, 0):
        log.truncate_fully_and_start_at(offset)
        assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (offset, offset, offset)
        assert append(log, b"x").first_offset == offset
        assert read_all(log) == [(offset, b"x")]


def test_old_segments_go_and_their_files_after_the_delay(tmp_path: Path) -> None:
    jobs = Jobs()
    log = filled(tmp_path, jobs=jobs, retention_ms=100, file_delete_delay_ms=5000)

    assert log.delete_old_segments(START_MS + 100 + 6) == 2

    assert (log.log_start_offset, log.segment_count) == (6, 1)
    assert (tmp_path / f"{0:020d}.log.deleted").exists()
    assert {delay for delay, _ in jobs.later} == {5000}
    jobs.run_all()
    assert not list(tmp_path.glob("*.deleted"))


def test_old_segments_go_even_if_a_snapshot_of_producers_stays(tmp_path: Path) -> None:
    jobs, files = Jobs(), FailingFiles()
    log = filled(tmp_path, 10, jobs=jobs, files=files, retention_ms=100)
    stays, goes = tmp_path / f"{3:020d}.snapshot", tmp_path / f"{6:020d}.snapshot"
    assert stays.exists()
    assert goes.exists()
    files.fail("unlink", stays.name, errno.ENOMEM)

    with pytest.raises(AppendError):
        log.delete_old_segments(START_MS + 100 + 9)

    jobs.run_all()
    assert (log.log_start_offset, log.segment_count) == (9, 1)
    assert (stays.exists(), goes.exists()) == (True, False)
    assert not list(tmp_path.glob("*.deleted"))


def test_the_active_segment_goes_too_when_all_is_old(tmp_path: Path) -> None:
    log = filled(tmp_path, retention_ms=100)

    assert log.delete_old_segments(START_MS + 1000) == 3

    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (9, 9, 0)
    assert append(log, b"next").first_offset == 9


@pytest.mark.parametrize(
    ("spare", "kept_segments"), [(0, 1), (3 * BATCH_BYTES, 1), (6 * BATCH_BYTES - 1, 2), (9 * BATCH_BYTES, 3)]
)
def test_a_log_keeps_at_least_its_size(tmp_path: Path, spare: int, kept_segments: int) -> None:
    log = filled(tmp_path, retention_bytes=max(spare, 1), retention_ms=-1)

    log.delete_old_segments(START_MS)

    assert log.segment_count == kept_segments
    assert log.size_bytes >= min(spare, 9 * BATCH_BYTES)


def test_nothing_above_the_high_watermark_goes(tmp_path: Path) -> None:
    log = open_log(tmp_path, retention_ms=0, **SEGMENT)
    for _ in range(9):
        append(log, b"0")
    log.advance_high_watermark(4)

    log.delete_old_segments(START_MS + 100_000)

    assert log.log_start_offset == 3


def test_a_compacted_log_is_not_deleted_from(tmp_path: Path) -> None:
    log = filled(tmp_path, cleanup_policy="compact", retention_ms=0, retention_bytes=0)

    assert log.delete_old_segments(START_MS + 100_000) == 0
    with pytest.raises(BrokerError) as caught:
        log.delete_records_before(5)
    assert caught.value.code == ErrorCode.POLICY_VIOLATION


def test_deleted_records_cannot_be_read_and_their_segments_go(tmp_path: Path) -> None:
    log = filled(tmp_path, retention_ms=-1)

    assert log.delete_records_before(7) == 7

    with pytest.raises(BrokerError) as caught:
        log.read(6, 100, min_one=True, end_offset=9)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.delete_old_segments(START_MS) == 2
    assert [offset for offset, _ in read_all(log)] == [7, 8]
    assert log.epochs.entries[0] == (1, 7)


def test_records_are_deleted_up_to_the_high_watermark_and_not_beyond(tmp_path: Path) -> None:
    log = filled(tmp_path)
    with pytest.raises(BrokerError) as caught:
        log.delete_records_before(10)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.delete_records_before(-1) == 9
    assert log.delete_records_before(3) == 9


def test_a_renamed_log_can_be_read_on_and_deleted(tmp_path: Path) -> None:
    log = filled(tmp_path / "visits-0")
    piece = log.read(0, 10_000, min_one=True, end_offset=9)

    log.rename_directory(tmp_path / "visits-0.abc-delete")

    assert len(piece.read_bytes()) == 3 * BATCH_BYTES
    assert len(read_all(log)) == 9
    log.delete()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seed", range(20))
def test_a_log_of_which_all_is_deleted_goes_on_at_its_end_after_a_power_cut(seed: int) -> None:
    folder, files = Path("/crash/visits-0"), CrashFiles()
    log = open_log(folder, files=files, jobs=Jobs(), retention_ms=1000)
    for number in range(5):
        append(log, b"%d" % number)
    log.advance_high_watermark(5)
    log.flush()

    assert log.delete_old_segments(START_MS + 1_000_000) == 1

    after = files.crash(random.Random(seed))
    found = open_log(folder, files=after, clean=False, recovery_point=log.stored_recovery_point)
    assert found.log_end_offset == 5


def test_a_full_disk_does_not_keep_retention_from_making_room(tmp_path: Path) -> None:
    files = FailingFiles()
    log = open_log(tmp_path, files=files, jobs=Jobs(), retention_ms=1000)
    for number in range(3):
        append(log, b"%d" % number)
        roll(log)
    append(log, b"last")
    log.advance_high_watermark(4)
    files.fail("open", "leader-epoch", errno.ENOSPC)
    files.fail("open", ".snapshot", errno.ENOSPC)

    assert log.delete_old_segments(START_MS + 1_000_000) == 3

    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (3, 4, 0)
