"""Deletions that the disk refuses, or that somebody was faster with; what a stop finds of those that wait."""

import errno
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.storage.deferred_jobs import RETRY_DELAY_MS
from tests.support.compaction import compact, roll
from tests.support.log_managers import ID, FailingFiles, ManagerRig, append, create_log, read_values
from tests.support.partition_logs import append_batch, batch_of, open_files_in

KEY = ("visits", 0)


@pytest.fixture
def files() -> FailingFiles:
    return FailingFiles()


@pytest.fixture
def rig(tmp_path: Path, files: FailingFiles) -> Iterator[ManagerRig]:
    made = ManagerRig([tmp_path / "a", tmp_path / "b"], files=files)
    made.start()
    yield made
    files.heal()
    made.manager.close()


def test_a_log_whose_folder_cannot_be_renamed_goes_on(rig: ManagerRig, files: FailingFiles) -> None:
    log = create_log(rig.manager, *KEY, ID)
    append(log, b"kept")
    files.fail("rename", "visits-0", errno.ENOSPC)

    assert rig.manager.delete([KEY])[KEY].code is ErrorCode.KAFKA_STORAGE_ERROR

    files.heal()
    append(log, b"and more")
    log.flush()
    assert log.recovery_point == 2
    assert read_values(log) == [b"kept", b"and more"]
    assert rig.failures == []
    assert rig.manager.delete([KEY]) == {}


def test_a_deletion_is_done_when_the_disk_has_it(rig: ManagerRig, files: FailingFiles) -> None:
    directory = rig.manager.directory_of(create_log(rig.manager, *KEY, ID))
    files.fail("fsync_directory", str(directory.path), errno.EMFILE)
    files.refusals_are_final = False

    for _ in range(2):
        assert rig.manager.delete([KEY])[KEY].code is ErrorCode.KAFKA_STORAGE_ERROR

    assert directory.online
    files.heal()
    assert rig.manager.delete([KEY]) == {}
    assert not directory.fsync_is_due


def test_a_log_in_a_directory_that_failed_is_not_deleted(rig: ManagerRig) -> None:
    log = create_log(rig.manager, *KEY, ID)
    rig.manager.directories.fail(rig.manager.directory_of(log), OSError(errno.EIO, "broken"))

    assert rig.manager.delete([KEY])[KEY].code is ErrorCode.KAFKA_STORAGE_ERROR

    assert log.directory.exists()


def test_a_log_whose_folder_somebody_took_away_can_be_deleted_and_made_again(rig: ManagerRig) -> None:
    log = create_log(rig.manager, *KEY, ID)
    append(log, b"gone")
    shutil.rmtree(log.directory)

    assert rig.manager.delete([KEY]) == {}

    assert read_values(create_log(rig.manager, *KEY, ID, is_new=True)) == []
    rig.now_ms += 60_000
    assert rig.manager.delete_pending() == 1
    assert rig.failures == []


def test_a_folder_that_cannot_be_deleted_for_want_of_descriptors_goes_later(
    rig: ManagerRig, files: FailingFiles, tmp_path: Path
) -> None:
    create_log(rig.manager, *KEY, ID)
    rig.manager.delete([KEY])
    files.fail("listdir", "-delete", errno.EMFILE)
    rig.now_ms += 60_000
    rig.manager.delete_pending()
    assert list(tmp_path.glob("*/*-delete"))
    files.heal()

    rig.now_ms += RETRY_DELAY_MS
    rig.manager.delete_pending()

    assert list(tmp_path.glob("*/*-delete")) == []


def test_a_file_that_cannot_be_unlinked_keeps_no_other_from_it_and_goes_later(
    rig: ManagerRig, files: FailingFiles, tmp_path: Path
) -> None:
    log = create_log(rig.manager, *KEY, ID)
    append(log, b"gone")
    log.flush()
    rig.manager.delete([KEY])
    files.fail("unlink", ".log", errno.EIO)
    rig.now_ms += 60_000
    rig.manager.delete_pending()
    assert [path.suffix for path in tmp_path.glob("*/*-delete/*")] == [".log"]
    files.heal()

    rig.now_ms += RETRY_DELAY_MS
    rig.manager.delete_pending()

    assert list(tmp_path.glob("*/*-delete")) == []


@pytest.mark.parametrize("clean", [True, False])
def test_a_stop_closes_the_files_of_logs_that_wait_for_their_deletion(rig: ManagerRig, clean: bool) -> None:
    log = create_log(rig.manager, *KEY, ID)
    append(log, b"gone")
    rig.manager.delete([KEY])
    assert open_files_in(log.directory)

    rig.manager.close(clean=clean)

    assert open_files_in(log.directory) == []


def test_a_deletion_closes_segments_that_a_compaction_could_not_set_aside(rig: ManagerRig, files: FailingFiles) -> None:
    rig.overrides["visits"] = {"cleanup.policy": "compact"}
    log = create_log(rig.manager, *KEY, ID)
    for number in range(3):
        append_batch(log, batch_of(b"%d" % number))
        roll(log)
    # Readers have the new segment by then.
    files.fail("rename", f"{1:020d}.log", errno.ENOSPC)
    with pytest.raises(BrokerError):
        compact(log)
    files.heal()
    replaced = [segment.file for segment in log.replaced]
    assert replaced

    rig.manager.delete([KEY])

    assert [Path(file.path).parent for file in replaced] == [log.directory] * len(replaced)
    rig.now_ms += 60_000
    rig.manager.delete_pending()
    assert not log.directory.exists()
    assert open_files_in(log.directory) == []
