"""Producers are known after a power cut though all of their batches are gone: a snapshot tells of them."""

from pathlib import Path

import pytest

from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.storage.partition_log import PartitionLog
from tests.support.compaction import roll
from tests.support.crash_files import CrashFiles, FoldersSurvive
from tests.support.partition_logs import Jobs, append, open_log

FOLDER = Path("/crash/visits-0")
PRODUCER = 9


def write_and_delete(log: PartitionLog, jobs: Jobs) -> int:
    """The producer's only batch is deleted behind a roll at the recovery point; what the checkpoint says then."""
    append(log, b"a", producer_id=PRODUCER, producer_epoch=5, base_sequence=0)
    log.flush()
    roll(log)
    jobs.run_all()
    append(log, b"b")
    log.flush()
    log.advance_high_watermark(2)
    log.delete_records_before(1)
    assert log.delete_old_segments(log.environment.now_ms()) == 1
    log.flush()
    return log.stored_recovery_point


def refusal(log: PartitionLog) -> ErrorCode:
    with pytest.raises(BrokerError) as refused:
        append(log, b"zombie", producer_id=PRODUCER, producer_epoch=4, base_sequence=0)
    return refused.value.code


def test_a_snapshot_that_was_taken_at_the_recovery_point_is_fsynced() -> None:
    files, jobs = CrashFiles(), Jobs()
    point = write_and_delete(open_log(FOLDER, files=files, jobs=jobs), jobs)

    found = open_log(FOLDER, files=files.crash(FoldersSurvive()), clean=False, recovery_point=point, log_start_offset=1)

    assert refusal(found) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_snapshot_that_a_killed_broker_took_is_fsynced_by_the_next_one() -> None:
    files, jobs = CrashFiles(), Jobs()
    log = open_log(FOLDER, files=files, jobs=jobs)
    append(log, b"a", producer_id=PRODUCER, producer_epoch=5, base_sequence=0)
    log.flush()
    roll(log)
    append(log, b"b")
    # As Kafka stores it.
    point = log.recovery_point
    files, jobs = files.kill(), Jobs()

    log = open_log(FOLDER, files=files, jobs=jobs, clean=False, recovery_point=point)
    log.advance_high_watermark(2)
    log.flush()
    log.delete_records_before(1)
    assert log.delete_old_segments(log.environment.now_ms()) == 1
    log.flush()
    jobs.run_all()
    point = log.stored_recovery_point

    after = files.crash(FoldersSurvive())
    found = open_log(FOLDER, files=after, clean=False, recovery_point=point, log_start_offset=1)
    assert refusal(found) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_flush_fsyncs_a_snapshot_once() -> None:
    files, jobs = CrashFiles(), Jobs()
    log = open_log(FOLDER, files=files, jobs=jobs)
    write_and_delete(log, jobs)

    assert log.snapshots.offsets
    assert log.snapshots.unsynced == set()
