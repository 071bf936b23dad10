"""What a disk that fails, is full or read-only does to a broker's log directories."""

import errno
import shutil
from pathlib import Path

import pytest

from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.storage.append_result import UnflushedError
from kavka.storage.files import AnyPath
from kavka.storage.log_directories import NoLogDirectoryError
from tests.support.log_managers import ID, FailingFiles, ManagerRig, append, create_log, delete_log, read_values


@pytest.fixture
def files() -> FailingFiles:
    return FailingFiles()


@pytest.fixture
def rig(tmp_path: Path, files: FailingFiles) -> ManagerRig:
    return ManagerRig([tmp_path / "a", tmp_path / "b"], files=files)


@pytest.mark.parametrize("error", [errno.EIO, errno.EROFS])
def test_a_failing_append_takes_its_directory_offline_and_no_other(
    rig: ManagerRig, files: FailingFiles, error: int
) -> None:
    manager = rig.start()
    manager.create([("visits", partition, ID) for partition in range(4)])
    broken = [log for log in manager.all_logs() if log.directory.parent == rig.paths[0]]
    files.fail("pwrite", str(rig.paths[0]), error)
    with pytest.raises(BrokerError) as refused:
        append(broken[0], b"lost")
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    [(path, partitions, left)] = rig.failures
    assert (path, left) == (rig.paths[0], 1)
    assert set(partitions) == {(log.topic, log.partition) for log in broken}
    assert all(manager.get(*key) is None and manager.is_offline(*key) for key in partitions)
    assert {log.directory.parent for log in manager.all_logs()} == {rig.paths[1]}
    append(manager.all_logs()[0], b"kept")
    manager.close()


def test_the_last_directory_to_fail_leaves_none(rig: ManagerRig, files: FailingFiles) -> None:
    manager = rig.start()
    manager.create([("visits", 0, ID), ("visits", 1, ID)])
    files.fail("pwrite", "visits-", errno.EIO)
    for log in manager.all_logs():
        with pytest.raises(BrokerError):
            append(log, b"lost")
    assert [left for _, _, left in rig.failures] == [1, 0]
    manager.close()


def test_a_directory_that_failed_gets_no_mark_of_a_clean_stop(rig: ManagerRig, files: FailingFiles) -> None:
    manager = rig.start()
    manager.create([("visits", 0, ID), ("visits", 1, ID)])
    broken = next(log for log in manager.all_logs() if log.directory.parent == rig.paths[0])
    files.fail("pwrite", str(rig.paths[0]), errno.EIO)
    with pytest.raises(BrokerError):
        append(broken, b"lost")
    manager.close()
    assert not (rig.paths[0] / ".kafka_cleanshutdown").exists()
    assert (rig.paths[1] / ".kafka_cleanshutdown").exists()


def test_a_full_disk_refuses_and_comes_back_by_itself(rig: ManagerRig, files: FailingFiles) -> None:
    manager = rig.start()
    log = create_log(manager, "visits", 0, ID)
    append(log, b"before")
    for operation in ("pwrite", "write_atomically", "mkdir"):
        files.fail(operation, "", errno.ENOSPC)
    with pytest.raises(BrokerError) as refused:
        append(log, b"refused")
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(BrokerError) as not_made:
        create_log(manager, "visits", 1, ID)
    assert not_made.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    manager.checkpoint_recovery_points()
    manager.checkpoint_high_watermarks()
    assert read_values(log) == [b"before"]
    assert rig.failures == []
    files.heal()
    append(log, b"after")
    append(create_log(manager, "visits", 1, ID), b"made")
    assert read_values(log) == [b"before", b"after"]
    manager.close()
    manager = rig.start()
    assert read_values(create_log(manager, "visits", 0, ID)) == [b"before", b"after"]
    manager.close()


def test_a_log_half_made_on_a_full_disk_leaves_nothing(rig: ManagerRig, files: FailingFiles) -> None:
    manager = rig.start()
    files.fail("open", ".log", errno.ENOSPC)
    with pytest.raises(BrokerError):
        create_log(manager, "visits", 0, ID)
    assert [path for root in rig.paths for path in root.glob("visits*")] == []
    files.heal()
    append(create_log(manager, "visits", 0, ID), b"made")
    manager.close()


def test_a_new_log_goes_to_another_directory_when_one_fails(rig: ManagerRig, files: FailingFiles) -> None:
    manager = rig.start()
    files.fail("mkdir", str(rig.paths[0]), errno.EIO)
    logs = manager.create([("visits", 0, ID), ("visits", 1, ID)], new={("visits", 0), ("visits", 1)})
    assert {log.directory.parent for log in logs.values() if not isinstance(log, BrokerError)} == {rig.paths[1]}
    assert [path for path, _, _ in rig.failures] == [rig.paths[0]]
    manager.close()


def test_an_unknown_log_is_not_made_anew_while_a_directory_is_offline(rig: ManagerRig, files: FailingFiles) -> None:
    manager = rig.start()
    files.fail("mkdir", str(rig.paths[0]), errno.EIO)
    create_log(manager, "visits", 0, ID)
    with pytest.raises(BrokerError) as refused:
        create_log(manager, "older", 0, ID)
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert create_log(manager, "newer", 0, ID, is_new=True).directory.parent == rig.paths[1]
    manager.close()


