"""What the manager does to its logs from time to time: flushing, retention, forgetting producers."""

import errno
from pathlib import Path

import pytest

from tests.support.compaction import roll
from tests.support.log_managers import ID, FailingFiles, ManagerRig, append, create_log, read_values
from tests.support.partition_logs import batch_of

HOUR_MS = 3_600_000
# Calls of the file system for each log: measured, and only to be lowered.
CALLS_TO_CREATE = 10
CALLS_TO_LOAD = 16


@pytest.fixture
def files() -> FailingFiles:
    return FailingFiles()


@pytest.fixture
def rig(tmp_path: Path, files: FailingFiles) -> ManagerRig:
    return ManagerRig([tmp_path / "a"], files=files)


def test_a_log_is_flushed_when_its_time_has_come(rig: ManagerRig) -> None:
    rig.overrides["visits"] = {"flush.ms": "5000"}
    manager = rig.start()
    log = create_log(manager, "visits", 0, ID)
    append(log, b"one")
    rig.now_ms += 4_999
    assert manager.flush_due() == 0
    rig.now_ms += 1
    assert manager.flush_due() == 1
    assert log.recovery_point == 1
    rig.now_ms += HOUR_MS
    assert manager.flush_due() == 0
    manager.close()


def test_a_flush_after_a_roll_that_was_refused_is_tried_again(rig: ManagerRig, files: FailingFiles) -> None:
    manager = rig.start()
    log = create_log(manager, "visits", 0, ID)
    append(log, b"one")
    roll(log)
    files.fail("open", ".snapshot", errno.EMFILE)
    log.flush_in_background(1)
    assert (log.recovery_point, rig.failures) == (0, [])
    manager.flush_due()
    assert log.recovery_point == 0
    files.heal()
    manager.flush_due()
    assert log.recovery_point == 1
    manager.close()


def test_without_settings_nothing_is_flushed(rig: ManagerRig) -> None:
    manager = rig.start()
    append(create_log(manager, "visits", 0, ID), b"one")
    rig.now_ms += 1_000 * HOUR_MS
    assert manager.flush_due() == 0
    manager.close()


def test_retention_deletes_old_segments_of_every_log_and_their_files_later(rig: ManagerRig) -> None:
    rig.overrides["visits"] = {"retention.ms": str(HOUR_MS), "segment.ms": "1000", "file.delete.delay.ms": "60000"}
    manager = rig.start()
    logs = [create_log(manager, "visits", partition, ID) for partition in range(2)]
    for _ in range(3):
        for log in logs:
            append(log, b"old", timestamp_ms=rig.now_ms)
            log.advance_high_watermark(log.log_end_offset)
        rig.now_ms += 2_000
    assert manager.retention_pass() == 0
    rig.now_ms += 2 * HOUR_MS
    assert manager.retention_pass() >= 4
    for log in logs:
        assert read_values(log) == []
        assert log.log_start_offset == 3
    deleted = list(logs[0].directory.glob("*.log.deleted"))
    assert deleted
    rig.now_ms += 60_000
    manager.delete_pending()
    assert list(logs[0].directory.glob("*.deleted")) == []
    manager.close()


def test_one_logs_error_does_not_keep_the_others_from_their_turn(rig: ManagerRig, files: FailingFiles) -> None:
    rig.overrides["visits"] = {"retention.ms": str(HOUR_MS), "segment.ms": "1000"}
    manager = rig.start()
    logs = [create_log(manager, "visits", partition, ID) for partition in range(2)]
    for _ in range(2):
        for log in logs:
            append(log, b"old", timestamp_ms=rig.now_ms)
            log.advance_high_watermark(log.log_end_offset)
        rig.now_ms += 2_000
    rig.now_ms += 2 * HOUR_MS
    files.fail("rename", "visits-0", errno.ENOSPC)
    manager.retention_pass()
    assert logs[1].log_start_offset == 2
    assert rig.failures == []
    manager.close()


def test_a_changed_expiration_of_producers_counts_for_open_logs_too(rig: ManagerRig) -> None:
    manager = rig.start()
    log = create_log(manager, "visits", 0, ID)
    batch = batch_of(b"one", timestamp_ms=rig.now_ms, producer_id=7, producer_epoch=0, base_sequence=0)
    log.append_as_leader(batch, leader_epoch=0, now_ms=rig.now_ms)
    rig.now_ms += HOUR_MS
    assert manager.expire_producers() == 0
    manager.update_broker_config(rig.broker_config(f"producer.id.expiration.ms={HOUR_MS}"))
    assert manager.expire_producers() == 1
    manager.close()


def test_a_long_pass_pauses_and_a_short_one_does_not(rig: ManagerRig, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = rig.start()
    manager.create([("visits", partition, ID) for partition in range(20)])
    clock = iter(range(0, 1_000_000_000, 50_000))
    monkeypatch.setattr("time.perf_counter_ns", lambda: next(clock))
    manager.retention_pass()
    assert rig.pauses == 0
    clock = iter(range(0, 1_000_000_000, 600_000))
    manager.retention_pass()
    assert 5 <= rig.pauses <= 10
    manager.close()


def test_an_idle_broker_writes_no_checkpoint_twice(rig: ManagerRig, files: FailingFiles) -> None:
    manager = rig.start()
    append(create_log(manager, "visits", 0, ID), b"one")
    manager.checkpoint_recovery_points()
    manager.checkpoint_high_watermarks()
    before = dict(files.calls)
    for _ in range(5):
        manager.checkpoint_recovery_points()
        manager.checkpoint_high_watermarks()
        manager.flush_due()
        manager.retention_pass()
        manager.expire_producers()
        manager.delete_pending()
    assert files.calls == before
    manager.close()


def test_a_thousand_logs_are_made_with_one_fsync(rig: ManagerRig, files: FailingFiles) -> None:
    manager = rig.start()
    jobs: list[object] = []
    rig.background = jobs.append
    before = dict(files.calls)
    manager.create([("visits", partition, ID) for partition in range(1_000)])
    used = {name: files.calls[name] - before.get(name, 0) for name in files.calls}
    assert used["mkdir"] == 1_000
    assert used.get("fsync", 0) + used.get("fsync_directory", 0) == 1
    assert used.get("write_atomically", 0) == 0
    assert sum(used.values()) / 1_000 < CALLS_TO_CREATE
    manager.close(clean=False)


def test_a_clean_start_of_many_logs_costs_few_calls_each_and_no_fsync(rig: ManagerRig, files: FailingFiles) -> None:
    manager = rig.start()
    manager.create([("visits", partition, ID) for partition in range(200)])
    for log in manager.all_logs():
        append(log, b"one")
    manager.close()
    manager = rig.make()
    manager.lock_directories()
    before = dict(files.calls)
    manager.load()
    used = {name: files.calls[name] - before.get(name, 0) for name in files.calls}
    assert used.get("fsync", 0) == 0
    assert used.get("fsync_directory", 0) <= 1
    assert used.get("pwrite", 0) == 0
    assert sum(used.values()) / 200 < CALLS_TO_LOAD
    manager.close()
