"""Errors that another try can't mend: failed fsyncs of any kind, truncations and deletions that ended half way."""

import errno
from pathlib import Path

import pytest

from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.storage.append_result import AppendError
from kavka.storage.partition_log import PartitionLog
from tests.support.log_managers import ID, FailingFiles, ManagerRig, create_log
from tests.support.log_managers import append as append_value
from tests.support.partition_logs import Clock, Jobs, append, open_files_in, open_log, read_all

HOUR_MS = 3_600_000


@pytest.fixture
def files() -> FailingFiles:
    return FailingFiles()


@pytest.fixture
def rig(tmp_path: Path, files: FailingFiles) -> ManagerRig:
    return ManagerRig([tmp_path / "a", tmp_path / "b"], files=files)


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.ENOMEM])
@pytest.mark.parametrize("file", [".log", ".index", ".timeindex"])
def test_an_fsync_that_succeeds_after_one_that_failed_proves_nothing(
    tmp_path: Path, files: FailingFiles, number: int, file: str
) -> None:
    jobs = Jobs()
    log = open_log(tmp_path, files=files, jobs=jobs, index_interval_bytes=0)
    append(log, b"flushed")
    log.flush()
    for _ in range(2):
        append(log, b"acknowledged")
    files.fail("fsync", file, number)
    with pytest.raises(AppendError):
        log.flush()
    files.heal()

    with pytest.raises(AppendError) as again:
        log.flush()
    assert again.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert log.recovery_point == 1
    assert [error.errno for error in jobs.failures] == [number]
    with pytest.raises(AppendError):
        append(log, b"too late")
    assert len(read_all(log)) == 3
    log.close()
    assert log.recovery_point == 1


def test_an_append_is_not_acknowledged_when_an_earlier_fsync_failed(tmp_path: Path, files: FailingFiles) -> None:
    log = open_log(tmp_path, files=files, flush_messages=1)
    files.fail("fsync", ".log", errno.ENOSPC)
    for _ in range(2):
        with pytest.raises(AppendError):
            append(log, b"v")
        files.heal()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_folder_that_can_not_be_made_durable_takes_its_directory_offline(
    rig: ManagerRig, files: FailingFiles, number: int
) -> None:
    manager = rig.start()
    files.fail("fsync_directory", str(rig.paths[0]), number)
    logs = manager.create([("visits", 0, ID), ("visits", 1, ID)], new={("visits", 0), ("visits", 1)})
    assert [path for path, _, _ in rig.failures] == [rig.paths[0]]
    [refused] = [log for log in logs.values() if isinstance(log, BrokerError)]
    assert refused.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert [log.directory.parent for log in logs.values() if isinstance(log, PartitionLog)] == [rig.paths[1]]
    manager.close()


def test_what_close_says_of_a_segment_takes_its_directory_offline(rig: ManagerRig, files: FailingFiles) -> None:
    manager = rig.start()
    log = create_log(manager, "visits", 0, ID)
    append_value(log, b"one")
    log.flush()
    log.roll(rig.now_ms, log.log_end_offset)
    files.fail("close", ".log", errno.EDQUOT)
    log.published[2][0].file.retire()
    assert [path for path, _, _ in rig.failures] == [log.directory.parent]
    files.heal()
    manager.close()


def test_a_file_system_that_could_not_be_synced_gets_no_mark(rig: ManagerRig, files: FailingFiles) -> None:
    manager = rig.start()
    for log in manager.create([("visits", partition, ID) for partition in range(40)]).values():
        assert isinstance(log, PartitionLog)
        append_value(log, b"one")
    files.fail("sync_file_system", "", errno.ENOSPC)
    manager.close()
    assert not any((path / ".kafka_cleanshutdown").exists() for path in rig.paths)


