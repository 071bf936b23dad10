"""Checkpoints against creation, deletion and failing directories: no entry outlives the log it tells of."""

import errno
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.storage.files import AnyPath, Files
from kavka.storage.offset_checkpoint import (
    HIGH_WATERMARK_FILE,
    LOG_START_OFFSET_FILE,
    RECOVERY_POINT_FILE,
    OffsetCheckpoint,
)
from kavka.storage.partition_log import PartitionLog
from tests.support.log_managers import ID, FailingFiles, ManagerRig, append, create_log, delete_log, read_values

KEY = ("visits", 0)
NEW_ID = bytes(range(2, 18))


def deleted_topic(rig: ManagerRig) -> None:
    """A topic that was checkpointed at offset 20, and deleted."""
    log = create_log(rig.manager, *KEY, ID)
    for _ in range(20):
        append(log, b"old")
    log.flush()
    log.advance_high_watermark(20)
    log.delete_records_before(15)
    rig.manager.checkpoint_recovery_points()
    rig.manager.checkpoint_high_watermarks()
    delete_log(rig.manager, *KEY)


@pytest.mark.parametrize("file", [RECOVERY_POINT_FILE, LOG_START_OFFSET_FILE, HIGH_WATERMARK_FILE])
def test_a_topic_is_not_made_anew_while_a_checkpoint_tells_of_its_predecessor(tmp_path: Path, file: str) -> None:
    files = FailingFiles()
    rig = ManagerRig([tmp_path], files=files)
    manager = rig.start()
    deleted_topic(rig)
    files.fail("write_atomically", file, errno.ENOSPC)

    with pytest.raises(BrokerError) as refused:
        create_log(manager, *KEY, NEW_ID, is_new=True)

    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert rig.failures == []
    files.heal()
    log = create_log(manager, *KEY, NEW_ID, is_new=True)
    append(log, b"new")
    log.flush()
    rig.kill()
    assert KEY not in OffsetCheckpoint(tmp_path / file, Files()).read()
    manager = rig.start()
    assert read_values(create_log(manager, *KEY, NEW_ID)) == [b"new"]
    manager.close()


def test_a_topic_made_anew_goes_to_the_next_directory_where_one_cannot_forget(tmp_path: Path) -> None:
    files = FailingFiles()
    rig = ManagerRig([tmp_path / "a", tmp_path / "b"], files=files)
    manager = rig.start()
    deleted_topic(rig)
    files.fail("write_atomically", str(rig.paths[0]), errno.EIO)

    log = create_log(manager, *KEY, NEW_ID, is_new=True)

    assert log.directory.parent == rig.paths[1]
    assert [path for path, _, _ in rig.failures] == [rig.paths[0]]
    manager.close()


class SlowCheckpoint(Files):
    """Calls `meanwhile` once, when a checkpoint is about to be written."""

    meanwhile: Callable[[], object] | None = None

    def write_atomically(self, path: AnyPath, data: bytes | bytearray) -> None:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        super().write_atomically(path, data)


def test_a_checkpoint_that_is_on_its_way_does_not_tell_of_a_topic_deleted_meanwhile(tmp_path: Path) -> None:
    files = SlowCheckpoint()
    rig = ManagerRig([tmp_path], files=files)
    manager = rig.start()
    old = create_log(manager, *KEY, ID)
    for _ in range(20):
        append(old, b"old")
    old.flush()
    made: list[PartitionLog] = []
    deleted = threading.Event()

    def make_anew() -> None:
        delete_log(manager, *KEY)
        deleted.set()
        made.append(create_log(manager, *KEY, NEW_ID, is_new=True))
        append(made[0], b"new")

    other = threading.Thread(target=make_anew)

    def meanwhile() -> None:
        other.start()
        deleted.wait()

    files.meanwhile = meanwhile
    manager.checkpoint_recovery_points()
    other.join()

    assert made[0].log_end_offset == 1
    assert KEY not in OffsetCheckpoint(tmp_path / RECOVERY_POINT_FILE, Files()).read()
    manager.close()


def test_a_directory_that_fails_keeps_what_its_checkpoints_know(tmp_path: Path) -> None:
    files = FailingFiles()
    rig = ManagerRig([tmp_path / "a", tmp_path / "b"], files=files)
    manager = rig.start()
    log = create_log(manager, *KEY, ID)
    for _ in range(9):
        append(log, b"v")
    log.flush()
    log.advance_high_watermark(9)
    log.delete_records_before(5)
    manager.checkpoint_recovery_points()
    files.fail("pwrite", "visits-0", errno.EIO)
    directory = manager.directory_of(log)
    with pytest.raises(BrokerError):
        append(log, b"v")
    files.heal()

    # As a pass does that looked at the directory just before.
    directory.checkpoints.write_recovery_points(lambda: manager.logs_in(directory))

    path = directory.path
    assert OffsetCheckpoint(path / RECOVERY_POINT_FILE, Files()).read() == {KEY: 8}
    assert OffsetCheckpoint(path / LOG_START_OFFSET_FILE, Files()).read() == {KEY: 5}
    manager.close()


def test_a_directory_that_fails_while_it_forgets_a_topic_keeps_what_its_checkpoints_know(tmp_path: Path) -> None:
    rig = ManagerRig([tmp_path])
    manager = rig.start()
    log = create_log(manager, "orders", 0, ID)
    append(log, b"kept")
    append(log, b"kept, too")
    log.flush()
    deleted_topic(rig)
    directory = manager.directory_of(log)

    def list_logs() -> list[PartitionLog]:
        manager.directories.fail(directory, OSError(errno.EIO, "broken"))
        return manager.logs_in(directory)

    with pytest.raises(OSError, match="offline"):
        directory.checkpoints.forget(KEY, list_logs)

    assert OffsetCheckpoint(tmp_path / RECOVERY_POINT_FILE, Files()).read()["orders", 0] == 1
    manager.close()


def test_a_checkpoint_whose_write_failed_is_written_again_though_nothing_changed(tmp_path: Path) -> None:
    files = FailingFiles()
    checkpoint = OffsetCheckpoint(tmp_path / "checkpoint", files)
    checkpoint.write({KEY: 1})
    # The file has its new content by then, and may keep it.
    files.fail("fsync_directory", "", errno.EIO)
    with pytest.raises(OSError, match="error"):
        checkpoint.write({KEY: 2})
    files.heal()
    assert checkpoint.has(("others", 3))

    assert checkpoint.write({KEY: 1})

    assert OffsetCheckpoint(tmp_path / "checkpoint", Files()).read() == {KEY: 1}


@pytest.mark.parametrize("anew", [False, True])
def test_a_truncation_lowers_the_checkpointed_recovery_point_at_once(tmp_path: Path, anew: bool) -> None:
    rig = ManagerRig([tmp_path])
    manager = rig.start()
    log = create_log(manager, *KEY, ID)
    for _ in range(9):
        append(log, b"old")
    log.flush()
    manager.checkpoint_recovery_points()

    if anew:
        log.truncate_fully_and_start_at(2)
    else:
        log.truncate_to(2)

    # An empty log may be vouched for; else not for its last segment, which a roll would close here.
    assert OffsetCheckpoint(tmp_path / RECOVERY_POINT_FILE, Files()).read() == {KEY: 2 if anew else 1}
    manager.close()