@pytest.mark.parametrize("operation", ["makedirs", "listdir", "open"])
def test_a_directory_that_cannot_be_read_at_start_is_offline(
    rig: ManagerRig, files: FailingFiles, operation: str
) -> None:
    manager = rig.start()
    manager.create([("visits", 0, ID), ("visits", 1, ID)])
    manager.close()
    files.fail(operation, str(rig.paths[0]), errno.EIO)
    manager = rig.start()
    assert [directory.online for directory in manager.directories] == [False, True]
    assert {log.directory.parent for log in manager.all_logs()} == {rig.paths[1]}
    manager.close()


def test_a_start_without_any_directory_names_each_reason(rig: ManagerRig, files: FailingFiles) -> None:
    files.fail("makedirs", str(rig.paths[0]), errno.EROFS)
    files.fail("makedirs", str(rig.paths[1]), errno.EACCES)
    with pytest.raises(NoLogDirectoryError, match=r"/a: .*Read-only file system.*/b: .*Permission denied"):
        rig.make().lock_directories()


def test_a_failed_directory_is_recovered_by_the_next_start(rig: ManagerRig, files: FailingFiles) -> None:
    manager = rig.start()
    manager.create([("visits", 0, ID), ("visits", 1, ID)])
    for log in manager.all_logs():
        append(log, b"kept")
    files.fail("pwrite", str(rig.paths[0]), errno.EIO)
    broken = next(log for log in manager.all_logs() if log.directory.parent == rig.paths[0])
    with pytest.raises(BrokerError):
        append(broken, b"lost")
    manager.close()
    files.heal()
    manager = rig.start()
    assert [read_values(log) for log in manager.all_logs()] == [[b"kept"], [b"kept"]]
    assert [log.recovered_segments for log in sorted(manager.all_logs(), key=lambda log: log.directory)] == [1, 0]
    manager.close()


def test_a_checkpoint_that_cannot_be_written_takes_a_failing_disk_offline(rig: ManagerRig, files: FailingFiles) -> None:
    manager = rig.start()
    append(create_log(manager, "visits", 0, ID), b"one")
    files.fail("write_atomically", "replication-offset-checkpoint", errno.EIO)
    create_log(manager, "visits", 0, ID).advance_high_watermark(1)
    manager.checkpoint_high_watermarks()
    assert len(rig.failures) >= 1
    manager.close()


def test_out_of_descriptors_is_no_fault_of_the_disk(rig: ManagerRig, files: FailingFiles) -> None:
    manager = rig.start()
    files.fail("open", "visits-", errno.EMFILE)
    with pytest.raises(BrokerError):
        create_log(manager, "visits", 0, ID)
    assert rig.failures == []
    files.heal()
    create_log(manager, "visits", 0, ID)
    manager.close()


def test_a_directory_that_vanished_is_made_again_empty(rig: ManagerRig) -> None:
    manager = rig.start()
    manager.create([("visits", 0, ID), ("visits", 1, ID)])
    manager.close()
    shutil.rmtree(rig.paths[0])
    manager = rig.start()
    assert len(manager.all_logs()) == 1
    manager.close()


@pytest.mark.parametrize("step", ["creation", "deletion"])
def test_an_fsync_of_the_directory_that_was_refused_is_made_up_for_by_the_next_checkpoint(
    rig: ManagerRig, files: FailingFiles, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    rig.start()
    log = create_log(rig.manager, "t", 0, ID, is_new=True) if step == "deletion" else None
    directory = rig.manager.directories.all[0]
    fsynced: list[str] = []

    def refused(path: AnyPath) -> None:
        raise OSError(errno.EMFILE, "too many open files", str(path))

    monkeypatch.setattr(files, "fsync_directory", refused)
    if log is None:
        create_log(rig.manager, "t", 0, ID, is_new=True)
    else:
        with pytest.raises(BrokerError, match="could not be made durable"):
            delete_log(rig.manager, "t", 0)
    monkeypatch.setattr(files, "fsync_directory", lambda path: fsynced.append(str(path)))

    # No log was compacted: nothing is written that would fsync the directory by the way.
    rig.manager.checkpoint_clean_offsets(directory)
    rig.manager.checkpoint_clean_offsets(directory)

    assert fsynced == [str(directory.path)]
    assert rig.failures == []
    rig.manager.close()


def test_nothing_is_acknowledged_in_a_folder_that_a_power_cut_would_take(
    rig: ManagerRig, files: FailingFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.overrides["visits"] = {"flush.messages": "1"}
    rig.start()
    refusing, fsynced = [True], list[str]()

    def fsync_directory(path: AnyPath) -> None:
        if refusing and Path(path) in rig.paths:
            raise OSError(errno.EMFILE, "too many open files", str(path))
        fsynced.append(str(path))

    monkeypatch.setattr(files, "fsync_directory", fsync_directory)
    log = create_log(rig.manager, "visits", 0, ID, is_new=True)
    with pytest.raises(UnflushedError):
        append(log, b"appended, and no more")
    assert log.recovery_point == 0
    refusing.clear()

    append(log, b"acknowledged")

    assert str(log.directory.parent) in fsynced
    assert log.recovery_point == 2
    fsynced.clear()
    append(log, b"and on")
    assert fsynced == [log.folder]
    assert rig.failures == []
    rig.manager.close()


def test_a_flush_leaves_the_directory_alone_where_the_creation_fsynced_it(rig: ManagerRig, files: FailingFiles) -> None:
    rig.start()
    log = create_log(rig.manager, "visits", 0, ID, is_new=True)
    append(log, b"one")
    before = files.calls["fsync_directory"]

    log.flush()

    assert files.calls["fsync_directory"] == before + 1
    rig.manager.close()