class Renames(FailingFiles):
    """Refuses the renames of one segment's file."""

    def __init__(self, text: str, number: int) -> None:
        super().__init__()
        self.fail("rename", text, number)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_retention_that_a_full_disk_refuses_goes_on_from_there(tmp_path: Path, number: int) -> None:
    files, jobs, clock = Renames(f"{1:020d}.log", number), Jobs(), Clock()
    log = open_log(tmp_path, files=files, jobs=jobs, clock=clock, segment_bytes=110, retention_ms=HOUR_MS)
    for _ in range(4):
        append(log, b"x" * 40)
    log.advance_high_watermark(4)
    clock.ms += 2 * HOUR_MS

    with pytest.raises(AppendError):
        log.delete_old_segments(clock.ms)

    assert log.log_start_offset == 1
    assert [offset for offset, _ in read_all(log)] == [1, 2, 3]
    assert jobs.failures == []
    files.heal()
    assert log.delete_old_segments(clock.ms) == 3
    jobs.run_all()
    assert [path.name for path in tmp_path.glob("*.log")] == [f"{4:020d}.log"]
    log.close()


def test_a_roll_that_fails_keeps_no_file_open(tmp_path: Path, files: FailingFiles) -> None:
    log = open_log(tmp_path, files=files, segment_bytes=100)
    append(log, b"x" * 20)
    files.fail("ftruncate", ".log", errno.ENOSPC)
    opened = len(open_files_in(tmp_path))
    for _ in range(5):
        (tmp_path / f"{1:020d}.log").write_bytes(b"left over")
        with pytest.raises(AppendError):
            append(log, b"x" * 20)
    assert len(open_files_in(tmp_path)) == opened
    files.heal()
    assert append(log, b"x" * 20).first_offset == 1
    log.close()


@pytest.mark.parametrize("operation", ["rename", "ftruncate", "open"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE, errno.EIO])
def test_a_truncation_that_ended_half_way_is_the_logs_last_change(
    tmp_path: Path, files: FailingFiles, operation: str, number: int
) -> None:
    jobs = Jobs()
    log = open_log(tmp_path, files=files, jobs=jobs, segment_bytes=250, index_interval_bytes=0)
    for _ in range(9):
        append(log, b"x" * 20)
    files.fail(operation, "0000", number)

    for _ in range(2):
        with pytest.raises(AppendError):
            log.truncate_to(1)
    files.heal()

    with pytest.raises(AppendError):
        append(log, b"behind what?")
    assert [error.errno for error in jobs.failures] == [number]
    log.close()
    log = open_log(tmp_path, clean=False, segment_bytes=250, index_interval_bytes=0)
    offsets = [offset for offset, _ in read_all(log)]
    assert offsets == list(range(len(offsets)))
    log.close()


def test_a_segment_that_begins_where_an_old_one_did_has_none_of_its_indexes(tmp_path: Path) -> None:
    files = Renames("index", errno.ENOSPC)
    log = open_log(tmp_path, files=files, segment_bytes=250, index_interval_bytes=0)
    for _ in range(9):
        append(log, b"x" * 20)
    bases = log.published[3]
    for base in bases[1:]:
        (tmp_path / f"{base:020d}.txnindex").write_bytes(b"\0\0" + bytes(7) + b"\5" + bytes(24))

    log.truncate_to(bases[1])
    while log.log_end_offset < 9:
        append(log, b"y" * 20)

    assert log.published[3] == bases
    assert log.aborted_transactions(0, 100) == []
    log.close()
    assert len(read_all(open_log(tmp_path, segment_bytes=250))) == 9


def test_a_leader_whose_epoch_is_over_does_not_append(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"a", leader_epoch=3)
    log.begin_leader_epoch(5)
    with pytest.raises(BrokerError) as late:
        append(log, b"late", leader_epoch=3)
    assert late.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    append(log, b"b", leader_epoch=5)

    log.follow_leader_epoch(6)
    with pytest.raises(BrokerError):
        append(log, b"late", leader_epoch=5)

    assert log.epochs.entries == ((3, 0), (5, 1))
    assert [value for _, value in read_all(log)] == [b"a", b"b"]
