"""What a clean stop costs, and what it does where the file system can't be synced at once."""

import contextlib
import errno
import os
from pathlib import Path

import pytest

from kavka.storage import log_closing
from kavka.storage.files import AnyPath, Files
from kavka.storage.log_closing import SYNC_AT_ONCE_FROM
from kavka.storage.log_directory import CLEAN_SHUTDOWN_FILE, LOCK_FILE
from kavka.storage.log_manager import LogManager
from kavka.storage.partition_log import PartitionLog
from kavka.storage.syncfs import syncfs
from tests.support.log_managers import ID, FailingFiles, ManagerRig, append, create_log, read_values

MANY = SYNC_AT_ONCE_FROM + 20
FSYNCS_OF_THE_DIRECTORY = 8
"""Of the checkpoints and the mark: file and folder."""


class StopFiles(FailingFiles):
    """`elsewhere`: text in the paths that lie in another file system; `can_sync`: whether there is a syncfs."""

    def __init__(self) -> None:
        super().__init__()
        self.can_sync = True
        self.elsewhere = "nowhere"
        self.witnesses: list[os.stat_result] = []

    def sync_file_system(self, path: AnyPath, witness: int = -1) -> bool:
        self.witnesses.append(os.fstat(witness))
        return super().sync_file_system(path, witness) and self.can_sync

    def device(self, path: AnyPath) -> int:
        return 2 if self.elsewhere in str(path) else 1


@pytest.fixture
def files() -> StopFiles:
    return StopFiles()


@pytest.fixture
def rig(tmp_path: Path, files: StopFiles) -> ManagerRig:
    return ManagerRig([tmp_path / "a"], files=files)


def with_changed_logs(rig: ManagerRig, count: int) -> LogManager:
    manager = rig.start()
    manager.create([("visits", partition, ID) for partition in range(count)])
    for log in manager.all_logs():
        append(log, b"one")
    return manager


def fsyncs_of_close(manager: LogManager, files: StopFiles) -> int:
    before = dict(files.calls)
    manager.close()
    return sum(files.calls.get(name, 0) - before.get(name, 0) for name in ("fsync", "fsync_directory"))


def check_all_is_there(rig: ManagerRig, count: int) -> None:
    manager = rig.start()
    assert len(manager.all_logs()) == count
    for log in manager.all_logs():
        assert (read_values(log), log.recovered_segments, log.epochs.latest_epoch) == ([b"one"], 0, 0)
    manager.close()


def test_many_changed_logs_are_synced_at_once(rig: ManagerRig, files: StopFiles) -> None:
    manager = with_changed_logs(rig, MANY)
    assert fsyncs_of_close(manager, files) <= FSYNCS_OF_THE_DIRECTORY
    assert 1 <= files.calls["sync_file_system"] <= 2
    check_all_is_there(rig, MANY)


def test_the_file_system_is_synced_by_a_descriptor_that_was_there_before_the_writes(
    rig: ManagerRig, files: StopFiles
) -> None:
    with_changed_logs(rig, MANY).close()
    held = (rig.paths[0] / LOCK_FILE).stat()
    assert {(stat.st_dev, stat.st_ino) for stat in files.witnesses} == {(held.st_dev, held.st_ino)}


def test_few_changed_logs_do_not_wait_for_the_whole_file_system(rig: ManagerRig, files: StopFiles) -> None:
    manager = with_changed_logs(rig, SYNC_AT_ONCE_FROM - 1)
    assert fsyncs_of_close(manager, files) > 3 * (SYNC_AT_ONCE_FROM - 1)
    assert "sync_file_system" not in files.calls
    check_all_is_there(rig, SYNC_AT_ONCE_FROM - 1)


def test_without_such_a_call_each_log_is_fsynced(rig: ManagerRig, files: StopFiles) -> None:
    files.can_sync = False
    manager = with_changed_logs(rig, MANY)
    assert fsyncs_of_close(manager, files) > 3 * MANY
    check_all_is_there(rig, MANY)


def test_a_log_in_another_file_system_is_fsynced_by_itself(rig: ManagerRig, files: StopFiles) -> None:
    files.elsewhere = "visits-7"
    manager = with_changed_logs(rig, MANY)
    assert 3 <= fsyncs_of_close(manager, files) - FSYNCS_OF_THE_DIRECTORY <= 8
    check_all_is_there(rig, MANY)


def test_a_file_system_that_cannot_be_synced_leaves_no_mark_of_a_clean_stop(rig: ManagerRig, files: StopFiles) -> None:
    manager = with_changed_logs(rig, MANY)
    files.fail("sync_file_system", "", errno.EIO)
    manager.close()
    assert not (rig.paths[0] / CLEAN_SHUTDOWN_FILE).exists()
    files.heal()
    manager = rig.start()
    assert all(read_values(log) == [b"one"] for log in manager.all_logs())
    manager.close()


def test_logs_that_did_not_change_cost_nothing(rig: ManagerRig, files: StopFiles) -> None:
    with_changed_logs(rig, MANY).close()
    manager = rig.start()
    assert fsyncs_of_close(manager, files) <= FSYNCS_OF_THE_DIRECTORY
    assert files.calls["sync_file_system"] <= 2
    check_all_is_there(rig, MANY)


def test_a_log_that_was_cut_or_given_an_id_is_fsynced_though_its_end_is_its_recovery_point(
    rig: ManagerRig, files: StopFiles
) -> None:
    manager = with_changed_logs(rig, 2)
    cut, named = manager.all_logs()
    append(cut, b"two")
    for log in (cut, named):
        log.flush()
    cut.truncate_to(1)
    named.assign_topic_id(bytes(reversed(ID)))
    assert cut.recovery_point == cut.log_end_offset
    assert fsyncs_of_close(manager, files) >= 2 * 3


def test_the_systems_own_call_tells_of_errors(tmp_path: Path) -> None:
    if not Files().sync_file_system(tmp_path):
        pytest.skip("this system has no syncfs that reports errors")
    with pytest.raises(OSError, match="Bad file descriptor"):
        syncfs(-1)


@pytest.mark.parametrize("operation", ["pwrite", "fsync", "fsync_directory", "write_atomically", "close", "stat"])
def test_a_directory_that_fails_in_a_stop_is_free_for_the_next_start(tmp_path: Path, operation: str) -> None:
    files = FailingFiles()
    rig = ManagerRig([tmp_path / "a", tmp_path / "b"], files=files)
    manager = rig.start()
    logs = manager.create([("visits", partition, ID) for partition in range(4)])
    for log in logs.values():
        assert isinstance(log, PartitionLog)
        append(log, b"kept")
    files.fail(operation, str(rig.paths[0]), errno.EIO)
    rig.failed = _nobody_is_left

    with contextlib.suppress(NobodyLeftError):
        manager.close()

    files.heal()
    rig.failed = None
    manager = rig.start()
    assert [read_values(log) for log in manager.all_logs()] == [[b"kept"]] * 4
    manager.close()


class NobodyLeftError(Exception):
    """Whoever is to be told of a failed directory has stopped already."""


def _nobody_is_left() -> None:
    raise NobodyLeftError


def test_a_stop_that_a_disk_holds_up_for_good_closes_nothing_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rig = ManagerRig([tmp_path])
    manager = rig.start()
    log = create_log(manager, "visits", 0, ID)
    monkeypatch.setattr(log_closing, "CLOSE_PATIENCE_S", 0.01)
    with manager._membership_lock:
        manager.close()
    assert "a disk has answered nothing for" in caplog.text
    assert not (tmp_path / CLEAN_SHUTDOWN_FILE).exists()
    append(log, b"nobody has closed it")
    manager.close()
    assert (tmp_path / CLEAN_SHUTDOWN_FILE).exists()
